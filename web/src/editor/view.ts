// What all editors share: how they look, and the CodeMirror in its place.
//
// It lives in a shadow tree, where its styles are constructed sheets: the Content-Security-Policy allows no others.
import { autocompletion, completionKeymap, type CompletionContext, type CompletionResult, type CompletionSource } from '@codemirror/autocomplete'
import { defaultKeymap, history, historyKeymap } from '@codemirror/commands'
import { bracketMatching, HighlightStyle, syntaxHighlighting } from '@codemirror/language'
import { EditorState, type Extension } from '@codemirror/state'
import { drawSelection, EditorView, keymap } from '@codemirror/view'
import { tags } from '@lezer/highlight'
import { variablesOfRoles } from '../lib/platform-variables'

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

const VARIABLE = /^[A-Z][A-Z_]*$/

/** Of `$` and what follows it: the variables of the platform. null: no such thing stands before the caret. */
export function completeVariable(context: CompletionContext, roles: () => string[]): CompletionResult | null {
  const line = context.state.doc.lineAt(context.pos)
  const variable = /\$\{?([A-Z][A-Z_]*)?$/.exec(line.text.slice(0, context.pos - line.from))
  if (!variable || (!variable[1] && !context.explicit)) return null
  const options = variablesOfRoles(roles()).map(([label, detail]) => ({ label, detail, type: 'variable' }))
  return { from: context.pos - (variable[1] ?? '').length, options, validFor: VARIABLE }
}

// Where text is typed over a selection, the browser would keep the colours of what stood there by a style attribute, which the
// Content-Security-Policy refuses.
const typeOver = EditorView.domEventHandlers({
  beforeinput(event, view) {
    if (event.inputType !== 'insertText' || !event.data || view.composing || view.state.readOnly || view.state.selection.main.empty) return false
    view.dispatch(view.state.replaceSelection(event.data), { userEvent: 'input.type', scrollIntoView: true })
    event.preventDefault()
    return true
  },
})

export interface Mounted {
  view: EditorView
  text(): string
  setText(text: string): void
  destroy(): void
}

const TOLD_MAX = 200

/** Without `onChange` it only shows. */
export function mount(host: HTMLElement, text: string, label: string, complete: CompletionSource, extensions: Extension[], onChange: ((text: string) => void) | null): Mounted {
  const root = host.shadowRoot ?? host.attachShadow({ mode: 'open' })
  let isOurs = false // what we put in is no change by the user
  let told: string[] = [] // what the user made of it, and setText has not said yet
  const view = new EditorView({
    parent: root,
    root,
    state: EditorState.create({
      doc: text,
      extensions: [
        history(),
        drawSelection(),
        bracketMatching(),
        syntaxHighlighting(colours),
        theme,
        typeOver,
        autocompletion({ override: [complete] }),
        extensions,
        keymap.of([...completionKeymap, ...historyKeymap, ...defaultKeymap]),
        EditorView.contentAttributes.of({ 'aria-label': label, tabindex: '0' }),
        EditorView.lineWrapping,
        EditorState.readOnly.of(!onChange),
        EditorView.updateListener.of((update) => {
          if (!update.docChanged || isOurs || !onChange) return
          told = [...told.slice(1 - TOLD_MAX), update.state.doc.toString()]
          onChange(told[told.length - 1]!)
        }),
      ],
    }),
  })
  return {
    view,
    text: () => view.state.doc.toString(),
    setText(next) {
      // who types faster than the page is drawn hears of a text that is an older one by now
      const at = told.indexOf(next)
      told = at < 0 ? [] : told.slice(at + 1)
      if (told.length) return
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
    destroy: () => view.destroy(),
  }
}
