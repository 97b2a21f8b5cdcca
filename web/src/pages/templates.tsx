// Templates: one's own, and those that others share. An administrator says which of them everyone sees.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState, type FormEvent } from 'react'
import { sessionGet } from '../api/client'
import { templateAdd, templateBack, templateOfficial, templateQuery, templateRemove, templateReview, templatesQuery, templateStar, templateWordsQuery, type Template } from '../api/templates'
import { t } from '../i18n/i18n'
import { copyOf, getCommand, oldTemplateForget, oldTemplatesOf, withoutSecrets } from '../lib/templates'
import { Link, useSearch } from '../router'
import '../style/templates.css'
import { Ago, Button, Cli, Confirm, Copy, Dialog, Empty, ErrorNote, Fact, Field, LinkButton, Loading, Said, SelectField, Tabs, TextField, useBusy, usePageTitle, useToast, useUndo, useWhileThere } from '../ui/ui'
import { Markdown } from '../ui/markdown'
import { Detail } from './templates/detail'
import { TemplateDialog } from './templates/dialog'
import { Versions } from './templates/versions'

const nameOf = ({ author, name }: Template) => `${author}~${name}`
const placeOf = (template: Template) => `/templates?item=${encodeURIComponent(nameOf(template)).replaceAll('%7E', '~')}`

export default function Templates() {
  const [search] = useSearch()
  const item = search.get('item')
  usePageTitle(item ?? t('Templates'))
  return item ? <One key={item} name={item} /> : <All />
}

// ---- all of them ----

const SHOWS = ['', 'official', 'shared', 'mine', 'starred', 'pending'] as const

function filterOf(search: URLSearchParams, user: string): string {
  const query = new URLSearchParams()
  const show = search.get('show')
  if (show === 'official') query.set('official', 'true')
  if (show === 'shared') query.set('shared', 'true')
  if (show === 'mine') query.set('author', user)
  if (show === 'starred') query.set('starred', 'true')
  if (show === 'pending') query.set('status', 'pending')
  for (const [from, to] of [['q', 'keyword'], ['tag', 'tag'], ['category', 'category'], ['order', 'order']] as const) {
    const value = search.get(from)
    if (value) query.set(to, value)
  }
  return query.toString()
}

function All() {
  const session = sessionGet()
  const [search, setSearch] = useSearch()
  const filter = filterOf(search, session?.user ?? '')
  const { data, error } = useQuery(templatesQuery(filter))
  const { data: tags } = useQuery(templateWordsQuery('tags'))
  const { data: categories } = useQuery(templateWordsQuery('categories'))
  const { data: pending } = useQuery({ ...templatesQuery('status=pending'), enabled: session?.admin ?? false })
  const titles = { '': t('all that you see'), official: t('official'), shared: t('shared with others'), mine: t('mine'), starred: t('with my star'), pending: t('waiting for approval') }
  return (
    <div className="page">
      <div className="page-head">
        <h1>{t('Templates')}</h1>
        <div className="row push">
          <LinkButton kind="main" href="/submit">
            {t('New, from a job')}
          </LinkButton>
        </div>
      </div>
      <OldOnes user={session?.user ?? ''} />
      {!!pending?.length && search.get('show') !== 'pending' && (
        <p className="note" data-kind="wait">
          {t('{n} template waits for your approval.|{n} templates wait for your approval.', { n: pending.length })} <Link href="/templates?show=pending">{t('Look at them')}</Link>
        </p>
      )}
      <div className="row row-foot" role="search">
        <TextField label={t('Name, author or summary')} type="search" value={search.get('q') ?? ''} onChange={(event) => setSearch({ q: event.target.value || null })} />
        <SelectField label={t('Show')} value={search.get('show') ?? ''} onChange={(event) => setSearch({ show: event.target.value || null })}>
          {SHOWS.map((show) => (
            <option key={show} value={show}>
              {titles[show]}
            </option>
          ))}
        </SelectField>
        <Words label={t('Category')} words={categories} value={search.get('category') ?? ''} onChange={(category) => setSearch({ category })} />
        <Words label={t('Tag')} words={tags} value={search.get('tag') ?? ''} onChange={(tag) => setSearch({ tag })} />
        <SelectField label={t('Order')} value={search.get('order') ?? ''} onChange={(event) => setSearch({ order: event.target.value || null })}>
          <option value="">{t('last changed')}</option>
          <option value="uses">{t('most used')}</option>
          <option value="stars">{t('most stars')}</option>
        </SelectField>
        <span className="quiet push" role="status">
          {data && t('{n} template|{n} templates', { n: data.length })}
        </span>
      </div>
      {error && <ErrorNote error={error} />}
      {!data && !error && <Loading />}
      {data && !data.length && (
        <div className="card">
          <Empty title={filter ? t('No template fits') : t('There is no template yet')}>
            <p>{t('Write a job, and keep it as a template on the page where it is submitted; or clone a job that ran well, and keep that.')}</p>
          </Empty>
        </div>
      )}
      {!!data?.length && (
        <ul className="templates">
          {data.map((template) => (
            <Card key={template.id} template={template} />
          ))}
        </ul>
      )}
      <Cli command="skep template list" />
    </div>
  )
}

function Words({ label, words, value, onChange }: { label: string; words: { name: string; count?: number | undefined }[] | undefined; value: string; onChange: (word: string | null) => void }) {
  const names = [...new Set([...(words ?? []).map(({ name }) => name), ...(value ? [value] : [])])]
  if (!names.length) return null
  return (
    <SelectField label={label} value={value} lang="" onChange={(event) => onChange(event.target.value || null)}>
      <option value="">{t('all')}</option>
      {names.map((name) => (
        <option key={name}>{name}</option>
      ))}
    </SelectField>
  )
}

function Card({ template }: { template: Template }) {
  return (
    <li className="card stack">
      <div className="card-head">
        <h2 lang="">
          <Link href={placeOf(template)}>{template.name}</Link>
        </h2>
        <Official template={template} />
        <div className="push">
          <Star template={template} />
        </div>
      </div>
      <p className="anywhere" lang="">
        {template.summary}
      </p>
      <Labels template={template} />
      <p className="small quiet">
        <span lang="">{template.author}</span> · {t('{n} use|{n} uses', { n: template.useNumber ?? 0 })} · <Ago ms={Date.parse(template.updatedAt ?? '')} />
      </p>
      <div className="row templates-foot">
        <LinkButton small href={`/submit?template=${template.id}`}>
          {t('Use')}
          <span className="hidden-text"> {template.name}</span>
        </LinkButton>
        <Status template={template} />
      </div>
    </li>
  )
}

function Labels({ template }: { template: Template }) {
  const words = [...(template.categories ?? []), ...(template.tags ?? [])]
  if (!words.length) return null
  return (
    <ul className="row templates-words" aria-label={t('Categories and tags')}>
      {words.map(({ name }, index) => (
        <li key={index} className="tag" lang="">
          {name}
        </li>
      ))}
    </ul>
  )
}

function Status({ template }: { template: Template }) {
  const text = template.status ? { pending: t('waits for approval'), approved: t('for everyone'), rejected: t('rejected') }[template.status] : template.isPrivate ? t('private') : t('for groups')
  return (
    <span className="tag" data-kind={template.status ?? undefined}>
      {text}
    </span>
  )
}

function Official({ template }: { template: Template }) {
  if (!template.official) return null
  return (
    <span className="tag" data-kind="approved" title={t('An administrator vouches for it')}>
      <span aria-hidden="true">✓ </span>
      {t('official')}
    </span>
  )
}

function Star({ template }: { template: Template }) {
  const queries = useQueryClient()
  const toast = useToast()
  const set = async () => {
    try {
      await templateStar(template.id, !template.starred)
      await queries.invalidateQueries({ queryKey: ['templates'] })
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
  }
  return (
    <Button small kind="plain" aria-pressed={template.starred ?? false} onClick={() => void set()}>
      <span aria-hidden="true">{template.starred ? '★' : '☆'}</span> {template.starNumber ?? 0}
      <span className="hidden-text"> {t('Star {name}', { name: template.name })}</span>
    </Button>
  )
}

/** Templates were kept by browsers once: they can be given to the server. */
function OldOnes({ user }: { user: string }) {
  const [old, setOld] = useState(() => oldTemplatesOf(user))
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const queries = useQueryClient()
  if (!old.length) return null
  const move = async () => {
    setError(null)
    try {
      for (const { name, text } of old) {
        await templateAdd({ name, protocol: withoutSecrets(text) })
        setOld(oldTemplateForget(user, name))
      }
    } catch (failure) {
      setError(failure)
    }
    await queries.invalidateQueries({ queryKey: ['templates'] })
  }
  return (
    <div className="note stack">
      <p>{t('This browser keeps {n} template of yours that the server does not have.|This browser keeps {n} templates of yours that the server does not have.', { n: old.length })}</p>
      {error !== null && <ErrorNote error={error} />}
      <div>
        <Button small disabled={isBusy} onClick={() => void during(move)}>
          {t('Move them to the server')}
        </Button>
      </div>
    </div>
  )
}

// ---- one of them ----

type Asked = 'change' | 'remove' | 'reject' | null

function One({ name }: { name: string }) {
  const session = sessionGet()
  const { data: template, error } = useQuery(templateQuery(name))
  const [asked, ask] = useState<Asked>(null)
  const [search, setSearch] = useSearch()
  const leaveFor = useWhileThere((item: string | null) => setSearch({ item, tab: null, version: null }))
  const [isCopying, during] = useBusy()
  const tab = search.get('tab') ?? 'about'
  const queries = useQueryClient()
  const undo = useUndo()
  const toast = useToast()
  if (!template)
    return (
      <div className="page">
        <h1 lang="">{name}</h1>
        {error ? <ErrorNote error={error} /> : <Loading />}
        <div>
          <LinkButton href="/templates">{t('All templates')}</LinkButton>
        </div>
      </div>
    )
  const fresh = () => queries.invalidateQueries({ queryKey: ['templates'] })
  const mayChange = session?.admin || session?.user === template.author
  const remove = async () => {
    await templateRemove(template.id)
    leaveFor(null)
    undo(t('The template {name} is removed.', { name: template.name }), () => templateBack(template).finally(() => void fresh()))
    queries.removeQueries({ queryKey: ['templates', 'one', name] })
    await fresh()
  }
  const copy = async () => {
    try {
      const mine = await queries.fetchQuery(templatesQuery(`author=${encodeURIComponent(session?.user ?? '')}`))
      const made = copyOf(template, mine.map((one) => one.name))
      await templateAdd(made)
      await fresh()
      toast(t('{name} is saved as a template.', { name: made.name }))
      leaveFor(`${session?.user}~${made.name}`)
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
  }
  const official = async () => {
    try {
      await templateOfficial(template, !template.official)
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
    await fresh()
  }
  const approve = async () => {
    try {
      await templateReview(template, 'approved', '')
      toast(t('Everyone sees {name} now.', { name: template.name }))
    } catch (failure) {
      toast(failure instanceof Error ? failure.message : String(failure), 'error')
    }
    await fresh()
  }
  return (
    <div className="page">
      <div className="page-head">
        <h1 className="anywhere" lang="">
          {template.name}
        </h1>
        <Status template={template} />
        <Official template={template} />
        <Star template={template} />
        <div className="row push">
          <Button disabled={isCopying} onClick={() => void during(copy)}>
            {t('Make a copy of my own')}
          </Button>
          {mayChange && <Button onClick={() => ask('change')}>{t('Change')}</Button>}
          {mayChange && (
            <Button kind="danger" onClick={() => ask('remove')}>
              {t('Remove')}
            </Button>
          )}
          <LinkButton kind="main" href={`/submit?template=${template.id}`}>
            {t('Use')}
          </LinkButton>
        </div>
      </div>
      {template.status === 'rejected' && (
        <p className="note" data-kind="error">
          {t('{user} did not approve it:', { user: template.reviewer ?? '' })} <Said>{template.reason}</Said>
        </p>
      )}
      {template.status === 'pending' && !session?.admin && (
        <p className="note" data-kind="wait">
          {t('Others see it once an administrator has approved it.')}
        </p>
      )}
      {session?.admin && template.isPublic && (
        <div className="note row" data-kind={template.status === 'pending' ? 'wait' : undefined}>
          <span>{template.status === 'approved' ? t('Everyone sees it.') : t('Its author wants everyone to see it. Read the job file first.')}</span>
          {template.status !== 'approved' && (
            <Button small kind="main" onClick={() => void approve()}>
              {t('Approve')}
            </Button>
          )}
          {template.status !== 'rejected' && (
            <Button small onClick={() => ask('reject')}>
              {t('Reject …')}
            </Button>
          )}
          {template.status === 'approved' && (
            <Button small aria-pressed={template.official ?? false} onClick={() => void official()}>
              {t('Official')}
            </Button>
          )}
        </div>
      )}
      <Tabs
        name="tab"
        keep={['item']}
        label={t('Parts of the template')}
        tabs={[{ id: 'about', title: t('Description') }, { id: 'detail', title: t('Detail') }, ...(mayChange ? [{ id: 'versions', title: t('Versions') }] : [])]}
      />
      {tab === 'detail' && <Detail text={template.protocol ?? ''} />}
      {tab === 'versions' && <Versions template={template} />}
      {tab === 'about' && <About template={template} />}
      <div>
        <Link href="/templates">{t('All templates')}</Link>
      </div>
      <Cli command={getCommand(template)} />
      {asked === 'change' && <TemplateDialog template={template} text="" suggested="" onClose={() => (ask(null), void fresh())} />}
      {asked === 'remove' && (
        <Confirm title={t('Remove the template {name}', { name: template.name })} action={t('Remove')} danger onClose={() => ask(null)} onConfirm={remove}>
          <p>{t('Jobs that were made from it stay.')}</p>
        </Confirm>
      )}
      {asked === 'reject' && <Reject template={template} onClose={() => ask(null)} />}
    </div>
  )
}

function About({ template }: { template: Template }) {
  return (
    <>
      <section className="card stack" aria-label={t('About it')}>
        {template.summary && (
          <p className="anywhere" lang="">
            {template.summary}
          </p>
        )}
        <Labels template={template} />
        <dl className="facts">
          <Fact title={t('Author')}>
            <span lang="">{template.author}</span>
          </Fact>
          <Fact title={t('Changed')}>
            <Ago ms={Date.parse(template.updatedAt ?? '')} />
          </Fact>
          <Fact title={t('Used')}>
            {t('{n} time|{n} times', { n: template.useNumber ?? 0 })}
            {template.usedAt && (
              <>
                , <Ago ms={Date.parse(template.usedAt)} />
              </>
            )}
          </Fact>
          {!!template.groupList?.length && (
            <Fact title={t('Groups')}>
              <span lang="">{template.groupList.join(', ')}</span>
            </Fact>
          )}
        </dl>
        {template.description && <Markdown text={template.description} />}
      </section>
      <section className="card stack" aria-label={t('Job file')}>
        <div className="card-head">
          <h2>{t('Job file')}</h2>
          <div className="push">
            <Copy text={template.protocol ?? ''} label={t('Copy the job file')} />
          </div>
        </div>
        <pre className="templates-file" tabIndex={0} role="region" aria-label={t('Job file, YAML')}>
          {template.protocol}
        </pre>
      </section>
    </>
  )
}

function Reject({ template, onClose }: { template: Template; onClose: () => void }) {
  const [error, setError] = useState<unknown>(null)
  const [isBusy, during] = useBusy()
  const close = useWhileThere(onClose)
  const queries = useQueryClient()
  const submit = async (event: FormEvent<HTMLFormElement>) => {
    event.preventDefault()
    try {
      await templateReview(template, 'rejected', String(new FormData(event.currentTarget).get('reason')).trim())
      close()
    } catch (failure) {
      setError(failure)
    }
    await queries.invalidateQueries({ queryKey: ['templates'] })
  }
  return (
    <Dialog title={t('Reject the template {name}', { name: template.name })} onClose={onClose}>
      <form className="stack" onSubmit={(event) => void during(() => submit(event))}>
        <Field label={t('Reason')} hint={t('Its author reads it.')}>
          {(props) => <input {...props} className="input" name="reason" required maxLength={512} autoComplete="off" />}
        </Field>
        {error !== null && <ErrorNote error={error} />}
        <div className="dialog-foot">
          <Button onClick={onClose}>{t('Cancel')}</Button>
          <Button type="submit" kind="danger" disabled={isBusy}>
            {t('Reject')}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
