// Every dialog and every menu, in either language: the page that it is opened on, and what one does to open it.
import type { Page } from '@playwright/test'
import { fill, type Language, type Values } from '../src/i18n/i18n'
import zh from '../src/i18n/zh'

type Opening = [path: string, open: (page: Page) => Promise<void>]

const wordsOf = (language: Language) => (text: string, values?: Values) => fill(language === 'en' ? text : (zh[text] ?? text), values)

export function dialogsOf(language: Language): Opening[] {
  const word = wordsOf(language)
  const press = (text: string, values?: Values) => async (page: Page) => page.getByRole('button', { name: word(text, values), exact: true }).click()
  const first = (text: string) => async (page: Page) => page.getByRole('button', { name: new RegExp(`^${word(text, { id: '', node: '' }).trim()}`) }).first().click()
  const more = (text: string) => async (page: Page) => {
    await press('More actions')(page)
    await press(text)(page)
  }
  const selected = (name: string, text: string) => async (page: Page) => {
    await page.getByLabel(word('Select {name}', { name }), { exact: true }).check()
    await press(text)(page)
  }
  return [
    ['/', press('Help and keys')],
    ['/profile', press('Change the password …')],
    ['/profile', press('Add a key …')],
    ['/profile', press('Make a key …')],
    ['/profile', press('New token …')],
    ['/profile', first('Revoke the token {id}')],
    ['/admin', press('New user')],
    ['/admin', press('Users from a file')],
    ['/admin', press('Change {user}', { user: 'ann' })],
    ['/admin', press('Quotas of {name}', { name: 'ann' })],
    ['/admin', selected('ann', 'Remove')],
    ['/admin', selected('ann', 'Change the selected')],
    ['/admin', selected('ann', 'New passwords')],
    ['/cluster?tab=nodes', first('Cordon or drain {node}')],
    ['/admin?tab=groups', press('New group')],
    ['/admin?tab=groups', press('Change {user}', { user: 'lab' })],
    ['/admin?tab=groups', press('Members of {name}', { name: 'lab' })],
    ['/admin?tab=groups', press('Quotas of {name}', { name: 'lab' })],
    ['/admin?tab=groups', press('Remove {name}', { name: 'lab' })],
    ['/admin?tab=storages', press('Groups that may use {name} …', { name: 'home' })],
    ['/storages/home', press('New folder …')],
    ['/storages/home', press('Rename or move {name}', { name: 'lab' })],
    ['/storages/home', press('Delete {name}', { name: 'lab' })],
    ['/jobs?keyword=resnet', selected('admin~resnet-50', 'Stop')],
    ['/jobs?keyword=resnet', selected('admin~resnet-49', 'Archive')],
    ['/jobs?keyword=resnet', selected('admin~resnet-49', 'Delete')],
    ['/jobs/admin~resnet-50', press('Stop')],
    ['/jobs/admin~resnet-50', more('Open a port …')],
    ['/jobs/admin~resnet-50', more('Reach a task by ssh …')],
    ['/jobs/admin~resnet-50', more('Transfer to another cluster …')],
    ['/profile', press('Add a cluster …')],
    ['/jobs/admin~resnet-50', more('Put a tag …')],
    ['/jobs/admin~resnet-50', more('Change the number of tasks …')],
    ['/jobs/admin~resnet-49', more('Delete …')],
    [
      '/submit',
      async (page) => {
        await press('Templates')(page)
        await press('Keep this job as a template …')(page)
      },
    ],
    ['/templates?item=admin~resnet', press('Change')],
    ['/templates?item=admin~resnet', press('Remove')],
    ['/templates?item=admin~resnet', press('Reject …')],
  ]
}

export function menusOf(language: Language): [path: string, name: string][] {
  const word = wordsOf(language)
  return [
    ['/', word('Account of {user}', { user: 'admin' })],
    ['/jobs', word('More filters')],
    ['/jobs', word('Columns')],
    ['/jobs/admin~resnet-50', word('More actions')],
    ['/submit', word('Templates')],
  ]
}
