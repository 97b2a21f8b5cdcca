// What differs between two job files, by lines.
import { t } from '../i18n/i18n'
import { diffLines } from '../lib/diff'
import '../style/submit.css'

export function Diff({ before, after }: { before: string; after: string }) {
  const lines = diffLines(before, after)
  if (lines.every((line) => line.kind === 'same')) return <p className="note">{t('The two job files are the same.')}</p>
  return (
    <pre className="code diff" tabIndex={0} aria-label={t('What differs')}>
      {lines.map((line, index) => (
        <div key={index} data-kind={line.kind}>
          {line.kind === 'old' ? '- ' : line.kind === 'new' ? '+ ' : '  '}
          {line.text}
        </div>
      ))}
    </pre>
  )
}
