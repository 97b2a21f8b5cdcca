// Where the keys lead on the map: left and right in its order, up and down as it looks, whatever the window's width.

/** What can have the focus: the name of a node, and its leaves. */
export const STEP = 'data-step'

interface Box {
  left: number
  right: number
  top: number
  bottom: number
}

const middleX = (box: Box) => (box.left + box.right) / 2
const middleY = (box: Box) => (box.top + box.bottom) / 2
const SAME_LINE_PX = 4 // the names of nodes and leaves are not equally high

/** Of the boxes that lie above (-1) or below (1): those of the next line, and of these the one that is nearest sideways. */
export function nextOf<T>(items: readonly T[], boxOf: (item: T) => Box, from: Box, way: -1 | 1): T | undefined {
  const ahead = items.map((item) => ({ item, box: boxOf(item) })).filter(({ box }) => way * (middleY(box) - middleY(from)) > SAME_LINE_PX)
  const line = Math.min(...ahead.map(({ box }) => way * middleY(box)))
  const near = ahead.filter(({ box }) => way * middleY(box) - line <= SAME_LINE_PX)
  const distance = (box: Box) => Math.abs(middleX(box) - middleX(from))
  return near.reduce<(typeof near)[number] | undefined>((best, one) => (best && distance(best.box) <= distance(one.box) ? best : one), undefined)?.item
}

const stepsIn = (part: HTMLElement) => [...part.querySelectorAll<HTMLElement>(`[${STEP}]`)]
const boxOf = (element: HTMLElement) => element.getBoundingClientRect()

/** First within the node, then over to the nodes above or below it. */
function verticalStep(grid: HTMLElement, from: HTMLElement, way: -1 | 1): HTMLElement | undefined {
  const node = from.closest<HTMLElement>('[role="row"]')
  if (!node) return undefined
  const within = nextOf(stepsIn(node), boxOf, boxOf(from), way)
  if (within) return within
  const edgeOf = (one: HTMLElement) => {
    const { left, right, top, bottom } = boxOf(one)
    return way > 0 ? { left, right, top, bottom: top } : { left, right, top: bottom, bottom }
  }
  const nodes = [...grid.querySelectorAll<HTMLElement>('[role="row"]')].filter((one) => one !== node && one.querySelector(`[${STEP}]`))
  const { left, right } = boxOf(from)
  const next = nextOf(nodes, edgeOf, { ...edgeOf(node), left, right }, way)
  if (!next) return undefined
  const { top, bottom } = boxOf(next)
  const outside = way > 0 ? top - 2 * SAME_LINE_PX : bottom + 2 * SAME_LINE_PX
  return nextOf(stepsIn(next), boxOf, { left, right, top: outside, bottom: outside }, way)
}

/** What has the focus after this key; undefined: it leads nowhere. With `isFar` (Ctrl) Home and End are those of the map, else of the node. */
export function stepOf(grid: HTMLElement, from: HTMLElement, key: string, isFar: boolean): HTMLElement | undefined {
  const all = stepsIn(grid)
  const own = isFar ? all : stepsIn(from.closest<HTMLElement>('[role="row"]') ?? grid)
  switch (key) {
    case 'ArrowRight':
      return all[all.indexOf(from) + 1]
    case 'ArrowLeft':
      return all[all.indexOf(from) - 1]
    case 'ArrowDown':
      return verticalStep(grid, from, 1)
    case 'ArrowUp':
      return verticalStep(grid, from, -1)
    case 'Home':
      return own[0]
    case 'End':
      return own.at(-1)
    default:
      return undefined
  }
}
