// Whole folders before their files are on their way: they are read on this computer, and made in the storage.
import { useCallback, useEffect, useRef, useState } from 'react'
import { folderMake, uploads } from '../../api/files'
import { t } from '../../i18n/i18n'
import { foldersMake, treeOfEntries, treeOfFiles, type Entry, type Tree } from '../../lib/trees'
import { waitMs } from '../../lib/uploads'
import { Button, ErrorNote, useToast } from '../../ui/ui'

type Stage = { kind: 'reading'; count: number } | { kind: 'making'; count: number; of: number } | { kind: 'failed'; error: unknown }

export interface TreeUpload {
  stage: Stage | null
  ofFiles: (files: File[]) => void
  ofEntries: (entries: Entry[]) => void
  end: () => void
}

/** One at a time: what is begun meanwhile ends the one before. */
export function useTreeUpload(storage: string, path: string, fresh: () => Promise<unknown>): TreeUpload {
  const [stage, setStage] = useState<Stage | null>(null)
  const stop = useRef<AbortController | null>(null)
  const end = useCallback(() => {
    stop.current?.abort()
    stop.current = null
    setStage(null)
  }, [])
  const toast = useToast()
  const isHere = useRef(false) // as uploads, it goes on while one looks at other pages
  useEffect(() => {
    isHere.current = true
    return () => void (isHere.current = false)
  }, [])

  const run = useCallback(
    async (read: (signal: AbortSignal, onCount: (count: number) => void) => Promise<Tree>) => {
      end()
      const own = new AbortController()
      const { signal } = own
      stop.current = own
      const show = (next: Stage) => {
        if (!signal.aborted) setStage(next)
      }
      try {
        show({ kind: 'reading', count: 0 })
        const { folders, files } = await read(signal, (count) => show({ kind: 'reading', count }))
        await foldersMake(folders, (one) => folderMake(storage, one), waitMs, signal, (count) => show({ kind: 'making', count, of: folders.length }))
        signal.throwIfAborted()
        setStage(null)
        uploads.add(storage, files)
      } catch (error) {
        if (isHere.current) show({ kind: 'failed', error })
        else if (!signal.aborted) toast(error instanceof Error ? error.message : String(error), 'error')
      }
      await fresh()
    },
    [storage, end, fresh, toast],
  )
  return {
    stage,
    end,
    ofFiles: (files) => void run(() => Promise.resolve().then(() => treeOfFiles(path, files))),
    ofEntries: (entries) => void run((signal, onCount) => treeOfEntries(path, entries, signal, onCount)),
  }
}

export function TreeStage({ upload: { stage, end } }: { upload: TreeUpload }) {
  if (!stage) return null
  if (stage.kind === 'failed')
    return (
      <ErrorNote error={stage.error}>
        <Button small onClick={end}>
          {t('Close')}
        </Button>
      </ErrorNote>
    )
  const text = stage.kind === 'reading' ? t('Reading the folder: {n} entry …|Reading the folder: {n} entries …', { n: stage.count }) : t('Making folders: {count} of {of} …', { count: stage.count, of: stage.of })
  return (
    <div className="card row">
      <span role="status">{text}</span>
      {stage.kind === 'making' && <progress aria-label={t('Folders made')} max={stage.of} value={stage.count} />}
      <Button small onClick={end}>
        {t('Cancel')}
      </Button>
    </div>
  )
}
