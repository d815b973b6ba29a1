/**
 * Routes keys: to the open dialog, to scroll mode, to the table of actions, or to the receivers. Nothing here waits for
 * React or for a host.
 */
import { counted } from '../../base/counted.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { InputEvent, KeyEvent, MouseEvent } from '../keys/decode-input.ts'
import { encodeKey, pastedText } from '../keys/encode-for-pane.ts'
import { KEY_GRID_MS } from '../keys/key-grid.ts'
import { isKeyLabel, keyLabel } from '../keys/key-table.ts'
import { type ActionId, actionOf, commandLabel } from '../keys/registry.ts'
import {
  BARE_ACTIONS,
  differentHosts,
  focusedHosts,
  invertReceivers,
  isBareAction,
  noneReceive,
  type Page,
  receiverList,
  receiversBeforeDifferent,
  selectDifferent,
  setReceivers,
  TABS,
  type Tab,
  tabOfKey,
  toggleReceivers,
  toggleSolo,
} from '../state/console-state.ts'
import { type ConsoleApp, WORD_MS } from './console-app.ts'
import { keysElsewhere } from './header.ts'
import { openMacros } from './macros.ts'
import { MouseRouter } from './mouse.ts'
import * as dialogs from './open-dialogs.ts'
import { openPaste } from './open-dialogs.ts'
import { askToQuit } from './quit.ts'
import { handleFilterKey, handleTableKey, pasteIntoFilter } from './table-keys.ts'

type Effect = (app: ConsoleApp) => void

/** After these actions arrows and Space keep choosing panes, if they follow soon. */
export const CHOOSING: ReadonlySet<ActionId> = new Set([
  'receive-toggle',
  'focus-left',
  'focus-right',
  'focus-up',
  'focus-down',
  'focus-next',
  'focus-previous',
  'page-next',
  'page-previous',
])

/** Without such a key for so long, they are typed again: the user has read something meanwhile. */
const CHOOSING_MS = 2000

const PANE_STEP = { columns: 8, rows: 2 }

const tabActions = Object.fromEntries(
  TABS.map(({ id }) => [`tab-${id}`, (app: ConsoleApp) => app.showTab(id)]),
) as Readonly<Record<`tab-${Tab}`, Effect>>

export const actions: Readonly<Record<ActionId, Effect>> = {
  ...tabActions,
  'receive-toggle': (app) => app.change((state) => toggleReceivers(state, focusedHosts(state))),
  'receive-all': (app) => app.selectAll(),
  'receive-none': (app) => app.change(noneReceive),
  'receive-invert': (app) => app.change(invertReceivers),
  'receive-different': toggleDifferent,
  'receive-group': dialogs.openGroups,
  'receive-expression': dialogs.openHostSet,
  'receive-solo': (app) => app.change((state) => toggleSolo(state, focusedHosts(state))),
  'focus-left': (app) => app.moveFocus('left'),
  'focus-right': (app) => app.moveFocus('right'),
  'focus-up': (app) => app.moveFocus('up'),
  'focus-down': (app) => app.moveFocus('down'),
  'focus-next': (app) => app.stepFocus(1),
  'focus-previous': (app) => app.stepFocus(-1),
  'page-next': (app) => app.turnPage(1),
  'page-previous': (app) => app.turnPage(-1),
  'pane-larger': (app) => app.resizePanes(PANE_STEP.columns, PANE_STEP.rows),
  'pane-smaller': (app) => app.resizePanes(-PANE_STEP.columns, -PANE_STEP.rows),
  zoom: (app) => app.change((state) => ({ isZoomed: !state.isZoomed })),
  fold: (app) => app.change((state) => ({ isFolded: !state.isFolded, isZoomed: false })),
  differences(app) {
    app.change((state) => ({ showsDifferences: !state.showsDifferences }))
    const { showsDifferences, hosts, equalGroups } = app.state
    if (!showsDifferences || equalGroups.length > 1) return
    app.notice(hosts.size > 1 ? `all ${hosts.size} screens are equal` : 'there is no other screen to compare with')
  },
  scroll: (app) => app.scroll.enter(focusedHosts(app.state)[0]),
  'login-output': (app) => app.loginOutput.open(),
  macro: openMacros,
  paste: (app) => dialogs.openPaste(app),
  record: (app) => app.recording.toggle(),
  reconnect: (app) => app.reconnect(focusedHosts(app.state)),
  'reconnect-all': (app) => app.reconnect([...app.state.hosts.keys()]),
  'add-host': dialogs.openAddHost,
  'close-host': dialogs.openCloseHost,
  'save-set': dialogs.openSaveSet,
  run: (app) => app.work.ask('run'),
  copy: (app) => app.work.ask('copy'),
  ray: (app) => app.rayLine.open(),
  forwards: (app) => app.forwards.open(),
  panel: (app) => app.work.toggleKeys(),
  report: (app) => app.writeReport(),
  palette: (app) => dialogs.openPalette(app, (id) => actions[id](app)),
  help: dialogs.openHelp,
  settings: dialogs.openSettings,
  redraw: (app) => app.options.onRedraw(),
  detach: (app) => {
    const reason = app.options.detach()
    if (reason !== undefined) app.notice(`cannot detach: ${reason}`, 'warning', 'key')
  },
  quit: askToQuit,
}

/** Selects the hosts that differ, or restores the earlier receivers if it has selected them. */
function toggleDifferent(app: ConsoleApp): void {
  const before = receiversBeforeDifferent(app.state)
  if (before) {
    app.change((state) => setReceivers(state, before))
    return app.noticeReceivers()
  }
  const { names: hosts, tiedWith } = differentHosts(app.state, () => app.comparison.refresh())
  if (hosts.length === 0) {
    const { receivers, hosts: all } = app.state
    const isPart = receivers.size > 0 && receivers.size < all.size
    return app.notice(isPart ? 'no receiver differs' : 'no host differs', 'info', 'key')
  }
  app.change((state) => selectDifferent(state, hosts))
  const which =
    tiedWith.length === 0
      ? `only ${foldHostSet(hosts)}`
      : `no majority: only ${foldHostSet(hosts)}, not ${foldHostSet(tiedWith)}`
  app.notice(`${which}; ${commandLabel(app.state, 'receive-different')} goes back`, 'info', 'receivers')
}

const CHOOSING_KEYS: Readonly<Record<string, ActionId>> = {
  Left: 'focus-left',
  Right: 'focus-right',
  Up: 'focus-up',
  Down: 'focus-down',
  Space: 'receive-toggle',
}

const KEYS_CAME_BACK = 'the keys had only just come back to the shells'
const CAME_IN_PIECES = 'a key came in pieces, as over a slow line'
const QUESTION_CLOSED = 'a question had only just closed'
const TYPED_AHEAD = 'it began before the console was shown'
/** With these a line of which the beginning was dropped is over. */
const restOfWord = (label: string): string => `${label} may be the rest of a word: press it again`

const GIVES_UP_LINE: ReadonlySet<string> = new Set(['Ctrl-c', 'Ctrl-u', 'Esc'])

/** `why` it is not sent; `key`: the label of the one that gave the keys back. */
type Word = { readonly timer?: Disposable; readonly why: string; readonly key?: string | undefined }

export class InputRouter {
  readonly #app: ConsoleApp
  readonly #mouse: MouseRouter
  /** Pass-through keys of one read of the terminal, sent together. */
  #typed: Uint8Array[] = []
  #gridTimer: Disposable | undefined
  #choosingTimer: Disposable | undefined
  /** While the text may continue that was meant for a tab, or for a command that did nothing; `why` it is not sent. */
  #word: Word | undefined
  /** The last keys were Ctrl-s in a review, which sent its text. */
  #hasSent = false
  /** The last key was typed into hosts. */
  #wasTyped = false
  /** How many letters have followed without a pause since a key did nothing on a tab: they may be a word that was meant for a prompt. */
  #strayLetters: number | undefined
  /** The leader was pressed in a dialog: the next key is a command, and no text. */
  #isCommandInDialog = false

  constructor(app: ConsoleApp) {
    this.#app = app
    this.#mouse = new MouseRouter(app, { press: (label) => this.#press(label), run: (id) => this.#click(id) })
  }

  /** All events of one read of the terminal. */
  handle(events: readonly InputEvent[]): void {
    for (const event of events) {
      if ((event.type === 'key' || event.type === 'mouse') && event.isLate === true) this.#handleLate(event)
      else if (event.type === 'key') for (const key of this.#keysOf(event)) this.#handleKey(key)
      else {
        this.#flushTyped()
        if (event.type === 'paste') this.#handlePaste(event.text)
        else if (event.type === 'mouse') this.#mouse.handle(event)
      }
    }
    this.#flushTyped()
  }

  /** Something was typed before this terminal showed the console, and dropped: the rest of it may follow. */
  noteTypedAhead(): void {
    this.#app.noteLetter()
    this.#holdWord(TYPED_AHEAD)
    const text = 'nothing sent: it was typed before the console was shown'
    if (this.#app.state.log.at(-1)?.text !== text) this.#app.log('', text)
    this.#app.notice(text)
  }

  /**
   * Its beginning was an Esc by itself. A host that got it as such gets the rest of a key, too, and puts them together. What else
   * had the keys then, such as a view that it closed, has not got them any more.
   */
  #handleLate(event: KeyEvent | MouseEvent): void {
    const app = this.#app
    const isElsewhere = keysElsewhere(app.state) !== undefined
    if (this.#wasTyped && !isElsewhere) {
      if (event.type === 'key') this.#typed.push(event.raw)
      return
    }
    this.#flushTyped()
    // Where no host gets it, what may only begin the rest is taken as typed.
    if (isElsewhere && event.type === 'key' && /^[[O]$/.test(event.key.text ?? '')) return this.#handleKey(event)
    if (!isElsewhere) this.#holdWord(CAME_IN_PIECES)
    app.notice(`not taken: ${CAME_IN_PIECES}; press it again`, 'warning', 'key')
  }

  /** Esc and the leader that arrive together, as over a slow line, are two keys: the leader is never missed. */
  #keysOf(event: KeyEvent): readonly KeyEvent[] {
    const { key, raw } = event
    if (!key.alt || raw.length !== 2) return [event]
    const plain = { ...key, alt: false }
    if (keyLabel(plain) !== this.#app.state.leaderLabel) return [event]
    const esc = { name: 'escape', ctrl: false, alt: false, shift: false }
    return [
      { type: 'key', key: esc, raw: raw.subarray(0, 1) },
      { type: 'key', key: plain, raw: raw.subarray(1) },
    ]
  }

  run(id: ActionId): void {
    if (!this.#app.canRun(id)) return
    actions[id](this.#app)
    const { kind } = this.#app.state.mode
    if (CHOOSING.has(id) && (kind === 'typing' || kind === 'select')) this.#startChoosing()
  }

  #startChoosing(): void {
    const app = this.#app
    app.change(() => ({ mode: { kind: 'select' } }))
    this.#choosingTimer?.[Symbol.dispose]()
    this.#choosingTimer = app.clock.after(CHOOSING_MS, () =>
      app.change(({ mode }) => (mode.kind === 'select' ? { mode: { kind: 'typing' } } : {})),
    )
  }

  #handleKey(event: KeyEvent): void {
    const app = this.#app
    this.#wasTyped = false
    const { mode } = app.state
    app.dialogs.noteKey()
    if (mode.kind !== 'typing') this.#flushTyped()
    if (mode.kind !== 'scroll') app.clearSelection()
    const isOnPage = mode.kind === 'typing' && app.page !== undefined
    const wasElsewhere = mode.kind !== 'leader' && keysElsewhere(app.state) !== undefined
    const label = keyLabel(event.key)
    const isAnswer = this.#isAnswer(label)
    const { notice } = app.state
    if (isAnswer && app.isInWord) return this.#refuseAnswer(restOfWord(label))
    if (!app.isInWord || event.key.text === undefined) this.#strayLetters = undefined
    else if (this.#strayLetters !== undefined) this.#strayLetters += 1
    if (event.key.text !== undefined && mode.kind !== 'leader') app.noteLetter()
    this.#handleLabel(event, label)
    if (notice?.about === 'key' && app.state.notice === notice) app.change(() => ({ notice: undefined }))
    // Nor is what follows the letter that closed a question meant for what was behind it.
    const isOver = mode.kind === 'dialog' && app.dialogs.current === undefined
    if (mode.kind === 'dialog') this.#hasSent = isOver && label === 'Ctrl-s'
    if (isAnswer || (isOver && event.key.text !== undefined)) return this.#holdWord(QUESTION_CLOSED, label)
    if (keysElsewhere(app.state) !== undefined) return
    // `1` shows the shells, `t` chooses receivers and `y` answers, but perhaps it was part of a word.
    if (isOnPage || (wasElsewhere && event.key.text !== undefined)) return this.#holdWord(KEYS_CAME_BACK, label)
    // The text that follows may be meant for the prompt that did not open.
    const now = app.state.notice
    if (mode.kind === 'leader' && now !== notice && now?.about === 'key') this.#holdWord(now.text)
  }

  /** It agrees to what a question or a plan on a tab asks. */
  #isAnswer(label: string): boolean {
    const { mode } = this.#app.state
    if (mode.kind !== 'dialog') return mode.kind === 'typing' && this.#app.page?.isAnswer?.(label) === true
    return label.toLowerCase() === 'y' && mode.dialog.keys.some(([key]) => key === 'y')
  }

  /** In the question, where there is one: that is where the user looks. */
  #refuseAnswer(text: string): void {
    const app = this.#app
    app.notice(text, 'warning', 'key')
    app.change(({ mode }) => {
      if (mode.kind !== 'dialog' || mode.dialog.lines.some((line) => line.text === text)) return {}
      return { mode: { ...mode, dialog: { ...mode.dialog, lines: [...mode.dialog.lines, { text, tone: 'warning' }] } } }
    })
  }

  /** Where no key reaches a host: true for a letter that continues a word that was not meant for what has the keys now. */
  #isRestOfWord({ key }: KeyEvent): boolean {
    if (this.#word === undefined || (key.text === undefined && key.name !== 'enter')) return false
    this.#holdWord(this.#word.why, this.#word.key)
    this.#app.notice(`not taken: ${this.#word.why}; type it again`, 'warning', 'key')
    return true
  }

  /** True: no key but Ctrl-C is sent for a moment; and once a letter was dropped, nothing until its line is over, as the rest alone is another command. */
  #isHeldBack({ key }: KeyEvent, label: string): boolean {
    const word = this.#word
    if (word === undefined) return false
    const { held } = this.#app.state
    if (held === 'moment' && label === 'Ctrl-c') {
      this.#endWord()
      return false
    }
    if (held === 'line' && GIVES_UP_LINE.has(label)) this.#endWord()
    // The next line of what is typed or pasted without a pause counts on this one.
    else if (held === 'line' && (label === 'Enter' || label === 'Ctrl-j')) this.#holdWord(word.why)
    // The key that leads back, pressed once more, begins no line.
    else if (key.text !== undefined && (held === 'line' || label !== word.key)) this.#holdLine(word)
    else if (held === 'moment') this.#holdWord(word.why, word.key)
    return true
  }

  #holdLine({ timer, why }: Word): void {
    timer?.[Symbol.dispose]()
    this.#word = { why }
    this.#app.change(() => ({ held: 'line' }))
    this.#app.notice(`not sent, until Enter: ${why}`, 'warning', 'key')
  }

  #holdWord(why: string, key?: string): void {
    const app = this.#app
    this.#word?.timer?.[Symbol.dispose]()
    this.#word = { timer: app.clock.after(WORD_MS, () => this.#endWord()), why, key }
    app.change(() => ({ held: 'moment' }))
  }

  #endWord(): void {
    if (this.#word === undefined) return
    this.#word.timer?.[Symbol.dispose]()
    this.#word = undefined
    this.#app.change(() => ({ held: undefined }))
  }

  #handleLabel(event: KeyEvent, label: string): void {
    const app = this.#app
    const { mode } = app.state
    const { dialogs } = app
    const isLeader = label === app.state.leaderLabel
    if (this.#isCommandInDialog) {
      this.#isCommandInDialog = false
      if (!isLeader) return this.#refuseInDialog(label)
    } else if (dialogs.current && isLeader) {
      this.#isCommandInDialog = true
      return
    }
    if (dialogs.current) return dialogs.current.key(label, event)
    if (mode.kind === 'scroll') return isLeader ? this.#enterLeader() : app.scroll.handleKey(mode.host, label)
    if (mode.kind === 'leader') return this.#handleCommand(event, label, mode.isTyping)
    if (isLeader) {
      this.#flushTyped()
      return this.#enterLeader()
    }
    if (mode.kind === 'select' && this.#choose(label)) return
    if (mode.kind === 'filter') return handleFilterKey(app, mode.table, label, event)
    if ((app.page || app.state.panel?.hasKeys) && this.#isRestOfWord(event)) return
    if (app.page) return this.#handlePageKey(app.page, label)
    if (app.state.panel?.hasKeys) {
      this.#flushTyped()
      if (isBareAction(label)) return this.run(BARE_ACTIONS[label])
      return app.work.handleKey(label)
    }
    if (this.#isHeldBack(event, label) || this.#isSentAgain(label)) return
    if (label === 'Ctrl-s') this.#warnOfPause()
    this.#type(event)
  }

  /** The key that sent a reviewed text, pressed once more, would stop what hosts show. */
  #isSentAgain(label: string): boolean {
    this.#hasSent &&= label === 'Ctrl-s'
    if (this.#hasSent) this.#app.notice('not sent: Ctrl-s has sent the text already', 'warning', 'key')
    return this.#hasSent
  }

  /** termios(3): XOFF. A full-screen program reads it as a key of its own. */
  #warnOfPause(): void {
    const hosts = receiverList(this.#app.state)
    if (hosts.some((host) => this.#app.views.screen(host)?.modes.isAlternateScreen === false))
      this.#app.notice('Ctrl-s may stop what hosts show: Ctrl-q continues', 'warning')
  }

  /** Esc takes the leader back. */
  #refuseInDialog(label: string): void {
    const { leaderLabel } = this.#app.state
    if (label !== 'Esc')
      this.#app.notice(`${leaderLabel} ${label}: not while a dialog is open; Esc closes it`, 'warning', 'key')
  }

  /** A click on a key that is shown, perhaps after the leader. A key that would be typed into hosts does nothing. */
  #press(labels: string): void {
    const app = this.#app
    const [label = '', command] = labels.split(' ')
    const event: KeyEvent = {
      type: 'key',
      key: { name: '', ctrl: false, alt: false, shift: false },
      raw: new Uint8Array(),
    }
    const isKey = isKeyLabel(label) && app.dialogs.current === undefined
    if (command !== undefined && isKey)
      return label === app.state.leaderLabel ? this.#handleCommand(event, command, false) : undefined
    if (!isKeyLabel(label)) return
    const { mode, panel, tab } = app.state
    const isTyped = mode.kind === 'typing' && tab === 'shells' && panel?.hasKeys !== true
    if (!isTyped || label === app.state.leaderLabel) this.#handleLabel(event, label)
  }

  #click(id: ActionId): void {
    this.#app.scroll.leave()
    this.#app.change(({ mode }) => (mode.kind === 'dialog' ? {} : { mode: { kind: 'typing' } }))
    this.run(id)
  }

  #enterLeader(): void {
    const app = this.#app
    const isTyping = keysElsewhere(app.state) === undefined
    this.#endWord()
    app.noteLetter(true)
    app.scroll.leave()
    app.change(() => ({ mode: { kind: 'leader', isTyping } }))
    this.#gridTimer?.[Symbol.dispose]()
    this.#gridTimer = app.clock.after(KEY_GRID_MS, () => {
      app.change(({ mode }) => (mode.kind === 'leader' ? { mode: { ...mode, showsKeys: true } } : {}))
    })
  }

  #handleCommand(event: KeyEvent, label: string, isTyping: boolean): void {
    const app = this.#app
    this.#gridTimer?.[Symbol.dispose]()
    app.change(() => ({ mode: { kind: 'typing' } }))
    if (label === app.state.leaderLabel) {
      if (isTyping) return this.#type(event)
      return app.notice(`${label} twice types ${label} only in the shells`, 'warning', 'key')
    }
    if (label === 'Esc') return
    const id = actionOf(app.state.keymap, label)
    if (id === undefined)
      return app.notice(`unknown command: ${label} (${commandLabel(app.state, 'help')} shows all)`, 'warning', 'key')
    this.run(id)
  }

  /** False: the key ends the choosing and is typed. Esc and Enter only end it. */
  #choose(label: string): boolean {
    const id = CHOOSING_KEYS[label]
    if (id !== undefined) {
      this.run(id)
      return true
    }
    this.#app.change(() => ({ mode: { kind: 'typing' } }))
    return label === 'Esc' || label === 'Enter'
  }

  /** On a page a number alone shows a tab, since no key goes to a host. */
  #handlePageKey(page: Page, label: string): void {
    const app = this.#app
    if (handleTableKey(app, label) || page.handleKey(label)) return
    if (isBareAction(label)) return this.run(BARE_ACTIONS[label])
    // Without a table, text typed after `/` must not act as other keys, such as 1 and Enter.
    if (label === '/') return dialogs.openNoSearch(app)
    const tab = tabOfKey(label)
    const shown = tab ?? (label === 'Esc' ? app.state.cameFrom : undefined)
    if (tab !== undefined && (this.#strayLetters ?? 0) > 1) return app.notice(restOfWord(label), 'warning', 'key')
    if (shown !== undefined) return app.showTab(shown)
    this.#strayLetters ??= 0
    app.notice(this.#withoutEffect(label), 'info', 'key')
  }

  /** What was perhaps wanted: to leave the console, to go back, or to type into the shells. */
  #withoutEffect(label: string): string {
    const { state } = this.#app
    if (label === 'q' || label === 'Ctrl-c')
      return `${commandLabel(state, 'quit')} quits, ${commandLabel(state, 'detach')} detaches, 1 shows the shells`
    return label === 'Esc' ? '1 shows the shells' : `${label} does nothing here: 1 shows the shells, ? the keys`
  }

  #type(event: KeyEvent): void {
    const app = this.#app
    this.#wasTyped = true
    const hosts = receiverList(app.state)
    this.#followOutput(hosts)
    const encoded = hosts.map((host) => {
      const modes = app.views.screen(host)?.modes
      return { host, bytes: modes ? encodeKey(event, modes) : event.raw }
    })
    const groups = Map.groupBy(encoded, ({ bytes }) =>
      bytes === event.raw ? '' : Buffer.from(bytes).toString('latin1'),
    )
    // The usual case: the same bytes for every host, joined with the keys of the same read.
    if (groups.size <= 1) {
      this.#typed.push(encoded[0]?.bytes ?? event.raw)
      if (hosts.length === 0) this.#flushTyped()
      return
    }
    this.#flushTyped()
    app.sendEach(
      [...groups.values()].map((members) => ({
        hosts: members.map(({ host }) => host),
        bytes: members[0]?.bytes ?? event.raw,
      })),
    )
  }

  #flushTyped(): void {
    if (this.#typed.length === 0) return
    const typed = this.#typed
    this.#typed = []
    const [first] = typed
    this.#app.sendToReceivers(typed.length === 1 && first ? first : Buffer.concat(typed))
  }

  /** Typing scrolls to the end, where the answer appears. */
  #followOutput(hosts: readonly string[]): void {
    for (const host of hosts) {
      const screen = this.#app.views.screen(host)
      if (screen && screen.viewOffset > 0) this.#app.scroll.scrollBy(host, -screen.viewOffset)
    }
  }

  #handlePaste(given: string): void {
    const app = this.#app
    const { text, leftOut } = pastedText(given)
    app.dialogs.noteKey()
    const { notice } = app.state
    this.#takePaste(text)
    // Not where it says that nothing was pasted.
    if (leftOut > 0 && (app.state.notice ?? notice) === notice)
      app.notice(`left ${counted(leftOut, 'control character')} out of the paste`, 'warning')
  }

  #takePaste(text: string): void {
    const app = this.#app
    if (app.dialogs.current) return app.dialogs.current.paste?.(text)
    const { mode, tab, panel } = app.state
    if (mode.kind === 'filter') return pasteIntoFilter(app, mode.table, text)
    if (mode.kind === 'scroll')
      return app.notice('pasting works only in the shells: Esc leaves the scroll-back', 'warning')
    if (tab !== 'shells') return app.notice('pasting works only in the shells: press 1', 'warning')
    if (panel?.hasKeys) return app.notice('pasting works only in the shells: press Tab', 'warning')
    if (mode.kind !== 'typing') app.change(() => ({ mode: { kind: 'typing' } }))
    if (mode.kind === 'leader') return app.notice('nothing pasted: a command key was expected', 'warning')
    if (this.#word !== undefined) return app.notice(`nothing pasted: ${this.#word.why}`, 'warning', 'key')
    const hosts = receiverList(app.state)
    if (hosts.length === 0) return app.sendTo([], new Uint8Array())
    const lines = text.replace(/\r\n?/g, '\n').split('\n').length
    // One shell that takes it as a paste shows it, and waits for Enter.
    const isReviewed = lines > 1 && (hosts.length > 1 || hosts.some((host) => !app.isBracketed(host)))
    if (isReviewed) return openPaste(app, { text, isComposed: false })
    app.paste(text, hosts)
  }
}
