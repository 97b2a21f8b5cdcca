import { useEffect, useImperativeHandle, useRef, type Ref } from 'react'
import type { Problem } from '../api/client'
import { editorNew, type Editor } from './editor'

export interface CodeHandle {
  goTo: (line: number) => void
}

const NONE: Problem[] = []

/** The editor as a component; without `onChange` it only shows. */
export default function Code({ text, label, problems = NONE, onChange, ref }: { text: string; label: string; problems?: Problem[]; onChange?: (text: string) => void; ref?: Ref<CodeHandle> }) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<Editor | null>(null)
  const change = useRef(onChange)
  change.current = onChange
  useEffect(() => {
    const made = editorNew(host.current!, text, label, onChange ? (next) => change.current?.(next) : null)
    editor.current = made
    return () => {
      made.destroy()
      editor.current = null
    }
    // made once; what follows changes it
  }, [label])
  useEffect(() => editor.current?.setText(text), [text])
  useEffect(() => editor.current?.setProblems(problems), [problems])
  useImperativeHandle(ref, () => ({ goTo: (line) => editor.current?.goTo(line) }), [])
  return <div className="code-host" ref={host} />
}
