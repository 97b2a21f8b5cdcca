// The editor of job files: CodeMirror with YAML, our completion from the schema, and problems at their lines.
import type { CompletionContext, CompletionResult } from '@codemirror/autocomplete'
import { indentWithTab } from '@codemirror/commands'
import { yaml } from '@codemirror/lang-yaml'
import { indentOnInput } from '@codemirror/language'
import { lintGutter, lintKeymap, setDiagnostics, type Diagnostic } from '@codemirror/lint'
import { search, searchKeymap } from '@codemirror/search'
import { highlightActiveLine, keymap, lineNumbers } from '@codemirror/view'
import jobSchema from '../../../docs/schema/job-v2.json'
import type { Problem } from '../api/client'
import { formOf } from './job-file'
import { keysAt, pathOfLine, valuesAt, type Schema } from './schema'
import { completeVariable, mount } from './view'

const SCHEMA = jobSchema as unknown as Schema

function complete(context: CompletionContext): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos)
  const before = line.text.slice(0, context.pos - line.from)
  const variable = completeVariable(context, () => formOf(context.state.doc.toString())?.roles.map(({ name }) => name) ?? [])
  if (variable) return variable
  const lines = context.state.doc.toString().split('\n')
  const value = /^(\s*(?:- +)*)([\w.-]+):\s+(\S*)$/.exec(before)
  if (value) {
    const [, lead = '', key = '', typed = ''] = value
    const path = pathOfLine(lines, line.number - 1, lead.length)
    const options = valuesAt(SCHEMA, [...path, ...(lead.includes('-') ? [0] : []), key]).map((label) => ({ label, type: 'enum' }))
    return options.length ? { from: context.pos - typed.length, options, validFor: /^\S*$/ } : null
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
  return options.length ? { from: context.pos - typed.length, options, validFor: /^[\w.-]+$/ } : null
}

export interface Editor {
  text(): string
  setText(text: string): void
  setProblems(problems: Problem[]): void
  goTo(line: number): void
  destroy(): void
}

export function editorNew(host: HTMLElement, text: string, label: string, onChange: ((text: string) => void) | null): Editor {
  const more = [lineNumbers(), highlightActiveLine(), indentOnInput(), search(), yaml(), lintGutter(), keymap.of([...lintKeymap, ...searchKeymap, indentWithTab])]
  const { view, ...rest } = mount(host, text, label, complete, more, onChange)
  const lineOf = (number: number) => view.state.doc.line(Math.max(1, Math.min(number, view.state.doc.lines)))
  return {
    ...rest,
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
  }
}
