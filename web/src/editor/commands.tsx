// The commands of a task role: an editor of shell lines. The Tab key leaves it, as it leaves every other field of the form.
import { StreamLanguage } from '@codemirror/language'
import { shell } from '@codemirror/legacy-modes/mode/shell'
import { EditorView } from '@codemirror/view'
import { useEffect, useRef } from 'react'
import { completeVariable, mount, type Mounted } from './view'

const look = EditorView.theme({ '.cm-content': { padding: '6px 0' }, '.cm-line': { padding: '0 8px' } })

export default function Commands({ text, label, roles, onChange }: { text: string; label: string; roles: string[]; onChange: (text: string) => void }) {
  const host = useRef<HTMLDivElement>(null)
  const editor = useRef<Mounted | null>(null)
  const now = useRef({ roles, onChange })
  now.current = { roles, onChange }
  useEffect(() => {
    const made = mount(host.current!, text, label, (context) => completeVariable(context, () => now.current.roles), [StreamLanguage.define(shell), look], (next) => now.current.onChange(next))
    editor.current = made
    return () => {
      made.destroy()
      editor.current = null
    }
    // made once; what follows changes it
  }, [label])
  useEffect(() => editor.current?.setText(text), [text])
  return <div className="code-host" ref={host} />
}
