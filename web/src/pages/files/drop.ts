// Files and folders that are dropped on the page. Elsewhere the browser would open them in its place.
import { useEffect, useState } from 'react'

const hasFiles = (event: DragEvent) => !!event.dataTransfer?.types.includes('Files')

/** Files, and folders that are still to be read. */
export interface Dropped {
  files: File[]
  folders: FileSystemEntry[]
}

/** They are there only as long as the event is. */
function partsOf(transfer: DataTransfer): Dropped {
  const parts: Dropped = { files: [], folders: [] }
  for (const item of transfer.items) {
    if (item.kind !== 'file') continue
    const entry = item.webkitGetAsEntry()
    const file = item.getAsFile()
    if (entry?.isDirectory) parts.folders.push(entry)
    else if (file) parts.files.push(file)
  }
  return parts
}

/** Are files above the page? Without `onDropped` nothing is taken. */
export function useDrop(onDropped: ((parts: Dropped) => void) | null): boolean {
  const [isOver, setOver] = useState(false)
  useEffect(() => {
    const over = (event: DragEvent) => {
      if (!hasFiles(event)) return
      event.preventDefault()
      const isTaken = !!onDropped && !document.querySelector('dialog[open]')
      event.dataTransfer!.dropEffect = isTaken ? 'copy' : 'none'
      setOver(isTaken)
    }
    const leave = (event: DragEvent) => {
      if (!event.relatedTarget) setOver(false)
    }
    const drop = (event: DragEvent) => {
      setOver(false)
      if (!hasFiles(event)) return
      event.preventDefault()
      if (onDropped && !document.querySelector('dialog[open]')) onDropped(partsOf(event.dataTransfer!))
    }
    addEventListener('dragover', over)
    addEventListener('dragleave', leave)
    addEventListener('drop', drop)
    return () => {
      removeEventListener('dragover', over)
      removeEventListener('dragleave', leave)
      removeEventListener('drop', drop)
    }
  })
  return isOver
}
