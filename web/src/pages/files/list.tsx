// What is in a folder: as many rows as are in sight, however many there are.
import { useVirtualizer } from '@tanstack/react-virtual'
import { useEffect, useMemo, useRef, useState, type KeyboardEvent } from 'react'
import { languageGet, t } from '../../i18n/i18n'
import { filesHref, filesShown, ORDERS, orderOf, pathJoin, type Order, type StorageFile } from '../../lib/files'
import { bytes } from '../../lib/format'
import { Link, navigate, useSearch } from '../../router'
import { GO_TO_FROM, GoTo } from '../../ui/go-to'
import { useNarrow } from '../../ui/narrow'
import { Ago, Button, Empty, ErrorNote } from '../../ui/ui'

const ROW_PX = 33
const HEAD_PX = 37
const ROW_NARROW_PX = 68 // what can be done stands below the name

interface Props {
  storage: string
  path: string
  files: StorageFile[]
  error: unknown // of the last try to read it again
  isWritable: boolean
  isFetching: boolean
  onReload: () => void
  onDownload: (file: StorageFile) => void
  onRename: (file: StorageFile) => void
  onRemove: (files: StorageFile[]) => void
}

type CellProps = Pick<Props, 'storage' | 'path' | 'isWritable' | 'onDownload' | 'onRename'> & { file: StorageFile; isChosen: boolean; isAt: boolean; isNarrow: boolean; onChoose: () => void; onRemove: () => void }

/** Of the row that the keyboard is on Tab goes through what can be done; the others are reached by the arrow keys. */
function Cells({ file, storage, path, isWritable, isChosen, isAt, isNarrow, onChoose, onDownload, onRename, onRemove }: CellProps) {
  const { name, kind } = file
  const tabIndex = isAt ? 0 : -1
  return (
    <>
      {isWritable && (
        <div role="gridcell">
          <input type="checkbox" tabIndex={tabIndex} aria-label={t('Select {name}', { name })} checked={isChosen} onChange={onChoose} />
        </div>
      )}
      <div role="rowheader" title={name} lang="">
        {kind === 'folder' ? (
          <Link tabIndex={tabIndex} href={filesHref(storage, pathJoin(path, name))}>
            {name}/
          </Link>
        ) : (
          name
        )}
        {kind === 'other' && (
          <span className="small quiet" lang={languageGet()}>
            {' '}
            {t('no plain file')}
          </span>
        )}
      </div>
      <div role="gridcell" className="number">
        {kind === 'file' ? <span title={`${file.size} B`}>{bytes(file.size)}</span> : '–'}
      </div>
      {!isNarrow && (
        <div role="gridcell">
          <Ago ms={file.changedTime} />
        </div>
      )}
      <div role="gridcell" className="file-actions">
        {kind === 'file' && (
          <Button small tabIndex={tabIndex} aria-label={t('Download {name}', { name })} onClick={() => onDownload(file)}>
            {t('Download')}
          </Button>
        )}
        {isWritable && (
          <>
            <Button small tabIndex={tabIndex} aria-label={t('Rename or move {name}', { name })} onClick={() => onRename(file)}>
              {t('Rename …')}
            </Button>
            <Button small tabIndex={tabIndex} kind="danger" aria-label={t('Delete {name}', { name })} onClick={onRemove}>
              {t('Delete …')}
            </Button>
          </>
        )}
      </div>
    </>
  )
}

interface GridProps extends Props {
  shown: StorageFile[]
  chosen: ReadonlySet<string>
  setChosen: (names: ReadonlySet<string>) => void
}

function FileGrid(props: GridProps) {
  const { storage, path, shown, chosen, setChosen, isWritable, onDownload, onRemove } = props
  const [search, change] = useSearch()
  const order = orderOf(search.get('order'))
  const isNarrow = useNarrow()
  const rowPx = isNarrow ? ROW_NARROW_PX : ROW_PX
  const [wanted, setAt] = useState(0)
  const box = useRef<HTMLDivElement>(null)
  const virtual = useVirtualizer({ count: shown.length, getScrollElement: () => box.current, estimateSize: () => rowPx, overscan: 12 })
  useEffect(() => virtual.measure(), [rowPx, virtual])
  const items = virtual.getVirtualItems()
  const at = items.some(({ index }) => index === wanted) ? wanted : (items[0]?.index ?? 0) // one that is there, so that Tab finds it
  const check = isWritable ? '34px ' : ''
  const template = isNarrow ? `${check}minmax(0, 1fr) 92px` : `${check}minmax(150px, 1fr) 96px 124px ${isWritable ? '292px' : '120px'}`
  const titles: Record<Order, string> = { name: t('Name'), size: t('Size'), changed: t('Changed') }
  const isAll = shown.every(({ name }) => chosen.has(name))
  const sortBy = (by: Order) => {
    const isDescending = order.by === by ? !order.isDescending : by !== 'name'
    change({ order: by === 'name' && !isDescending ? null : `${by},${isDescending ? 'DESC' : 'ASC'}` })
  }
  const choose = (name: string) => {
    const next = new Set(chosen)
    if (!next.delete(name)) next.add(name)
    setChosen(next)
  }
  const focus = (index: number) => {
    const to = Math.max(0, Math.min(shown.length - 1, index))
    setAt(to)
    virtual.scrollToIndex(to)
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>(`[data-index="${to}"]`)?.focus())
  }
  const open = (file: StorageFile) => {
    if (file.kind === 'folder') navigate(filesHref(storage, pathJoin(path, file.name)))
    if (file.kind === 'file') onDownload(file)
  }
  const onKey = (event: KeyboardEvent) => {
    if (!(event.target instanceof HTMLElement) || event.target.role !== 'row') return
    const page = Math.max(1, Math.floor((box.current?.clientHeight ?? 300) / rowPx) - 2)
    const steps: Record<string, number> = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: shown.length - 1 }
    const to = steps[event.key]
    const file = shown[at]
    if (to !== undefined) focus(to)
    else if (event.key === ' ' && isWritable && file) choose(file.name)
    else if (event.key === 'Enter' && file) open(file)
    else return
    event.preventDefault()
  }
  return (
    <>
      {shown.length > GO_TO_FROM && <GoTo label={t('Go to row')} max={shown.length} onGo={(number) => focus(number - 1)} />}
      <div
        className="grid file-grid"
        ref={box}
        role="grid"
        aria-label={t('What is in the folder')}
        aria-rowcount={shown.length + 1}
        aria-multiselectable={isWritable}
        data-wide={isWritable || undefined}
        style={{ height: shown.length * rowPx + HEAD_PX + 2 }}
        onKeyDown={onKey}
      >
        <div role="rowgroup">
          <div className="grid-head" role="row" aria-rowindex={1} style={{ gridTemplateColumns: template }}>
            {isWritable && (
              <div role="columnheader">
                <input type="checkbox" aria-label={t('Select all')} checked={isAll} onChange={() => setChosen(isAll ? new Set() : new Set(shown.map(({ name }) => name)))} />
              </div>
            )}
            {ORDERS.filter((by) => !isNarrow || by !== 'changed').map((by) => (
              <div key={by} role="columnheader" className={by === 'size' ? 'number' : undefined} aria-sort={order.by === by ? (order.isDescending ? 'descending' : 'ascending') : undefined}>
                <button type="button" onClick={() => sortBy(by)}>
                  {titles[by]} {order.by === by ? (order.isDescending ? '▼' : '▲') : ''}
                </button>
              </div>
            ))}
            <div role="columnheader" className={isNarrow ? 'hidden-text' : undefined}>
              <span className="hidden-text">{t('Actions')}</span>
            </div>
          </div>
        </div>
        <div className="grid-rows" role="rowgroup" style={{ height: virtual.getTotalSize() }}>
          {items.map((item) => {
            const file = shown[item.index]!
            const isAt = item.index === at
            return (
              <div
                key={item.key}
                role="row"
                data-index={item.index}
                aria-rowindex={item.index + 2}
                aria-selected={isWritable ? chosen.has(file.name) : undefined}
                tabIndex={isAt ? 0 : -1}
                className="grid-row"
                style={{ gridTemplateColumns: template, height: rowPx, transform: `translateY(${item.start}px)` }}
                onFocus={() => setAt(item.index)}
              >
                <Cells {...props} file={file} isChosen={chosen.has(file.name)} isAt={isAt} isNarrow={isNarrow} onChoose={() => choose(file.name)} onRemove={() => onRemove([file])} />
              </div>
            )
          })}
        </div>
      </div>
    </>
  )
}

export function FileList(props: Props) {
  const { files, error, isWritable, isFetching, onReload, onRemove } = props
  const [search, change] = useSearch()
  const { by, isDescending } = orderOf(search.get('order'))
  const text = search.get('q') ?? ''
  const shown = useMemo(() => filesShown(files, text, { by, isDescending }), [files, text, by, isDescending])
  const [names, setNames] = useState<ReadonlySet<string>>(new Set())
  useEffect(() => {
    // another file that gets the name of one that is gone has not been selected
    const there = new Set(files.map(({ name }) => name))
    setNames((before) => new Set([...before].filter((name) => there.has(name))))
  }, [files])
  const chosen = useMemo(() => shown.filter(({ name }) => names.has(name)), [shown, names])
  return (
    <section className="stack" aria-label={t('What is in the folder')}>
      <div className="row">
        <input type="search" className="input" aria-label={t('Name, or a part of it')} placeholder={t('Name, or a part of it')} value={text} onChange={(event) => change({ q: event.target.value })} />
        <span className="small quiet" role="status">
          {text ? t('{shown} of {n} entry|{shown} of {n} entries', { shown: shown.length, n: files.length }) : t('{n} entry|{n} entries', { n: files.length })}
        </span>
        <div className="row push">
          {chosen.length > 0 && (
            <Button small kind="danger" onClick={() => onRemove(chosen)}>
              {t('Delete {n} selected …|Delete {n} selected …', { n: chosen.length })}
            </Button>
          )}
          <Button small disabled={isFetching} onClick={onReload}>
            {t('Read it again')}
          </Button>
        </div>
      </div>
      {error !== null && <ErrorNote error={error} />}
      {shown.length > 0 ? (
        <FileGrid {...props} shown={shown} chosen={names} setChosen={setNames} />
      ) : (
        <div className="card">
          <Empty title={text ? t('Nothing here has such a name') : t('This folder is empty')}>{!text && isWritable && <p>{t('Upload files or make a folder.')}</p>}</Empty>
        </div>
      )}
    </section>
  )
}
