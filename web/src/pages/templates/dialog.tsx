// A template is made or changed: what it is called, what it is for, and who sees it.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { sessionGet } from '../../api/client'
import { userQuery } from '../../api/queries'
import { templateAdd, templateSet, templatesQuery, type Template, type TemplateWrite } from '../../api/templates'
import { t } from '../../i18n/i18n'
import { withoutSecrets, wordsOf } from '../../lib/templates'
import { Button, Check, Dialog, ErrorNote, Field, SelectField, TextField, useToast, useWhileThere } from '../../ui/ui'

type Share = 'private' | 'groups' | 'public'

const shareOf = (template: Template | null): Share => (template?.isPublic ? 'public' : template?.groupList?.length ? 'groups' : 'private')

/** `template` null: a new one, of `text`. One of this user's with the same name is replaced. */
export function TemplateDialog({ template, text, suggested, onClose }: { template: Template | null; text: string; suggested: string; onClose: () => void }) {
  const user = sessionGet()?.user ?? ''
  const author = template?.author ?? user
  const { data: me } = useQuery(userQuery(user))
  const { data: mine } = useQuery(templatesQuery(`author=${encodeURIComponent(author)}`))
  const [opened] = useState(template) // what the fields began with
  const [share, setShare] = useState<Share>(shareOf(template))
  const [error, setError] = useState<unknown>(null)
  const [isBusy, setBusy] = useState(false)
  const close = useWhileThere(onClose)
  const queries = useQueryClient()
  const toast = useToast()
  const groups = [...new Set([...(me?.grouplist ?? []), ...(template?.groupList ?? [])])]
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    const form = new FormData(event.currentTarget)
    const string = (key: string) => String(form.get(key) ?? '').trim()
    const name = string('name')
    setError(null)
    setBusy(true)
    try {
      const fields: TemplateWrite = {
        name,
        summary: string('summary'),
        description: string('description'),
        categories: wordsOf(string('categories')),
        tags: wordsOf(string('tags')),
        isPublic: share === 'public',
        groupList: share === 'groups' ? form.getAll('group').map(String) : [],
        protocol: withoutSecrets(form.has('protocol') ? String(form.get('protocol')) : text),
        ...(opened?.updatedAt ? { updatedAt: opened.updatedAt } : {}),
      }
      const same = mine?.find((one) => one.name === name)
      const id = template?.id ?? same?.id
      const reply = id ? await templateSet(id, fields) : await templateAdd(fields)
      await queries.invalidateQueries({ queryKey: ['templates'] })
      toast(reply.status === 'pending' ? t('{name} is saved. Others see it once an administrator has approved it.', { name }) : t('{name} is saved as a template.', { name }))
      close()
    } catch (failure) {
      setError(failure)
      setBusy(false)
    }
  }
  return (
    <Dialog title={template ? t('Change the template {name}', { name: template.name }) : t('Keep this job as a template')} onClose={onClose} wide>
      <form className="stack" onSubmit={(event) => void submit(event)}>
        <p className="quiet">{t('The values of secrets are left out. What changes from run to run is best a parameter: it is asked for first.')}</p>
        <div className="fields">
          <TextField label={t('Name of the template')} name="name" required maxLength={64} defaultValue={template?.name ?? suggested} hint={template ? undefined : t('One of this name is replaced.')} />
          <TextField label={t('Summary')} name="summary" maxLength={512} defaultValue={template?.summary ?? ''} />
          <TextField label={t('Categories')} name="categories" placeholder={t('training, inference')} defaultValue={template?.categories?.map(({ name }) => name).join(', ') ?? ''} hint={t('With a comma between them.')} />
          <TextField label={t('Tags')} name="tags" placeholder={t('vision, text')} defaultValue={template?.tags?.map(({ name }) => name).join(', ') ?? ''} hint={t('With a comma between them.')} />
        </div>
        <Field label={t('Description')}>{(props) => <textarea {...props} className="input" name="description" rows={4} maxLength={16384} defaultValue={template?.description ?? ''} />}</Field>
        {template && <Field label={t('Job file')}>{(props) => <textarea {...props} className="input mono" name="protocol" rows={10} spellCheck={false} required defaultValue={template.protocol ?? ''} />}</Field>}
        <SelectField label={t('Who sees it')} value={share} onChange={(event) => setShare(event.target.value as Share)} hint={share === 'public' ? t('An administrator approves it first, and again after each change.') : undefined}>
          <option value="private">{t('only its author')}</option>
          {groups.length > 0 && <option value="groups">{t('groups')}</option>}
          <option value="public">{t('everyone')}</option>
        </SelectField>
        {share === 'groups' && (
          <fieldset className="row">
            <legend className="label">{t('Groups')}</legend>
            {groups.map((group) => (
              <Check key={group} name="group" value={group} defaultChecked={template?.groupList?.includes(group) ?? false}>
                <span lang="">{group}</span>
              </Check>
            ))}
          </fieldset>
        )}
        {error !== null && <ErrorNote error={error} />}
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="main" disabled={isBusy || (!template && !mine)}>
            {t('Keep')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
