// What a template asks for, read from its job file as the form of the submission reads it.
import { formOf } from '../../editor/job-file'
import { prerequisitesOf } from '../../editor/job-detail'
import { mountPathOf } from '../../editor/job-extras'
import { t } from '../../i18n/i18n'
import { mebibytes } from '../../lib/format'
import { Fact } from '../../ui/ui'

export function Detail({ text }: { text: string }) {
  const form = formOf(text)
  if (!form) return <p className="note">{t('The job file is no map, so that nothing can be read from it.')}</p>
  const uriOf = (image: string) => form.images.find(({ name }) => name === image)?.uri ?? image
  const amount = (value: string, shown: string) => (value ? shown : '–')
  const kinds = { data: t('Data'), script: t('Code'), output: t('Output') }
  const prerequisites = prerequisitesOf(text)
  return (
    <>
      {form.roles.map((role) => (
        <section key={role.name} className="card stack" aria-label={t('Task role {name}', { name: role.name })}>
          <h2 className="anywhere" lang="">
            {role.name}
          </h2>
          <dl className="facts">
            <Fact title={t('Instances')}>{role.instances || '1'}</Fact>
            <Fact title={t('Image')}>
              <span className="anywhere" lang="">
                {uriOf(role.image)}
              </span>
            </Fact>
            {role.skuType && <Fact title={t('Type')}>{role.skuType}</Fact>}
            <Fact title={t('GPUs')}>{amount(role.gpu, role.gpu)}</Fact>
            <Fact title={t('CPUs')}>{amount(role.cpu, role.cpu)}</Fact>
            <Fact title={t('Memory')}>{amount(role.memoryMB, mebibytes(Number(role.memoryMB)))}</Fact>
            {role.shmMB && <Fact title={t('Shared memory')}>{mebibytes(Number(role.shmMB))}</Fact>}
            <Fact title={t('Ports')}>{role.ports.map(([label, count]) => `${label} × ${count}`).join(', ') || '–'}</Fact>
          </dl>
          <h3>{t('Commands')}</h3>
          <pre className="templates-file" tabIndex={0} role="region" aria-label={t('Commands of {name}', { name: role.name })}>
            {role.commands}
          </pre>
        </section>
      ))}
      <section className="card stack" aria-label={t('Data and storages')}>
        <h2>{t('Data and storages')}</h2>
        {form.hasDefaultStorages && <p>{t('The default storages of who submits it.')}</p>}
        {!form.hasDefaultStorages && !form.storages.length && !prerequisites.length && <p className="quiet">{t('It asks for none.')}</p>}
        <dl className="facts">
          {form.storages.map(({ name, mountPath }) => (
            <Fact key={name} title={t('Storage {name}', { name })}>
              <code className="anywhere">{mountPath || mountPathOf(name)}</code>
            </Fact>
          ))}
          {prerequisites.map(({ type, name, uris }) => (
            <Fact key={`${type} ${name}`} title={`${kinds[type]}: ${name}`}>
              <span className="anywhere" lang="">
                {uris.join(', ') || '–'}
              </span>
            </Fact>
          ))}
        </dl>
      </section>
    </>
  )
}
