import { CompletionContext } from '@codemirror/autocomplete'
import { EditorState } from '@codemirror/state'
import { expect, it } from 'vitest'
import { completeVariable } from '../src/editor/view'

/** What is offered at the end of `text`. */
function offered(text: string, isExplicit = false) {
  return completeVariable(new CompletionContext(EditorState.create({ doc: text }), text.length, isExplicit), () => ['worker'])
}

it('the variables offered stay while their name is written, and no longer', () => {
  const found = offered('echo $PAI')
  expect(found?.from).toBe('echo $'.length)
  const isStill = found?.validFor as RegExp
  for (const typed of ['P', 'PAI_', 'PAI_JOB_NAME']) {
    expect(isStill.test(typed)).toBe(true)
    expect(offered(`echo $${typed}`)).not.toBeNull()
  }
  for (const typed of ['', '_', 'PAI_HOST_IP_w', 'PAI}', 'PAI ']) {
    expect(isStill.test(typed)).toBe(false)
    expect(offered(`echo $${typed}`)).toBeNull()
  }
  expect(offered('echo ${', true)?.from).toBe('echo ${'.length)
})
