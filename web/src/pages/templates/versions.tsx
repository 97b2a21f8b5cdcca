// What a template says now and said before: each can be compared with what it says now, and taken back.
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { useState } from 'react'
import { templateRestore, templateVersionQuery, templateVersionsQuery, type Template } from '../../api/templates'
import { t } from '../../i18n/i18n'
import { useSearch } from '../../router'
import { Diff } from '../../ui/diff'
import { Ago, Button, Confirm, ErrorNote, Loading, TableCard, useToast } from '../../ui/ui'

export function Versions({ template }: { template: Template }) {
  const { data, error } = useQuery(templateVersionsQuery(template.id))
  const [search, change] = useSearch()
  const [restored, restore] = useState(0)
  const queries = useQueryClient()
  const toast = useToast()
  const shown = Number(search.get('version')) || 0
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  const confirm = async () => {
    const reply = await templateRestore(template, restored)
    toast(reply.status === 'pending' ? t('{name} is saved. Others see it once an administrator has approved it.', { name: template.name }) : t('{name} is saved as a template.', { name: template.name }))
    change({ version: null })
    await queries.invalidateQueries({ queryKey: ['templates'] })
  }
  return (
    <>
      <TableCard label={t('Versions')} heads={[{ number: t('Version') }, t('Saved'), t('By'), t('Summary'), { hidden: t('Actions') }]} foot={<p className="small quiet foot-note">{t('The newest {n} are kept. Only its author and administrators see them.', { n: 10 })}</p>}>
        {data.map(({ version, current, editor, savedAt, summary }) => (
          <tr key={version}>
            <th scope="row" className="number">
              {version}
            </th>
            <td className="nowrap">
              <Ago ms={Date.parse(savedAt)} />
            </td>
            <td lang="">{editor}</td>
            <td className="anywhere" lang="">
              {summary}
            </td>
            <td>
              {current ? (
                <span className="tag">{t('current')}</span>
              ) : (
                <div className="row">
                  <Button small aria-pressed={shown === version} aria-label={t('Compare version {n} with the current one', { n: version })} onClick={() => change({ version: shown === version ? null : String(version) })}>
                    {t('Compare')}
                  </Button>
                  <Button small aria-label={t('Take back version {n}', { n: version })} onClick={() => restore(version)}>
                    {t('Take back …')}
                  </Button>
                </div>
              )}
            </td>
          </tr>
        ))}
      </TableCard>
      {shown > 0 && <Difference key={shown} template={template} version={shown} />}
      {restored > 0 && (
        <Confirm title={t('Take version {n} of {name} back?', { n: restored, name: template.name })} action={t('Take back')} onClose={() => restore(0)} onConfirm={confirm}>
          <p>{t('Its summary, description, job file, categories and tags become those of that version. What they are now stays as a version.')}</p>
        </Confirm>
      )}
    </>
  )
}

function Difference({ template, version }: { template: Template; version: number }) {
  const { data, error } = useQuery(templateVersionQuery(template.id, version))
  if (error) return <ErrorNote error={error} />
  if (!data) return <Loading />
  return (
    <section className="card stack" aria-label={t('What differs from version {n}', { n: version })}>
      <h2>{t('What differs from version {n}', { n: version })}</h2>
      <Diff before={data.protocol ?? ''} after={template.protocol ?? ''} />
      {data.description !== template.description && (
        <>
          <h3>{t('Description')}</h3>
          <Diff before={data.description ?? ''} after={template.description ?? ''} />
        </>
      )}
    </section>
  )
}
