// The editor of job files: CodeMirror with YAML, our completion from the schema, and problems at their lines.
//
// It lives in a shadow tree, where its styles are constructed sheets: the Content-Security-Policy allows no others.
import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap, indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { bracketMatching, HighlightStyle, indentOnInput, syntaxHighlighting } from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { search, searchKeymap } from '@codemirror/search'
import { Compartment, EditorState } from '@codemirror/state'
import { drawSelection, EditorView, highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import jobSchema from '../../../docs/schema/job-v2.json'
import type { Problem } from '../api/client'
import { variablesOfRoles } from '../lib/platform-variables'
import { formOf } from './job-file'
import { keysAt, pathOfLine, valuesAt, type Schema } from './schema'

const SCHEMA = jobSchema as unknown as Schema

const theme = EditorView.theme({
  '&': { height: '100%', fontSize: '13px', backgroundColor: 'var(--surface)', color: 'var(--text)' },
  '.cm-scroller': { fontFamily: 'var(--mono)', lineHeight: '1.55' },
  '.cm-content': { caretColor: 'var(--text)' },
  '.cm-cursor': { borderLeftColor: 'var(--text)' },
  '.cm-gutters': { backgroundColor: 'var(--sunken)', color: 'var(--text-quiet)', borderRight: '1px solid var(--line)' },
  '.cm-activeLine': { backgroundColor: 'color-mix(in srgb, var(--selected) 45%, transparent)' },
  '.cm-activeLineGutter': { backgroundColor: 'var(--selected)', color: 'var(--text)' },
  '&.cm-focused .cm-selectionBackground, .cm-selectionBackground': { backgroundColor: 'var(--selected) !important' },
  '&.cm-focused': { outline: '2px solid var(--focus)', outlineOffset: '-2px' },
  '.cm-tooltip, .cm-panels': { backgroundColor: 'var(--raised)', color: 'var(--text)', border: '1px solid var(--line-strong)' },
  '.cm-tooltip-autocomplete ul li[aria-selected]': { backgroundColor: 'var(--selected)', color: 'var(--text)' },
  '.cm-completionDetail': { color: 'var(--text-quiet)', fontStyle: 'normal' },
  '.cm-button, .cm-textfield': { backgroundColor: 'var(--surface)', backgroundImage: 'none', color: 'var(--text)', border: '1px solid var(--line-strong)' },
})

const colours = HighlightStyle.define([
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: 'var(--running)' },
  { tag: [tags.string, tags.content], color: 'var(--text)' },
  { tag: [tags.number, tags.bool, tags.null, tags.keyword], color: 'var(--stopping)' },
  { tag: tags.comment, color: 'var(--text-quiet)', fontStyle: 'italic' },
  { tag: [tags.labelName, tags.typeName, tags.meta], color: 'var(--accent)' },
])

function complete(context: CompletionContext): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos)
  const before = line.text.slice(0, context.pos - line.from)
  const variable = /\$\{?([A-Z][A-Z_]*)?$/.exec(before)
  if (variable && (variable[1] || context.explicit)) {
    const roles = formOf(context.state.doc.toString())?.roles.map(({ name }) => name) ?? []
    const options = variablesOfRoles(roles).map(([label, detail]) => ({ label, detail, type: 'variable' }))
    return { from: context.pos - (variable[1] ?? '').length, options }
  }
  const lines = context.state.doc.toString().split('\n')
  const value = /^(\s*(?:- +)*)([\w.-]+):\s+(\S*)$/.exec(before)
  if (value) {
    const [, lead = '', key = '', typed = ''] = value
    const path = pathOfLine(lines, line.number - 1, lead.length)
    const options = valuesAt(SCHEMA, [...path, ...(lead.includes('-') ? [0] : []), key]).map((label) => ({ label, type: 'enum' }))
    return options.length ? { from: context.pos - typed.length, options } : null
  }
  const key = /^(\s*(?:- +)*)([\w.-]*)$/.exec(before)
  if (!key || (!key[2] && !context.explicit)) return null
  const [, lead = '', typed = ''] = key
  const path = [...pathOfLine(lines, line.number - 1, lead.includes('-') ? lead.indexOf('-') : lead.length), ...(lead.includes('-') ? [0] : [])]
  const options = keysAt(SCHEMA, path).map((choice) => ({
    label: choice.label,
    apply: choice.isContainer ? `${choice.label}:` : `${choice.label}: `,
    detail: choice.detail,
    type: 'property',
  }))
  return options.length ? { from: context.pos - typed.length, options } : null
}

export interface Editor {
  text(): string
  setText(text: string): void
  setProblems(problems: Problem[]): void
  goTo(line: number): void
  destroy(): void
}

export function editorNew(host: HTMLElement, text: string, label: string, onChange: ((text: string) => void) | null): Editor {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  const editable = new Compartment()
  let isOurs = false // what we put in is no change by the user
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        lineNumbers(),
        history(),
        drawSelection(),
        highlightActiveLine(),
        indentOnInput(),
        bracketMatching(),
        search(),
        yaml(),
        syntaxHighlighting(colours),
        theme,
        lintGutter(),
        autocompletion({ override: [complete] }),
        keymap.of([...completionKeymap, ...lintKeymap, ...searchKeymap, ...historyKeymap, ...defaultKeymap, indentWithTab]),
        EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
        EditorView.lineWrapping,
        editable.of([EditorState.readOnly.of(!onChange)]),
        EditorView.updateListener.of((update) => {
          if (update.docChanged && !isOurs) onChange?.(update.state.doc.toString())
        }),
      ],
    }),
  })
  const lineOf = (number: number) => view.state.doc.line(Math.max(1, Math.min(number, view.state.doc.lines)))
  return {
    text: () => view.state.doc.toString(),
    setText(next) {
      const now = view.state.doc.toString()
      if (now === next) return
      // only what differs, so that the caret stays
      let from = 0
      while (from < now.length && from < next.length && now[from] === next[from]) from++
      let end = 0
      while (end < now.length - from && end < next.length - from && now[now.length - 1 - end] === next[next.length - 1 - end]) end++
      isOurs = true
      view.dispatch({ changes: { from, to: now.length - end, insert: next.slice(from, next.length - end) } })
      isOurs = false
    },
    setProblems(problems) {
      const diagnostics: Diagnostic[] = problems.map((problem) => {
        const line = lineOf(problem.line ?? 1)
        const from = Math.min(line.to, line.from + Math.max(0, (problem.column ?? 1) - 1))
        return {
          from,
          to: Math.max(from, line.to),
          severity: problem.warning ? 'warning' : 'error',
          message: [problem.path, problem.message].filter(Boolean).join(': ') + (problem.hint ? ` (${problem.hint})` : ''),
        }
      })
      diagnostics.sort((a, b) => a.from - b.from)
      view.dispatch(setDiagnostics(view.state, diagnostics))
    },
    goTo(number) {
      const line = lineOf(number)
      view.dispatch({ selection: { anchor: line.from }, scrollIntoView: true })
      view.focus()
    },
    destroy: () => view.destroy(),
  }
}
