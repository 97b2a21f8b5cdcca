import { sessionGet } from '../api/client'
import type { Storage } from '../api/queries'
import { t } from '../i18n/i18n'
import { storageCommands } from '../lib/storages'
import { Copy } from './ui'

/** How files get there from a machine that reaches the server of the storage; nothing where nobody has said which that is. */
export function StorageCommands({ storage }: { storage: Pick<Storage, 'name' | 'type' | 'data' | 'share'> }) {
  const commands = storageCommands(storage, sessionGet()?.user ?? '')
  const title = t('How files get to {name}', { name: storage.name ?? '' })
  if (!commands.length) return null
  return (
    <details className="small grow">
      <summary>{title}</summary>
      <div className="row row-line">
        <code className="grow anywhere">
          {commands.map((command) => (
            <div key={command}>{command}</div>
          ))}
        </code>
        <Copy text={commands.join('\n')} label={t('Copy: {what}', { what: title })} />
      </div>
    </details>
  )
}
