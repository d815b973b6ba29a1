/**
 * The console without its screen: it owns the state, updates it from the fleet's events, arranges the panes, and sends
 * what is typed. It draws nothing: scenes go to the compositor, and the chrome reads the state.
 */
import { isDeepStrictEqual } from 'node:util'
import { type Clock, hasPassed } from '../../base/clock.ts'
import { DisposableStore } from '../../base/disposable.ts'
import { FixedMap } from '../../base/fixed-map.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { clip, textWidth } from '../../base/text-width.ts'
import { secondText } from '../../base/time-text.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Fleet, FleetEvent, ShellState, WriteReport } from '../../ssh/create-fleet.ts'
import { Feeder } from '../../terminal/feeder.ts'
import type { PaneView, ThemeName } from '../compositor/scene.ts'
import type { DialogFactory } from '../dialogs/dialog.ts'
import { PromptHistory } from '../dialogs/prompt-history.ts'
import type { ForwardsPanel } from '../forwards/forwards-panel.ts'
import { encodePaste } from '../keys/encode-for-pane.ts'
import { type ActionId, commandLabel, createKeymap, disabledReasonOf, needsReceiver } from '../keys/registry.ts'
import { FIRST_NETWORK } from '../network/network-view.ts'
import { FIRST_WATCH } from '../network/watch-view.ts'
import type { Preferences } from '../preferences.ts'
import type { RayLine } from '../ray/ray-line.ts'
import { asksSecret, asksSomething } from '../report/asks-secret.ts'
import { type RunEntry, SessionLog } from '../report/session-log.ts'
import { writeSessionReport } from '../report/session-report.ts'
import {
  allReceive,
  type Busy,
  type ConsoleState,
  type HostState,
  isLive,
  type LogEntry,
  lateReceivers,
  liveReceivers,
  type Mode,
  type Notice,
  type NoticeTone,
  outsideMajority,
  type Page,
  type PageContext,
  type PageTab,
  receiverList,
  type Tab,
} from '../state/console-state.ts'
import { FIRST_FILE, filesOf } from '../state/files.ts'
import { Store } from '../state/store.ts'
import { CLIPBOARD_BYTES, clipboardSequence } from '../tty/clipboard.ts'
import type { WorkPanel } from '../work-views/work-panel.ts'
import type { ResolveHosts } from '../work-views/work-questions.ts'
import { AutoClose } from './auto-close.ts'
import { Comparison } from './comparison.ts'
import { type ListFiles, lookUp } from './completion.ts'
import { Dialogs } from './dialogs.ts'
import { Divergence, emptyPrompt } from './divergence.ts'
import {
  addToLog,
  type HostPlace,
  hostStateOf,
  logLine,
  placeOf,
  reduceHost,
  shellEnd,
  writeNotice,
} from './fleet-reducer.ts'
import { noticeColumns } from './header.ts'
import { HostViews } from './host-views.ts'
import { LateShells, lateReason } from './late-shells.ts'
import { isJumpHost, isOwnAddress, LoginOutput } from './login-output.ts'
import { newHosts } from './new-hosts.ts'
import { type Arrangement, arrange, type Direction, focusNeighbour, pageOf } from './panes.ts'
import { Recording } from './recording.ts'
import { ScrollMode } from './scroll-mode.ts'
import { TextSelection } from './text-selection.ts'

/** Text for several hosts. */
export type Draft = { readonly text: string; readonly isComposed: boolean }

/** What the console needs from outside. */
export type ConsolePorts = {
  readonly fleet: Fleet
  readonly clock: Clock
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly resolveHosts: ResolveHosts
  /** What was typed into prompts; without it, until the console ends. */
  readonly promptHistory?: PromptHistory
  /** Names in a directory of this machine, those of directories with a slash at their end. */
  readonly listFiles?: ListFiles
  /**
   * Endpoints of hosts to add; rejects with a sentence. Those written as `user@host` or `host:port` have this as their name if
   * their own is taken.
   */
  resolveNewHosts(expression: string, isTaken: (name: string) => boolean): Promise<Endpoint[]>
  /** What runs in the shell of a host; empty: nothing, undefined: unknown. */
  readonly shellPrograms?: (host: string, signal: AbortSignal) => Promise<readonly string[] | undefined>
  /** All hosts of hosts.yaml, open or not. */
  declaredHosts(): readonly string[]
  /** Saves a group in hosts.yaml and resolves with a notice; undefined when there is no file. */
  readonly saveGroup?: (name: string, hosts: readonly string[], isReplaced: boolean) => Promise<string>
}

/** The tabs and views beside the shells, made with the console as their context and disposed of with it. */
export type ConsoleParts = Disposable & {
  readonly pages: Readonly<Record<PageTab, Page>>
  readonly work: WorkPanel
  readonly rayLine: Pick<RayLine, 'read' | 'open'>
  readonly forwards: ForwardsPanel
}

export type ConsoleOptions = {
  readonly cluster: string
  readonly hosts: readonly HostPlace[]
  readonly groups: ReadonlyMap<string, readonly string[]>
  /** Of several hosts.yaml, in their order. */
  readonly fileTitles?: readonly string[]
  readonly preferences: Preferences
  readonly themeName: ThemeName
  readonly size: { readonly columns: number; readonly rows: number }
  /** Panes or their cells changed. `isEcho`: shortly after a key that went to this host. */
  onPaneChange(host: string, isEcho: boolean): void
  /** These hosts got a key, and their echoes are due. */
  onTyped(hosts: readonly string[]): void
  /** The frames of panes changed although the state did not: how far back a view is. */
  onFramesChange(): void
  onRedraw(): void
  /** Writes bytes that draw nothing to the user's terminal. */
  onSequence(bytes: Uint8Array): void
  onQuit(): void
  /** Detaches. Returns why that is impossible; undefined: done. */
  detach(): string | undefined
  createParts(context: PageContext): ConsoleParts
}

/** Output this soon after a key counts as its echo and is drawn at once. */
const ECHO_MS = 100
const ECHO_BYTES = 2048
/** A shell draws its prompt again this soon after its pane has another size. */
const REDRAW_MS = 1000
/** A change of these may move the focus to another page. */
const LAYOUT_FIELDS = ['focus', 'paneSize', 'columns', 'rows', 'isFolded'] as const
const NOTICE_MS = 5000
const BELL_EVERY_MS = 1000
const TYPING: Mode = { kind: 'typing' }
/** Ctrl-C, Ctrl-Z, Ctrl-\\: the output that waits is of no interest any more. */
const INTERRUPTS = new Set([0x03, 0x1a, 0x1c])
/** Ctrl-C and Ctrl-U. */
const GIVES_UP = new Set([0x03, 0x15])

/** A key that follows another one sooner than this belongs to the same word. */
export const WORD_MS = 500

/** For a text that is sent later, to hosts and shells that were named before. */
export type Addressees = {
  readonly hasItsShell: (host: string) => boolean
  now(): { readonly live: readonly string[]; readonly skipped: WriteReport['skipped'] }
}

export class ConsoleApp implements PageContext, Disposable {
  options: ConsoleOptions
  readFiles: PageContext['readFiles']
  readonly ports: ConsolePorts
  readonly store: Store<ConsoleState>
  #lastLetterMs = Number.NEGATIVE_INFINITY
  readonly dialogs: Dialogs
  readonly views: HostViews
  readonly comparison: Comparison
  readonly #divergence: Divergence
  readonly #lateShells: LateShells
  readonly loginOutput: LoginOutput
  readonly sessionLog: SessionLog
  readonly recording: Recording
  readonly selection = new TextSelection()
  readonly scroll: ScrollMode
  /** The panes on the screen. */
  drawn: readonly PaneView[] = []
  readonly clock: Clock
  readonly pages: ConsoleParts['pages']
  readonly work: WorkPanel
  readonly rayLine: ConsoleParts['rayLine']
  readonly forwards: ForwardsPanel
  /** Hosts that `+` proposes: new in hosts.yaml. */
  offered: readonly string[] = []
  /** What hosts.yaml said of hosts when they were connected, or at the start, where it has changed since. */
  readonly declaredBefore = new Map<string, unknown>()
  /** Composed or pasted texts that were not sent, the last one at the end. */
  drafts: readonly Draft[] = []
  /** The last text that was reviewed and sent. */
  #sentText: { readonly draft: Draft; readonly hosts: readonly string[]; readonly atMs: number } | undefined
  readonly #owned = new DisposableStore()
  readonly #feeder: Feeder
  readonly #autoClose: AutoClose
  /** The hosts that did not get the last keys that not all got. */
  #missed = ''
  /** The notice about that. */
  #missedText = ''
  /** Output that counts as the echo of a key. */
  readonly #echoes = new Map<string, Expected>()
  /** The same for prompts that are drawn again in another size: these are no news. */
  readonly #redraws = new Map<string, Expected>()
  /** Hosts whose last key was Esc. */
  readonly #escaped = new Set<string>()
  /** The mode to return to when a dialog closes. */
  #modeBelow: Mode = TYPING
  readonly #shellEndMs = new Map<string, number>()
  readonly #closed: (readonly string[])[] = []
  /** How to reach hosts that were closed. */
  readonly #closedEndpoints = new Map<string, Endpoint>()
  /** The order of all hosts, closed ones included. */
  readonly #places: Set<string>
  #noticeTimer: Disposable | undefined
  #clockTimer: Disposable | undefined
  #arranged: { readonly state: ConsoleState; readonly arrangement: Arrangement } | undefined

  constructor(options: ConsoleOptions, ports: ConsolePorts) {
    this.options = options
    this.ports = ports
    this.clock = ports.clock
    const { hosts, preferences } = options
    this.#places = new Set(hosts.map(({ host }) => host))
    this.store = new Store<ConsoleState>({
      ...FIRST_FILE,
      files: filesOf(options.fileTitles ?? []),
      cluster: options.cluster,
      columns: options.size.columns,
      rows: options.size.rows,
      tab: 'shells',
      hosts: FixedMap.of(hosts.map((place) => [place.host, hostStateOf(place)])),
      groups: options.groups,
      receivers: new Set(hosts.map(({ host }) => host)),
      receiversBeforeSolo: undefined,
      focus: hosts[0]?.host,
      page: 0,
      isZoomed: false,
      paneSize: preferences.pane,
      isFolded: false,
      showsDifferences: false,
      equalGroups: [],
      diverged: [],
      hasTie: false,
      hasWaitingQuestion: false,
      held: undefined,
      lostInput: undefined,
      mode: TYPING,
      panel: undefined,
      network: FIRST_NETWORK,
      watch: FIRST_WATCH,
      tables: new Map(),
      notice: undefined,
      log: [],
      logOffset: undefined,
      themeName: options.themeName,
      leaderLabel: preferences.leader,
      keymap: createKeymap(preferences.keys),
      clockMs: ports.clock.now(),
    })
    this.#feeder = this.#owned.own(
      new Feeder({
        onParsed: (host, bytes) => this.#handleParsed(host, bytes),
        onPause: (host) => ports.fleet.pause(host),
        onResume: (host) => ports.fleet.resume(host),
      }),
    )
    this.views = this.#owned.own(
      new HostViews({
        fleet: ports.fleet,
        feeder: this.#feeder,
        historyLines: preferences.history,
        onChange: (host) => this.options.onPaneChange(host, false),
        onBell: (host) => this.#ring(host),
        newShellText: (host) => this.#newShellText(host),
      }),
    )
    this.comparison = this.#owned.own(
      new Comparison({
        clock: ports.clock,
        views: this.views,
        state: () => this.state,
        firstPrompt: (host) => this.#divergence.firstPrompt(host),
        onGroups: (equalGroups) => this.#takeGroups(equalGroups),
      }),
    )
    this.#divergence = this.#owned.own(
      new Divergence({
        clock: ports.clock,
        state: () => this.state,
        screen: (host) => this.views.screen(host),
        onDiverged: (diverged, hasTie) => this.change(() => ({ diverged, hasTie })),
        onChecked: () => this.#lateShells.check(),
      }),
    )
    this.#lateShells = new LateShells({
      clock: ports.clock,
      state: () => this.state,
      isInStep: (host, others, lastKeyMs) => this.#divergence.isInStep(host, others, lastKeyMs),
      hasChangedSince: (host, atMs) => this.#divergence.hasChangedSince(host, atMs),
      isAtPrompt: (host) => this.#divergence.isAtPrompt(host),
      onLostLines: (hosts, lines) => this.#tellLostLines(hosts, lines),
      update: (patch) => {
        this.store.update(patch)
        this.#drawHosts()
        this.#divergence.noteChange()
      },
    })
    this.recording = this.#owned.own(new Recording(this, this.views, ports.environment))
    this.#owned.own(this.selection)
    this.scroll = new ScrollMode(this, this.views, this.selection, (host) => {
      options.onPaneChange(host, false)
      options.onFramesChange()
    })
    this.dialogs = this.#owned.own(
      new Dialogs({
        clock: ports.clock,
        history: ports.promptHistory ?? new PromptHistory(),
        lookUp: (kind, word) => lookUp(this.state, ports.listFiles, kind, word),
        onWaiting: (hasWaitingQuestion) => this.change(() => ({ hasWaitingQuestion })),
        isBusy: () => this.state.mode.kind === 'leader',
        onChange: (dialog) => {
          const { columns, rows, mode } = this.state
          if (mode.kind !== 'dialog') this.#modeBelow = mode.kind === 'scroll' ? mode : TYPING
          this.change(() => ({
            mode: dialog ? { kind: 'dialog', dialog: dialog.view({ columns, rows }) } : this.#modeBelow,
          }))
        },
      }),
    )
    this.#autoClose = this.#owned.own(
      new AutoClose({
        clock: ports.clock,
        context: this,
        afterS: () => this.options.preferences.auto_close,
        isBusy: (host) => this.busyOn((name) => name === host).length > 0,
        removeHosts: (hosts) => this.removeHosts(hosts),
      }),
    )
    this.sessionLog = new SessionLog((host) => {
      const screen = this.views.screen(host)
      if (screen === undefined) return undefined
      const { columns, rows, modes, pen, isOrdinary, hasPlainTabs } = screen
      const { themeName } = this.state
      const backdrop = themeName === 'none' ? undefined : themeName
      return {
        columns,
        before: screen.textBeforeCursor(),
        look: {
          seen: screen.seenBeforeCursor(backdrop),
          pen: pen.now,
          savedPen: pen.saved,
          backdrop,
          size: { ...screen.printPlace, rows },
          isOrdinary,
          hasPlainTabs,
        },
        isEditing: modes.isBracketedPaste,
        isFullScreen: modes.isAlternateScreen,
        shows: (text) => screen.visibleText().join('').includes(text),
      }
    })
    this.loginOutput = this.#owned.own(
      new LoginOutput({
        clock: ports.clock,
        context: this,
        screen: (host) => this.views.screen(host),
        isHidden: () => this.options.preferences.greeting === 'hide',
        comesFromHere: (host, from) => isOwnAddress(from) || isJumpHost(ports.fleet.endpoint(host), from),
      }),
    )
    this.#owned.own(ports.fleet.on((event) => this.#handleFleet(event)))
    // After the console's own listener, so that its parts see the state after each event.
    const parts = this.#owned.own(options.createParts(this))
    this.pages = parts.pages
    this.work = parts.work
    this.rayLine = parts.rayLine
    this.forwards = parts.forwards
    for (const { host } of hosts) this.views.add(host)
    this.#applySizes()
  }

  get state(): ConsoleState {
    return this.store.state
  }

  get isIdle(): boolean {
    return (
      this.#feeder.isIdle &&
      this.loginOutput.isIdle &&
      this.work.isIdle &&
      Object.values(this.pages).every(({ isIdle }) => isIdle)
    )
  }

  get arrangement(): Arrangement {
    const { state } = this
    if (this.#arranged?.state !== state)
      this.#arranged = { state, arrangement: arrange(state, this.#arranged?.arrangement) }
    return this.#arranged.arrangement
  }

  /** Its shell waits for a line, of which something may be typed: no program, and no question that hides its answer. */
  isInShell(host: string): boolean {
    return this.#divergence.isAtPrompt(host)
  }

  /** The host's screen ends with a prompt, behind which nothing is typed. */
  isAtPrompt(host: string): boolean {
    return emptyPrompt(this.views.screen(host)?.lineToCursor() ?? '') !== undefined
  }

  /** Applies a change and what follows from it: the page of the focus, the sizes of the panes, output that was seen. */
  change(patch: (state: ConsoleState) => Partial<ConsoleState>): void {
    const before = this.state
    this.store.update(patch(before))
    const state = this.state
    if (state === before) return
    // A notice of one tab or view says nothing about the next one or a dialog. An error stays, so that it is read.
    const opensDialog = state.mode.kind === 'dialog' && before.mode.kind !== 'dialog' && state.notice?.tone !== 'error'
    const leavesView = before.panel?.hasKeys === true && state.panel?.hasKeys !== true && state.notice?.tone !== 'error'
    if ((state.tab !== before.tab || opensDialog || leavesView) && state.notice === before.notice)
      this.store.update({ notice: undefined })
    if (state.focus !== undefined && !state.hosts.has(state.focus))
      this.store.update({ focus: state.hosts.keys().next().value })
    if (LAYOUT_FIELDS.some((field) => state[field] !== before[field])) {
      const page = pageOf(this.arrangement, this.state.focus)
      this.store.update({ page: page ?? Math.min(this.state.page, this.arrangement.pages - 1) })
    }
    if ((state.isFolded && !before.isFolded) || (state.showsDifferences && !before.showsDifferences))
      this.comparison.refresh()
    if (!state.isFolded && !state.showsDifferences && (before.isFolded || before.showsDifferences)) this.#takeGroups([])
    if (state.hosts !== before.hosts) this.#drawHosts()
    if (state.receivers !== before.receivers) {
      this.#lateShells.noteReceivers()
      this.#divergence.noteChange()
      if (state.notice?.about === 'receivers' && state.notice === before.notice)
        this.store.update({ notice: undefined })
    }
    if (state.receivers !== before.receivers && this.page) this.noticeReceivers()
    this.#applySizes()
    this.#noteSeen()
    this.#runClock()
  }

  /** The header of a tab does not name them. */
  noticeReceivers(): void {
    const late = lateReceivers(this.state)
    const others = receiverList(this.state).filter((host) => !late.includes(host))
    const receive = others.length > 0 ? `receivers: ${foldHostSet(others)}` : late.length > 0 ? [] : 'no receivers'
    const text = [receive, late.length > 0 ? `no keys yet: ${foldHostSet(late)}` : []].flat().join('; ')
    this.notice(text, 'info', 'receivers')
  }

  /** A letter that was no command after the leader was typed a moment ago. */
  get isInWord(): boolean {
    return !hasPassed(this.#lastLetterMs, WORD_MS, this.clock.now())
  }

  /** `isLast`: what follows is no longer of the same word. */
  noteLetter(isLast = false): void {
    this.#lastLetterMs = isLast ? Number.NEGATIVE_INFINITY : this.clock.now()
  }

  /** The page that is shown; undefined: the shells are. */
  get page(): Page | undefined {
    const { tab } = this.state
    return tab === 'shells' ? undefined : this.pages[tab]
  }

  openDialog(make: DialogFactory): void {
    this.dialogs.open(make)
  }

  /** Every host receives; where receivers are new shells that get no keys yet, these do first. Those that this selects are shown as such. */
  selectAll(): void {
    const late = lateReceivers(this.state)
    this.#lateShells.letIn(late)
    if (late.length === 0) this.change(allReceive)
    else if (this.state.notice?.about === 'receivers') this.store.update({ notice: undefined })
  }

  reconnect(hosts: readonly string[]): void {
    this.#lateShells.noteAsked(hosts)
    this.ports.fleet.reconnect(hosts)
  }

  showTab(tab: Tab): void {
    this.change(({ mode, panel, tab: before }) => ({
      tab,
      cameFrom: undefined,
      mode: mode.kind === 'filter' ? TYPING : mode,
      // Asking for the shells while they are shown takes the keys from the panel beside them.
      ...(tab === 'shells' && before === tab && panel ? { panel: { ...panel, hasKeys: false } } : {}),
    }))
    this.page?.open()
  }

  /** Sends bytes to all receivers, and reports the hosts that were skipped. */
  sendToReceivers(bytes: Uint8Array): void {
    this.sendTo(receiverList(this.state), bytes)
  }

  sendTo(hosts: readonly string[], bytes: Uint8Array): void {
    if (this.#isOnPage(hosts)) return
    if (hosts.length === 0) return this.notice(needsReceiver(this.state) ?? '', 'warning', 'receivers')
    const end = this.#lateShells.endOfLost(bytes)
    // Keys that arrive together do the same as one by one.
    if (end !== undefined && end < bytes.length) {
      this.sendTo(hosts, bytes.subarray(0, end))
      return this.sendTo(hosts, bytes.subarray(end))
    }
    this.#expectEcho(hosts)
    const [first] = bytes
    if (bytes.length === 1 && first !== undefined && INTERRUPTS.has(first))
      for (const host of hosts) this.#feeder.dropBacklog(host, first)
    const { lostInput } = this.state
    const reports = this.#write([{ hosts, bytes }])
    const live = liveReceivers(this.state)
    const isFreed = lostInput !== undefined && this.state.lostInput === undefined && live.length > 0
    // Ctrl-C or Ctrl-U is meant for Muster here: nothing is missed.
    if (isFreed && bytes.length === 1 && first !== undefined && GIVES_UP.has(first))
      return this.notice(`${foldHostSet(live)} ${live.length === 1 ? 'gets' : 'get'} keys again`, 'info', 'receivers')
    this.reportWritten(reports)
  }

  /** Different bytes to different hosts (cursor keys in their modes, macros), reported together. `skipped`: receivers that get none. */
  sendEach(
    batches: readonly { readonly hosts: readonly string[]; readonly bytes: Uint8Array }[],
    skipped: WriteReport['skipped'] = [],
  ): void {
    if (this.#isOnPage(batches.flatMap(({ hosts }) => hosts))) return
    for (const { hosts } of batches) this.#expectEcho(hosts)
    const reports = this.#write(batches)
    this.reportWritten([...reports, { sent: [], skipped }])
    // What no host has got, none has missed.
    if (reports.some(({ sent }) => sent.length > 0)) this.#lateShells.noteMissed(skipped.map(({ host }) => host))
  }

  /** Hosts get nothing while a tab covers the shells, not even the rest of what was started before. */
  #isOnPage(hosts: readonly string[]): boolean {
    if (this.page === undefined) return false
    this.notice(`nothing sent to ${foldHostSet(hosts)}: press 1 for shells`, 'warning')
    return true
  }

  /**
   * For a text that is sent later: only the `named` hosts may get it, in the shells that they have now. When it is sent, `live` are the
   * hosts that still have the same shell; `skipped` are the others, and receivers that joined meanwhile.
   */
  addressees(named: readonly string[]): Addressees {
    const hasItsShell = this.#lateShells.remember(named)
    const reasonOf = (host: string): string => {
      const known = this.state.hosts.get(host)
      if (known?.session.kind !== 'ready') return 'not connected'
      return known.shell.kind === 'open' ? 'its shell is new' : 'its shell ended'
    }
    return {
      hasItsShell,
      now: () => ({
        live: named.filter(hasItsShell),
        skipped: [
          ...named.flatMap((host) => (hasItsShell(host) ? [] : [{ host, reason: reasonOf(host) }])),
          ...liveReceivers(this.state)
            .filter((host) => !named.includes(host))
            .map((host) => ({ host, reason: 'it became a receiver after the dialog opened' })),
        ],
      }),
    }
  }

  /**
   * Whether the text before the host's cursor asks for a password, or for something that may be one, as no line editor reads the
   * answer. If that text is empty, the row above may ask for a password.
   */
  asks(host: string): 'password' | 'something' | undefined {
    const screen = this.views.screen(host)
    if (screen === undefined) return undefined
    const before = screen.textBeforeCursor()
    const above = { line: screen.historyLines + screen.printPlace.row - 1, column: 0 }
    const rowAbove =
      before.trim() === '' && above.line >= 0 ? screen.textBetween(above, { ...above, column: screen.columns - 1 }) : ''
    if (asksSecret(before) || asksSecret(rowAbove.trimEnd())) return 'password'
    return !this.isBracketed(host) && asksSomething(before) ? 'something' : undefined
  }

  /** Its program asked for pastes in brackets, and reads them: after Esc alone, a line editor takes the first bracket for a key. */
  isBracketed(host: string): boolean {
    const { isBracketedPaste, isAlternateScreen } = this.views.screen(host)?.modes ?? {}
    return isBracketedPaste === true && (isAlternateScreen === true || !this.#escaped.has(host))
  }

  /** Sends text as a paste: bracketed where the remote program asked for it. */
  paste(text: string, hosts: readonly string[], skipped?: WriteReport['skipped']): void {
    const groups = Map.groupBy(hosts, (host) => this.isBracketed(host))
    this.sendEach(
      [...groups].map(([isBracketedPaste, members]) => ({
        hosts: members,
        bytes: encodePaste(text, { isBracketedPaste }),
      })),
      skipped,
    )
  }

  #write(batches: readonly { readonly hosts: readonly string[]; readonly bytes: Uint8Array }[]): WriteReport[] {
    const { state } = this
    const isLate = (host: string): boolean => state.hosts.get(host)?.isLate === true
    const reports = batches.map(({ hosts, bytes }): WriteReport => {
      const late = hosts.filter(isLate)
      if (late.length === 0) return this.ports.fleet.write(hosts, bytes)
      const report = this.ports.fleet.write(
        hosts.filter((host) => !late.includes(host)),
        bytes,
      )
      const skipped = late.map((host) => ({ host, reason: lateReason(state, state.hosts.get(host)) }))
      return { ...report, skipped: [...report.skipped, ...skipped] }
    })
    const sent = batches.map(({ bytes }, index) => ({ hosts: reports[index]?.sent ?? [], bytes }))
    this.options.onTyped(sent.flatMap(({ hosts }) => hosts))
    this.sessionLog.noteTyped(sent, this.clock.now())
    for (const { hosts, bytes } of sent) {
      const isEsc = bytes.length === 1 && bytes[0] === 0x1b
      for (const host of hosts)
        if (isEsc) this.#escaped.add(host)
        else this.#escaped.delete(host)
      this.#lateShells.noteTyped(hosts, bytes)
      this.#divergence.noteTyped(hosts, bytes)
    }
    for (const { hosts } of sent) {
      this.#autoClose.noteTyped(hosts)
      this.loginOutput.noteTyped(hosts)
    }
    return reports
  }

  /** It can be opened again if a connection is lost before any host has shown anything of it. Others would get it twice. */
  noteSentText(draft: Draft, hosts: readonly string[]): void {
    this.#sentText = { draft, hosts, atMs: this.clock.now() }
  }

  /** Keeps the text that these hosts lost; true: there is one. */
  #keepLostText(lost: readonly string[]): boolean {
    const { draft, hosts, atMs } = this.#sentText ?? {}
    if (draft === undefined || hosts === undefined || atMs === undefined) return false
    if (!hosts.some((host) => lost.includes(host))) return false
    if (hosts.some((host) => this.#divergence.hasChangedSince(host, atMs))) return false
    if (!this.drafts.some(({ text }) => text === draft.text)) this.drafts = [...this.drafts, draft]
    return true
  }

  #tellLostLines(hosts: readonly string[], lines: number): void {
    const isOne = lines === 1
    const [what, may] = [isOne ? 'the last line was' : `the last ${lines} lines were`, isOne ? 'it may' : 'they may']
    const text = `${what} not answered before the connection was lost; ${may} not have run`
    this.log(hosts.at(-1) ?? '', text, 'warning')
    const notice = `${foldHostSet(hosts)}: connection lost before ${what} answered; ${may} not have run`
    const again = `${commandLabel(this.state, 'paste')} opens the text again; `
    this.notice(`${this.#keepLostText(hosts) ? again : ''}${notice}`, 'warning', 'receivers')
  }

  reportWritten(reports: readonly WriteReport[]): void {
    const skipped = reports.flatMap(({ skipped }) => skipped)
    const discarded = reports.flatMap(({ discarded = [] }) => discarded)
    const text = writeNotice({ sent: reports.flatMap(({ sent }) => sent), skipped, discarded })
    if (text === undefined) {
      // Those that it names have got keys since.
      if (this.state.notice?.about === 'receivers' && this.state.notice.text === this.#missedText)
        this.store.update({ notice: undefined })
      return
    }
    // One line for a series of keys that the same hosts do not get, whatever they try meanwhile.
    const missed = [...skipped, ...discarded].map(({ host }) => host).join(' ')
    if (this.state.notice?.about !== 'receivers' || this.#missed !== missed) this.log('', text, 'warning')
    this.#missed = missed
    this.#missedText = printable(text)
    this.notice(text, 'warning', 'receivers')
  }

  notice(message: string, tone: NoticeTone = 'info', about?: Notice['about']): void {
    const text = printable(message)
    const atMs = this.clock.now()
    this.#noticeTimer?.[Symbol.dispose]()
    this.#noticeTimer = this.clock.after(NOTICE_MS, () => this.store.update({ notice: undefined }))
    // Of a key it is another one each time, which outlives that key.
    if (about !== 'key' && this.state.notice?.text === text && this.state.notice.tone === tone) return
    const isInLog = textWidth(text) > noticeColumns(this.state)
    this.store.update({ notice: { text, tone, atMs, about, isInLog } })
    // Many callers have logged it.
    if (isInLog && this.state.log.at(-1)?.text !== text) this.log('', text, tone)
  }

  log(host: string, message: string, tone: NoticeTone = 'info'): void {
    this.#addToLog({ atMs: this.clock.now(), host, text: message, tone })
  }

  #addToLog(entry: LogEntry): void {
    this.store.update({ log: addToLog(this.state.log, { ...entry, text: printable(entry.text) }) })
  }

  /** Takes other settings. The news for the user; undefined: nothing is different. */
  takePreferences(preferences: Preferences): string | undefined {
    const before = this.options.preferences
    const { warnings = [], ...settings } = preferences
    const changed = (Object.keys(settings) as (keyof typeof settings)[]).filter(
      (key) => !isDeepStrictEqual(settings[key], before[key]),
    )
    if (changed.length === 0) return undefined
    this.options = { ...this.options, preferences }
    this.views.setHistory(preferences.history)
    this.change(() => ({
      leaderLabel: preferences.leader,
      keymap: createKeymap(preferences.keys),
      ...(changed.includes('pane') ? { paneSize: preferences.pane } : {}),
    }))
    return [`preferences.yaml: ${changed.join(', ')} changed`, ...warnings].join('; ')
  }

  get canCopy(): boolean {
    return this.options.preferences.clipboard
  }

  copyText(text: string, where: string): boolean {
    const sequence = clipboardSequence(text)
    if (!this.canCopy) this.notice('copying is off: set clipboard: true in preferences.yaml', 'warning')
    else if (text.trim() === '') this.notice(`nothing to copy ${where}: no text is marked`, 'warning')
    else if (sequence === undefined)
      this.notice(`too long to copy: more than ${formatBytes(CLIPBOARD_BYTES)} ${where}`, 'warning')
    else {
      this.options.onSequence(sequence)
      const lines = text.trimEnd().split('\n').length
      this.notice(`copied ${lines === 1 ? clip(`“${text.trim()}”`, 40) : `${lines} lines`} ${where}`)
      return true
    }
    return false
  }

  noteRun(run: Omit<RunEntry, 'kind'>): void {
    this.sessionLog.noteRun(run)
  }

  writeReport(): void {
    void writeSessionReport({
      context: this,
      log: this.sessionLog,
      unfinishedRun: this.work.unfinishedRun,
      environment: this.ports.environment,
      canCopy: this.canCopy,
      promptOf: (host) => this.views.screen(host)?.textBeforeCursor(),
    })
  }

  clearSelection(): void {
    if (this.selection.clear()) this.options.onFramesChange()
  }

  /** False: the action cannot be done now, and a notice says why. */
  canRun(id: ActionId): boolean {
    const reason = disabledReasonOf(id, this.state)
    if (reason !== undefined) this.notice(reason, 'warning', 'key')
    return reason === undefined
  }

  moveFocus(direction: Direction): void {
    const to = focusNeighbour(this.arrangement, this.state.focus, direction)
    if (to !== undefined) this.change(() => ({ focus: to }))
  }

  stepFocus(by: 1 | -1): void {
    const leads = this.arrangement.units.map(([lead]) => lead)
    const at = this.arrangement.units.findIndex(
      (unit) => this.state.focus !== undefined && unit.includes(this.state.focus),
    )
    const next = leads[(at + by + leads.length) % leads.length]
    if (next !== undefined) this.change(() => ({ focus: next }))
  }

  turnPage(by: 1 | -1): void {
    const { pages, perPage, units } = this.arrangement
    const page = Math.max(0, Math.min(pages - 1, this.state.page + by))
    const first = units[page * perPage]?.[0]
    if (first !== undefined) this.change(() => ({ page, focus: first }))
  }

  resizePanes(columns: number, rows: number): void {
    this.change((state) => ({
      paneSize: {
        columns: Math.max(16, Math.min(state.columns, state.paneSize.columns + columns)),
        rows: Math.max(4, Math.min(state.rows - 2, state.paneSize.rows + rows)),
      },
    }))
    this.notice(`minimum pane size: ${this.state.paneSize.columns}×${this.state.paneSize.rows}`)
  }

  resize(columns: number, rows: number): void {
    this.change(() => ({ columns, rows }))
    this.drawDialog()
  }

  /** What it shows may have changed without its doing. */
  drawDialog(): void {
    const dialog = this.dialogs.current
    if (dialog)
      this.change(({ columns, rows }) => ({ mode: { kind: 'dialog', dialog: dialog.view({ columns, rows }) } }))
  }

  /** Connects the first hosts, once it is known how they are reached. Some may have been closed since. */
  connectFirst(endpoints: readonly Endpoint[]): void {
    const open = endpoints.filter(({ host }) => this.state.hosts.has(host))
    for (const endpoint of endpoints)
      if (!this.state.hosts.has(endpoint.host)) this.#closedEndpoints.set(endpoint.host, endpoint)
    const found = new Map(open.map((endpoint) => [endpoint.host, endpoint]))
    this.change(({ hosts }) => ({
      hosts: hosts.map((known) => {
        const endpoint = found.get(known.host)
        return endpoint ? { ...known, ...placeOf(endpoint) } : known
      }),
    }))
    for (const endpoint of open) {
      this.ports.fleet.add(endpoint)
      this.ports.fleet.resize(endpoint.host, this.views.size(endpoint.host))
    }
    this.ports.fleet.connect(open.map(({ host }) => host))
  }

  addHosts(endpoints: readonly Endpoint[]): void {
    const declared = new Set(this.ports.declaredHosts())
    const known = { declared, changed: this.declaredBefore }
    const close = commandLabel(this.state, 'close-host')
    const { fresh, taken, doubles } = newHosts(endpoints, this.state.hosts, known, close)
    const allReceive = this.state.receivers.size === this.state.hosts.size
    for (const endpoint of fresh) this.ports.fleet.add(endpoint)
    const names = fresh.map(({ host }) => host)
    // They are reached as hosts.yaml says now.
    for (const host of names) if (declared.has(host)) this.declaredBefore.delete(host)
    if (fresh.length > 0) {
      this.change((state) => ({
        hosts: this.#inPlaces(
          new Map([...state.hosts, ...fresh.map((added) => [added.host, hostStateOf(added)] as const)]),
        ),
        // A new host receives only if every other host does, so that none joins unseen, and no machine gets everything twice.
        receivers: allReceive
          ? new Set([...state.receivers, ...names.filter((host) => !doubles.has(host))])
          : state.receivers,
        focus: names[0] ?? state.focus,
      }))
      this.ports.fleet.connect(names)
    }
    const who = names.length === 1 ? names[0] : `${names.length} hosts`
    const added = names.length === 0 ? [] : [`added ${who}${allReceive ? '' : ' but not as a receiver'}`]
    const twice = [...doubles].map(
      ([host, open]) => `${host} is the same login as ${open}, and ${allReceive ? 'therefore ' : ''}no receiver`,
    )
    this.notice([...added, ...twice, ...taken].join('; '))
  }

  /** Hosts that come back get their old place; new ones come last. */
  #inPlaces(hosts: ReadonlyMap<string, HostState>): FixedMap<string, HostState> {
    for (const host of hosts.keys()) this.#places.add(host)
    const known = [...this.#places].flatMap((host) => hosts.get(host) ?? [])
    return FixedMap.of(known.map((state) => [state.host, state]))
  }

  /** The hosts that were closed last and have not been reopened. */
  get lastClosed(): readonly Endpoint[] {
    const closed = this.#closed.at(-1)?.filter((host) => !this.state.hosts.has(host)) ?? []
    return closed.flatMap((host) => this.#closedEndpoints.get(host) ?? [])
  }

  /** Opens the hosts that were closed last: as they were connected, or as hosts.yaml says now if it says something else. */
  async reopen(isWanted: () => boolean): Promise<void> {
    const closed = this.lastClosed
    const declared = new Set(this.ports.declaredHosts())
    const changed = closed.flatMap(({ host }) => (declared.has(host) && this.declaredBefore.has(host) ? [host] : []))
    const found = changed.length === 0 ? [] : await this.resolveNewHosts(changed.join())
    if (!isWanted()) return
    const now = new Map(found.map((endpoint) => [endpoint.host, endpoint]))
    this.#closed.pop()
    if (closed.length > 0) this.addHosts(closed.map((endpoint) => now.get(endpoint.host) ?? endpoint))
  }

  async resolveNewHosts(expression: string): Promise<readonly Endpoint[]> {
    return await this.ports.resolveNewHosts(expression, (name) => this.state.hosts.has(name))
  }

  /** What runs beside the shells on these hosts, and ends when they are closed; without `isMeant`, on all hosts. */
  busyOn(isMeant?: (host: string) => boolean): readonly Busy[] {
    const { work, forwards } = this
    const beside = [
      ...(work.isHeld ? [{ title: work.title(), hosts: work.busyHosts() }] : []),
      ...Object.values(this.pages).flatMap(({ busy }) => busy),
    ]
    const meant = beside.map((each) => ({ ...each, hosts: each.hosts.filter(isMeant ?? (() => true)) }))
    return [...meant.filter(({ hosts }) => isMeant === undefined || hosts.length > 0), ...forwards.busyOn(isMeant)]
  }

  removeHosts(hosts: readonly string[]): void {
    this.#closed.push(hosts)
    this.recording.leave(hosts)
    for (const host of hosts) {
      const endpoint = this.ports.fleet.endpoint(host)
      if (endpoint !== undefined) this.#closedEndpoints.set(host, endpoint)
      this.sessionLog.noteEnd(host, 'closed')
      this.ports.fleet.remove(host)
      // The fleet does not know it before its endpoint is.
      this.views.remove(host)
    }
    const removed = new Set(hosts)
    this.change((state) => {
      const left = FixedMap.of([...state.hosts].filter(([host]) => !removed.has(host)))
      const names = [...state.hosts.keys()]
      const at = names.indexOf(hosts[0] ?? '')
      const before = new Set([...(state.receiversBeforeSolo ?? [])].filter((host) => left.has(host)))
      return {
        hosts: left,
        receivers: new Set([...state.receivers].filter((host) => left.has(host))),
        // Where the lone receiver goes, the others get no key until the user goes back to them.
        receiversBeforeSolo: before.size === 0 ? undefined : before,
        focus: names.slice(at).find((host) => left.has(host)) ?? [...left.keys()].at(-1),
        isZoomed: false,
      }
    })
  }

  #handleFleet(event: FleetEvent): void {
    if (event.type === 'removed') {
      this.#divergence.forget(event.host)
      this.#lateShells.noteRemoved(event.host)
    }
    if (event.type === 'data') this.sessionLog.noteOutput(event.host, event.bytes, this.clock.now())
    if (event.type === 'banner') return this.loginOutput.noteBanner(event.host, event.text)
    if (event.type === 'data' || event.type === 'added' || event.type === 'removed') return
    if (event.type === 'shell') this.#noteShell(event.host, event.state)
    this.#divergence.noteChange()
    this.#updateHost(event.host, (host) => reduceHost(host, event))
    if (event.type === 'shell') {
      this.#lateShells.noteShell(event.host, event.state)
      this.#autoClose.noteShell(event.host, event.state)
      this.loginOutput.noteShell(event.host, event.state)
      if (event.state.kind === 'opening') this.sessionLog.noteShell(event.host)
    }
    const line = logLine(event, this.clock.now())
    if (line) this.#addToLog(line)
    this.options.onPaneChange(event.host, false)
    this.#runClock(event.host)
  }

  #handleParsed(host: string, bytes: number): void {
    this.loginOutput.noteParsed(host)
    const isEcho = isExpected(this.#echoes, host, bytes, this.clock.now())
    this.options.onPaneChange(host, isEcho)
    if ((this.views.screen(host)?.viewOffset ?? 0) > 0) this.options.onFramesChange()
    const known = this.state.hosts.get(host)
    const isNews = !isExpected(this.#redraws, host, bytes, this.clock.now())
    if (known && isNews && !known.hasNews && !this.arrangement.shown.has(host))
      this.#updateHost(host, (state) => ({ ...state, hasNews: true }))
    this.comparison.noteChange()
    this.#divergence.noteOutput(host)
  }

  #noteShell(host: string, state: ShellState): void {
    if (state.kind === 'ended') {
      this.#shellEndMs.set(host, this.clock.now())
      const { end } = state
      const isWell = end.kind === 'exit' && end.code === 0
      this.sessionLog.noteEnd(host, end.kind === 'lost' ? 'lost' : 'ended', isWell ? undefined : shellEnd(end))
    }
    if (state.kind !== 'opening') return
    this.#divergence.forget(host)
    const before = this.state.hosts.get(host)?.shell
    if (before?.kind === 'ended' && before.end.kind === 'lost')
      this.log(host, 'new shell; what ran in the last one was hung up', 'warning')
  }

  /** The state is still that before the new shell. */
  #newShellText(host: string): string | undefined {
    const shell = this.state.hosts.get(host)?.shell
    if (shell?.kind !== 'ended') return undefined
    const endedMs = this.#shellEndMs.get(host)
    const isLost = shell.end.kind === 'lost' && endedMs !== undefined
    const lost = isLost ? `connection lost ${secondText(endedMs)}, ` : ''
    return `── ${lost}new shell ${secondText(this.clock.now())} ──`
  }

  #ring(host: string): void {
    const nowMs = this.clock.now()
    const lastMs = this.state.hosts.get(host)?.bellAtMs
    // A flood of bells counts as one and does not redraw all frames again and again.
    if (lastMs !== undefined && nowMs - lastMs < BELL_EVERY_MS) return
    this.#updateHost(host, (known) => ({ ...known, bellAtMs: nowMs }))
    this.#runClock(host)
  }

  #expectEcho(hosts: readonly string[]): void {
    const untilMs = this.clock.now() + ECHO_MS
    for (const host of hosts) this.#echoes.set(host, { untilMs, bytesLeft: ECHO_BYTES })
  }

  #updateHost(name: string, update: (host: HostState) => HostState): void {
    const host = this.state.hosts.get(name)
    if (!host) return
    const next = update(host)
    if (next === host) return
    this.store.update({ hosts: this.state.hosts.with(name, next) })
    this.#drawHosts()
  }

  /** In a dialog that says what state they are in. */
  #drawHosts(): void {
    const { mode } = this.state
    if (mode.kind === 'dialog' && mode.dialog.showsHosts) this.drawDialog()
  }

  #takeGroups(equalGroups: readonly (readonly string[])[]): void {
    const different = outsideMajority(equalGroups)
    this.change((state) => ({
      equalGroups,
      hosts: state.hosts.map((host) => {
        const isDifferent = different.has(host.host)
        return host.isDifferent === isDifferent ? host : { ...host, isDifferent }
      }),
    }))
  }

  /** Gives every host's terminal the size of its pane, also on hidden pages. */
  #applySizes(): void {
    const { paneContent, zoomContent, zoomed, shown } = this.arrangement
    for (const [host, state] of this.state.hosts) {
      const { columns, rows } = zoomed !== undefined && shown.has(host) ? zoomContent : paneContent
      if (!this.views.resize(host, columns, rows)) continue
      this.sessionLog.noteResize(host, { columns, rows })
      if (isLive(state)) this.#redraws.set(host, { untilMs: this.clock.now() + REDRAW_MS, bytesLeft: ECHO_BYTES })
    }
  }

  #noteSeen(): void {
    const { shown } = this.arrangement
    if (this.state.tab !== 'shells') return
    for (const host of this.state.hosts.values()) {
      if (host.hasNews && shown.has(host.host)) this.#updateHost(host.host, (known) => ({ ...known, hasNews: false }))
    }
  }

  /** Ticks once a second, only while something on the screen counts down. `changed`: only this host can have begun to. */
  #runClock(changed?: string): void {
    if (this.#clockTimer) return
    const nowMs = this.clock.now()
    const counts = (host: HostState | undefined): boolean =>
      host?.session.kind === 'waiting' || (host?.bellAtMs !== undefined && nowMs - host.bellAtMs < 3000)
    const { hosts } = this.state
    if (changed === undefined ? ![...hosts.values()].some(counts) : !counts(hosts.get(changed))) return
    this.#clockTimer = this.clock.after(1000, () => {
      this.#clockTimer = undefined
      this.store.update({ clockMs: this.clock.now() })
      this.#runClock()
    })
    this.store.update({ clockMs: nowMs })
  }

  [Symbol.dispose](): void {
    this.#noticeTimer?.[Symbol.dispose]()
    this.#clockTimer?.[Symbol.dispose]()
    this.#owned[Symbol.dispose]()
  }
}

/** Until when, and how much of it, output is an answer to something that Muster did. */
type Expected = { readonly untilMs: number; bytesLeft: number }

/** What a flooding host prints after the first bytes is nothing that was expected. */
function isExpected(expected: Map<string, Expected>, host: string, bytes: number, nowMs: number): boolean {
  const known = expected.get(host)
  if (!known) return false
  known.bytesLeft -= bytes
  if (known.bytesLeft >= 0 && nowMs <= known.untilMs) return true
  expected.delete(host)
  return false
}
