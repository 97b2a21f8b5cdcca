// xterm.js before an ExecSession. It is loaded with the first terminal only.
import { FitAddon } from '@xterm/addon-fit'
import { Terminal, type ITheme } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { t } from '../i18n/i18n'
import { ExecSession, type ExecTarget } from '../lib/exec-session'
import { bytes as bytesText } from '../lib/format'
import { letterOf } from '../lib/keys'

const UNDRAWN_MAX = 2 << 20 // bytes that wait to be drawn; what comes beyond is left out, so that a key is answered at once

/** xterm.js writes its styles into <style> elements, which the Content-Security-Policy forbids. It gets elements that look so,
 * and what it writes into them becomes a constructed sheet, which is allowed. */
function styleStandIn(): HTMLElement {
  const sheet = new CSSStyleSheet()
  const element = document.createElement('span')
  let text = ''
  element.hidden = true
  Object.defineProperty(element, 'textContent', {
    get: () => text,
    set: (next: string) => {
      text = next
      sheet.replaceSync(next)
    },
  })
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((one) => one !== sheet)
    Element.prototype.remove.call(element)
  }
  document.adoptedStyleSheets.push(sheet)
  return element
}

/** xterm.js makes them while it opens, and some of them by `document` itself, whatever its option documentOverride says. */
function openWithoutStyles(terminal: Terminal, place: HTMLElement) {
  const create = (name: string) => (name === 'style' ? styleStandIn() : Document.prototype.createElement.call(document, name))
  document.createElement = create as typeof document.createElement
  try {
    terminal.open(place)
  } finally {
    delete (document as Partial<Document>).createElement // the prototype's again
  }
}

/** The page's colours as of now: xterm.js wants them computed. */
function themeOf(place: HTMLElement): ITheme {
  const probe = document.createElement('span')
  place.append(probe)
  const colour = (name: string) => {
    probe.style.color = `var(${name})`
    return getComputedStyle(probe).color
  }
  const theme: ITheme = {
    background: colour('--log-ground'),
    foreground: colour('--log-text'),
    cursor: colour('--log-text'),
    cursorAccent: colour('--log-ground'),
    selectionBackground: colour('--log-selected'),
    red: colour('--failed'),
    green: colour('--succeeded'),
    yellow: colour('--waiting'),
    blue: colour('--running'),
    magenta: colour('--stopping'),
    cyan: colour('--cell-5'),
    brightRed: colour('--failed'),
    brightGreen: colour('--succeeded'),
    brightYellow: colour('--waiting'),
    brightBlue: colour('--running'),
    brightMagenta: colour('--stopping'),
    brightCyan: colour('--cell-5'),
  }
  probe.remove()
  return theme
}

export class TaskTerminal {
  readonly session: ExecSession
  /** What is put on the page; it outlives the view that shows it. */
  readonly place = document.createElement('div')
  /** Ctrl-M was pressed: the keyboard wants out. */
  onLeave: () => void = () => undefined
  private readonly terminal: Terminal
  private readonly fit = new FitAddon()
  private readonly sizes = new ResizeObserver(() => this.fitPlace())
  private undrawn = 0
  private answeredUndrawn = 0 // bytes of it whose questions are answered
  private leftOut = 0

  constructor(target: ExecTarget, onState: () => void) {
    this.session = new ExecSession(target)
    this.place.className = 'terminal-place'
    this.terminal = new Terminal({
      fontSize: 13,
      scrollback: 5000,
      minimumContrastRatio: 4.5,
      disableStdin: true,
    })
    this.terminal.loadAddon(this.fit)
    this.terminal.onData((text) => this.session.input(new TextEncoder().encode(text)))
    this.terminal.onBinary((text) => this.session.input(Uint8Array.from(text, (byte) => byte.charCodeAt(0))))
    this.terminal.onResize(({ rows, cols }) => this.session.resize(rows, cols))
    this.terminal.attachCustomKeyEventHandler((event) => this.keyIsForProgram(event))
    this.session.listen({
      onOutput: (bytes, isAnswered) => this.draw(bytes, isAnswered),
      onGap: (bytes) => this.say(t('{size} of output were not kept while this window was away', { size: bytesText(bytes) })),
      onState: () => {
        this.inputSwitch()
        onState()
      },
    })
  }

  /** Show it in `parent`. */
  show(parent: HTMLElement, isForScreenReader: boolean) {
    if (this.place.parentElement !== parent) parent.append(this.place) // a place that moves loses the keyboard
    this.terminal.options.screenReaderMode = isForScreenReader
    this.terminal.options.theme = themeOf(this.place)
    this.terminal.options.fontFamily = getComputedStyle(this.place).fontFamily
    if (!this.terminal.element) openWithoutStyles(this.terminal, this.place)
    this.terminal.textarea?.setAttribute('aria-label', t('Terminal in {task}', { task: this.name }))
    this.terminal.textarea?.setAttribute('aria-describedby', 'terminal-keys')
    this.sizes.observe(this.place)
    this.fitPlace()
  }

  hide() {
    this.sizes.disconnect()
    this.place.remove()
  }

  get name() {
    return `${this.session.target.role}[${this.session.target.index}]`
  }

  focus() {
    this.terminal.focus()
  }

  dispose() {
    this.session.leave()
    this.hide()
    this.terminal.dispose()
  }

  private fitPlace() {
    if (this.place.isConnected && this.place.clientWidth) this.fit.fit()
  }

  /** What asks the terminal something (where is the cursor?) is answered as if it were typed, so not a second time. */
  private inputSwitch() {
    this.terminal.options.disableStdin = this.session.state.kind !== 'open' || this.answeredUndrawn > 0
  }

  private draw(bytes: Uint8Array, isAnswered: boolean) {
    if (this.undrawn > UNDRAWN_MAX) {
      this.leftOut += bytes.length
      return
    }
    this.undrawn += bytes.length
    if (isAnswered) this.answeredUndrawn += bytes.length
    this.inputSwitch()
    this.terminal.write(bytes, () => {
      this.undrawn -= bytes.length
      if (isAnswered) this.answeredUndrawn -= bytes.length
      this.inputSwitch()
      if (this.undrawn || !this.leftOut) return
      this.say(t('{size} of output came too fast and were left out', { size: bytesText(this.leftOut) }))
      this.leftOut = 0
    })
  }

  private say(text: string) {
    this.terminal.write(`\r\n\x1b[2m[${text}]\x1b[22m\r\n`)
  }

  /** Ctrl-M is what Enter sends as well, so that no program misses it here. */
  private keyIsForProgram(event: KeyboardEvent): boolean {
    if (!event.ctrlKey || event.altKey || event.metaKey) return true
    const key = letterOf(event)
    if (key === 'm' && !event.shiftKey) {
      event.preventDefault()
      if (event.type === 'keydown') this.onLeave()
      return false
    }
    if (key === 'c' && event.shiftKey) {
      event.preventDefault()
      if (event.type === 'keydown') document.execCommand('copy') // also where the page came without TLS
      return false
    }
    return !(key === 'v' && event.shiftKey) // the browser pastes
  }
}
