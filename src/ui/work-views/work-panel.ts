/** The panel beside the shells: it shows the last run or copy, and its keys act on that. */

import { fileReason } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { partsWidth } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import type { LineCheck } from '../dialogs/prompt-dialog.ts'
import { commandOf } from '../keys/key-table.ts'
import { commandLabel } from '../keys/registry.ts'
import type { RayWork } from '../ray/ray-line.ts'
import { documentRows, firstRow, type RowDocument, rowsPane } from '../rows/rows-pane.ts'
import { ThrottledAction } from '../rows/throttled-action.ts'
import { type PageContext, selectHosts } from '../state/console-state.ts'
import { copyDocument, failureLines } from './copy-document.ts'
import { CopyWork } from './copy-work.ts'
import { isBusy, layoutPanel, openPanel, type Panel, type PanelCommand, panelKeys, panelName } from './panel.ts'
import type { WorkRequest } from './parse-work.ts'
import { type RunDocument, runDocument } from './run-document.ts'
import { groupOf, type RunView, selectedGroup, selectGroup } from './run-view.ts'
import { RunWork } from './run-work.ts'
import type { WorkPort } from './work-port.ts'
import * as questions from './work-questions.ts'

const SHOW_EVERY_MS = 100
const TICK_MS = 1000
const STEP_COLUMNS = 8
/** Of each group, in the session report. */
const REPORTED_LINES = 200
const NOT_FINISHED = 'not finished'

type RunReport = Parameters<PageContext['noteRun']>[0]

/** The drawn panel: rows in view and the first of them. */
type Drawn = {
  readonly panel: Panel
  readonly document: RowDocument
  readonly rows: number
  readonly first: number
}

export type WorkPorts = {
  readonly work: WorkPort
  readonly resolveHosts: questions.ResolveHosts
}

export class WorkPanel implements Disposable {
  readonly #context: PageContext
  readonly #ports: WorkPorts
  #work: RunWork | CopyWork | undefined
  /** The hosts on which it was started last. */
  #started: readonly string[] = []
  readonly #showing: ThrottledAction
  #ticking: Disposable | undefined
  #wasBusy = false
  /** Withdraws the question whether to stop what runs, or to run again what does not run. */
  #withdraw: (() => void) | undefined

  constructor(context: PageContext, ports: WorkPorts) {
    this.#context = context
    this.#ports = ports
    this.#showing = new ThrottledAction({ clock: context.clock, everyMs: SHOW_EVERY_MS }, () => this.#show())
  }

  get isBusy(): boolean {
    return this.#work?.isBusy ?? false
  }

  /** Closing the console stops it. A job of Ray belongs to the cluster and keeps running. */
  get isHeld(): boolean {
    const view = this.#work?.view
    return this.isBusy && !(view?.kind === 'run' && view.by === 'ray')
  }

  /** Only output of hosts can change what is shown. */
  get isIdle(): boolean {
    return !this.#showing.isWaiting && (this.#work?.isIdle ?? true)
  }

  /** Why nothing new can start, for a dialog, which has the keys. */
  get busyReason(): string | undefined {
    return this.isHeld
      ? `${this.title()} is still running: Esc, then ${commandLabel(this.#context.state, 'panel')} shows it, c stops it`
      : undefined
  }

  /** The running or last work. */
  title(): string {
    const view = this.#work?.view
    if (view === undefined) return 'nothing'
    return view.kind === 'run' ? `“${view.command}”` : `the copy to ${view.destination}`
  }

  /** The hosts that are still running. */
  busyHosts(): string[] {
    const view = this.#work?.view
    if (view?.kind === 'run') return [...view.hosts].flatMap(([host, { kind }]) => (kind === 'ended' ? [] : [host]))
    return [...(view?.hosts ?? [])].flatMap(([host, { result }]) => (result === undefined ? [host] : []))
  }

  /** Opens the dialog for a run or a copy. */
  ask(verb: WorkRequest['verb']): void {
    questions.openWork(this.#context, this, verb)
  }

  /** A line of the palette that is a run or a copy; undefined: it is neither. */
  readLine(text: string): LineCheck | undefined {
    return questions.readWorkLine(this.#context, this, text)
  }

  checkSources(sources: readonly string[]): Promise<void> | undefined {
    return this.#ports.work.checkSources?.(sources)
  }

  get resolveHosts(): questions.ResolveHosts {
    return this.#ports.resolveHosts
  }

  begin(request: WorkRequest | RayWork, hosts: readonly string[]): void {
    if (this.#work && this.#wasBusy) this.#context.noteRun(this.#reportOf(this.#work))
    this.#work?.[Symbol.dispose]()
    const work = this.#create(request, hosts)
    this.#work = work
    this.#started = hosts
    this.#context.log(foldHostSet(hosts), logText(request))
    this.#context.change(() => ({ tab: 'shells', panel: openPanel(work.view) }))
    this.#showing.now()
    // The output of a job that is followed fills the panel.
    if (request.verb === 'ray') this.#open()
  }

  #create(request: WorkRequest | RayWork, hosts: readonly string[]): RunWork | CopyWork {
    const { work: port } = this.#ports
    const { clock } = this.#context
    const onDirty = (): void => this.#showing.soon()
    if (request.verb === 'copy') {
      return new CopyWork({ sources: request.sources, destination: request.destination, hosts, port, onDirty })
    }
    const own = {
      hosts,
      clock,
      onDirty,
      onTrouble: (reason: string): void => {
        const text = `cannot keep more output in ${printable(port.spillDirectory)}: ${reason}. The commands continue.`
        this.#context.log(foldHostSet(hosts), text, 'error')
        this.#context.notice(text, 'error')
      },
    }
    if (request.verb === 'run') return new RunWork({ ...own, command: request.command, by: 'hosts', port })
    const { spillDirectory } = port
    const startCommand: WorkPort['startCommand'] = (_host, _command, handlers) => request.start(request.order, handlers)
    return new RunWork({ ...own, command: request.title, by: 'ray', port: { fanOut: 1, spillDirectory, startCommand } })
  }

  /** Gives the keys to the panel, or back to the shells; opens a closed panel again. */
  toggleKeys(): void {
    const work = this.#work
    if (work === undefined) return this.#context.notice('nothing has been run or copied yet', 'warning', 'key')
    this.#context.change(({ panel, tab }) =>
      panel === undefined
        ? { tab: 'shells', panel: openPanel(work.view) }
        : { tab: 'shells', panel: { ...panel, hasKeys: tab !== 'shells' || !panel.hasKeys } },
    )
  }

  takeKeys(hasKeys: boolean): void {
    this.#change((panel) => ({ ...panel, hasKeys }))
  }

  handleKey(label: string): void {
    const command = commandOf(panelKeys, label)
    const [work, drawn] = [this.#work, this.#drawn()]
    if (command !== undefined) return work && drawn && this.#actions(work, drawn)[command]()
    const { panel } = this.#context.state
    const name = panel === undefined ? 'panel' : panelName(panel)
    this.#context.notice(`no action for ${label} in the ${name}: Tab goes back to the shells`, 'info', 'key')
  }

  scrollBy(rows: number): void {
    const drawn = this.#drawn()
    if (drawn === undefined) return
    this.#scrollTo(drawn, drawn.first + rows)
  }

  /** The panel as a pane. */
  pane(rect: Rect, theme: Theme): PaneView | undefined {
    const { panel } = this.#context.state
    const document = panel && this.#document(panel, rect, theme)
    if (panel === undefined || document === undefined) return undefined
    const { hasKeys } = panel
    const title = panelName(panel)
    const select = (row: number): void => {
      const group = 'groupAt' in document ? (document as RunDocument).groupAt(row) : undefined
      if (group !== undefined) this.#changeRun((view) => ({ ...view, selected: group.hosts[0] }))
    }
    return rowsPane({
      ...{ id: '', title, hasKeys, isBusy: isBusy(panel), document, place: panel, rect, theme },
      ...(panel.view.kind === 'run' && panel.view.opened === undefined ? { list: { select } } : {}),
    })
  }

  /** Searches from the last match on. */
  async find(needle: string, by: 1 | -1): Promise<void> {
    const work = this.#work
    if (!(work instanceof RunWork) || needle === '') return
    work.view = { ...work.view, needle }
    const hit = await work.find(needle, by)
    if (work !== this.#work) return
    if (hit === undefined) {
      work.view = { ...work.view, hit: undefined, matches: undefined }
      if (work.isIdle) this.#context.notice(`“${needle}” not found`, 'warning')
      return this.#showing.now()
    }
    work.view = { ...work.view, hit, matches: undefined, opened: hit.host, selected: hit.host, isDiff: false }
    this.#showing.now()
    const drawn = this.#drawn()
    if (drawn) this.#scrollTo(drawn, hit.line + 1 - Math.floor(drawn.rows / 2))
    // Also at the end: what was found stays in view while output comes.
    this.#change((panel) => ({ ...panel, isFollowing: false }))
    const matches = await work.count(needle, hit)
    if (work !== this.#work || matches === undefined) return
    work.view = { ...work.view, matches }
    this.#showing.now()
  }

  /** Rejects with why it cannot be saved. */
  async save(directory: string): Promise<void> {
    const work = this.#work
    if (!(work instanceof RunWork)) return
    const hosts = foldHostSet([...work.view.hosts.keys()])
    const isPartial = work.isBusy
    const path = await this.#ports.work.saveOutput(directory, work.outputs()).catch((error: unknown) => {
      throw new Error(`cannot save: ${fileReason(error)}`)
    })
    if (isPartial)
      this.#context.notice(`saved what ${hosts} printed so far to ${path}; the command is still running`, 'warning')
    else this.#context.notice(`saved the output of ${hosts} to ${path}`)
  }

  stop(): void {
    this.#work?.stop()
    this.#showing.now()
  }

  close(): void {
    this.#context.change(() => ({ panel: undefined }))
  }

  [Symbol.dispose](): void {
    this.#showing[Symbol.dispose]()
    this.#ticking?.[Symbol.dispose]()
    this.#work?.[Symbol.dispose]()
  }

  #actions(work: RunWork | CopyWork, drawn: Drawn): Readonly<Record<PanelCommand, () => void>> {
    const { panel, rows, first, document } = drawn
    const run = work instanceof RunWork ? work : undefined
    const isList = panel.view.kind === 'run' && panel.view.opened === undefined
    const scrollTo = (row: number) => this.#scrollTo(drawn, row)
    const select = (by: number) => this.#changeRun((view) => selectGroup(view, by), true)
    const goTo = (row: number, by: number) => {
      if (isList) this.#changeRun((view) => selectGroup(view, by))
      scrollTo(row)
    }
    const shift = (by: number) => this.#change((now) => ({ ...now, column: Math.max(0, now.column + by) }))
    return {
      'to-shells': () => this.takeKeys(false),
      back: () => this.#back(panel),
      close: () => this.#askToClose(panel),
      cancel: () => this.#askToStop(panel),
      'cancel-now': () => this.stop(),
      retry: () => this.#askToRestart(work, work.retryable),
      repeat: () => this.#askToRestart(work, [...work.view.hosts.keys()]),
      up: () => (isList ? select(-1) : scrollTo(first - 1)),
      down: () => (isList ? select(1) : scrollTo(first + 1)),
      'page-up': () => scrollTo(first - rows + 1),
      'page-down': () => scrollTo(first + rows - 1),
      top: () => goTo(0, Number.NEGATIVE_INFINITY),
      end: () => goTo(document.length, Number.POSITIVE_INFINITY),
      left: () => shift(-STEP_COLUMNS),
      right: () => {
        if (this.#goesOn(drawn)) shift(STEP_COLUMNS)
        else this.#context.notice('no line here goes on to the right', 'info', 'key')
      },
      wide: () => this.#change((now) => ({ ...now, isWide: !now.isWide })),
      open: () => this.#open(),
      difference: () => {
        this.#changeRun((view) => ({ ...view, isDiff: !view.isDiff, opened: undefined, hit: undefined }), true)
        this.#showing.soon()
      },
      receive: () => this.#receive(work),
      search: () => run && questions.openSearch(this.#context, run.view.needle, (needle) => void this.find(needle, 1)),
      'next-hit': () => run && void this.find(run.view.needle, 1),
      'previous-hit': () => run && void this.find(run.view.needle, -1),
      save: () => run && questions.openSave(this.#context, (directory) => this.save(directory)),
    }
  }

  /** From one group to all, but never into the shells, where the next key would be typed. */
  #back(panel: Panel): void {
    if (panel.view.kind === 'run' && panel.view.opened !== undefined)
      return this.#changeRun((view) => ({ ...view, opened: undefined, hit: undefined }), true)
    this.#context.notice('Tab goes back to the shells, x closes')
  }

  #askToClose(panel: Panel): void {
    if (!this.isHeld) return this.close()
    if (panel.view.isStopping) return this.#context.notice('it is being stopped; x closes it afterwards')
    this.#askToStop(panel)
  }

  #askToStop({ view: { kind, isStopping } }: Panel): void {
    if (!this.isBusy || isStopping) return this.stop()
    const asked = { kind, hosts: this.busyHosts(), title: this.title(), onYes: () => this.stop() }
    this.#withdraw = questions.openStop(this.#context, asked)
  }

  #open(): void {
    const { view: shown } = this.#work ?? {}
    if (shown?.kind !== 'run') return
    const group = selectedGroup(shown)
    this.#changeRun((view) => ({ ...view, opened: group?.hosts[0], isDiff: false }))
    this.#change((panel) => ({ ...panel, offset: 0, column: 0, isFollowing: group?.state.kind !== 'ended' }))
  }

  #askToRestart(work: RunWork | CopyWork, hosts: readonly string[]): void {
    if (this.isBusy) return this.#context.notice('still running: c stops it', 'warning')
    if (hosts.length === 0) return this.#context.notice('no host failed: R repeats on all', 'warning')
    const { kind } = work.view
    const onYes = () => {
      if (this.#work === work && !this.isBusy) this.#restart(work, hosts)
    }
    this.#withdraw = questions.openAgain(this.#context, { kind, hosts, title: this.title(), onYes })
  }

  #restart(work: RunWork | CopyWork, hosts: readonly string[]): void {
    work.restart(hosts)
    this.#started = hosts
    this.#context.log(foldHostSet(hosts), `again: ${this.title()}`)
    this.#change((panel) => ({ ...panel, offset: 0 }))
    this.#showing.now()
  }

  #receive(work: RunWork | CopyWork): void {
    if (work.view.kind !== 'run') return
    const group = selectedGroup(work.view)
    if (group === undefined) return
    const { state } = this.#context
    const closed = group.hosts.filter((host) => !state.hosts.has(host))
    if (closed.length < group.hosts.length) {
      this.#context.change((now) => selectHosts(now, group.hosts))
      this.takeKeys(false)
    }
    if (closed.length === 0) return
    const [verb, them] = closed.length === 1 ? ['is', 'it'] : ['are', 'them']
    this.#context.notice(
      `${foldHostSet(closed)} ${verb} closed: ${commandLabel(state, 'add-host')} opens ${them}`,
      'warning',
    )
  }

  /** Whether a row in view has more to the right. */
  #goesOn({ document, first, rows }: Drawn): boolean {
    const width = (layoutPanel(this.#context.state).panel?.width ?? 0) - 2
    const inView = Array.from({ length: rows }, (_, index) => document.row(first + index))
    return inView.some((row) => partsWidth(row) > width)
  }

  #drawn(): Drawn | undefined {
    const { state } = this.#context
    const { panel, themeName } = state
    const rect = layoutPanel(state).panel
    if (panel === undefined || rect === undefined) return undefined
    const document = this.#document(panel, rect, themes[themeName])
    if (document === undefined) return undefined
    const rows = documentRows(rect.height, document)
    return { panel, document, rows, first: firstRow(panel, document, rows) }
  }

  #document(panel: Panel, { width, height }: Rect, theme: Theme): RowDocument | undefined {
    const { column, view } = panel
    const context = { theme, columns: Math.max(1, width - 2), rows: Math.max(1, height - 2), column }
    if (view.kind === 'copy') return copyDocument(view, context)
    const work = this.#work
    if (!(work instanceof RunWork)) return undefined
    const source = {
      text: (host: string) => work.text(host),
      difference: (group: RunView['groups'][number]) => work.difference(group),
      nowMs: this.#context.clock.now(),
    }
    return runDocument(view, source, context)
  }

  #scrollTo({ document, rows, panel }: Drawn, row: number): void {
    const last = Math.max(0, document.length - rows)
    const offset = Math.max(0, Math.min(last, row))
    const isOpened = panel.view.kind === 'run' && panel.view.opened !== undefined
    this.#change((now) => ({ ...now, offset, isFollowing: isOpened && this.isBusy && offset === last }))
    if (isOpened || panel.view.kind !== 'run') return
    // The selection stays in view.
    const { rowOf, groupAt } = document as RunDocument
    const selected = selectedGroup(panel.view)?.hosts[0]
    const at = selected === undefined ? undefined : rowOf(selected)
    if (at !== undefined && at >= offset && at < offset + rows) return
    const inView = groupAt(at !== undefined && at < offset ? offset : offset + rows - 1)
    this.#changeRun((view) => ({ ...view, selected: inView?.hosts[0] }))
  }

  #changeRun(change: (view: RunView) => RunView, isRevealed = false): void {
    const work = this.#work
    if (!(work instanceof RunWork)) return
    work.view = change(work.view)
    this.#showing.now()
    const drawn = isRevealed ? this.#drawn() : undefined
    if (drawn === undefined) return
    // Brings the header of the selected group and some of its lines into view.
    const host = groupOf(work.view, work.view.selected)?.hosts[0] ?? selectedGroup(work.view)?.hosts[0]
    const at = host === undefined ? undefined : (drawn.document as RunDocument).rowOf(host)
    if (at === undefined) return
    const margin = Math.min(6, drawn.rows)
    if (at < drawn.first) this.#change((panel) => ({ ...panel, offset: at, isFollowing: false }))
    else if (at + margin > drawn.first + drawn.rows)
      this.#change((panel) => ({ ...panel, offset: at + margin - drawn.rows, isFollowing: false }))
  }

  #change(change: (panel: Panel) => Panel): void {
    this.#context.change(({ panel }) => (panel === undefined ? {} : { panel: change(panel) }))
  }

  #show(): void {
    const work = this.#work
    if (work === undefined) return
    work.refresh()
    const { view } = work
    this.#change((panel) => ({ ...panel, view }))
    if (this.#wasBusy && !work.isBusy) {
      this.#withdraw?.()
      this.#reportEnd()
    }
    this.#wasBusy = work.isBusy
    if (work.isBusy) this.#tick()
  }

  /** Running times count up. */
  #tick(): void {
    this.#ticking ??= this.#context.clock.after(TICK_MS, () => {
      this.#ticking = undefined
      this.#context.change(() => ({ clockMs: this.#context.clock.now() }))
      if (this.isBusy) this.#tick()
    })
  }

  /** For the session report. After a restart, without the hosts that were left out. */
  #reportOf({ view }: RunWork | CopyWork): RunReport {
    const atMs = this.#context.clock.now()
    const started = new Set(this.#started)
    if (view.kind === 'copy') {
      const results = [...view.hosts].flatMap(([host, state]) =>
        started.has(host)
          ? { host, outcome: state.result?.outcome ?? NOT_FINISHED, lines: failureLines(view, state) }
          : [],
      )
      const alike = Map.groupBy(results, ({ outcome, lines }) => JSON.stringify([outcome, lines])).values()
      const groups = Array.from(alike, (members) => ({
        hosts: members.map(({ host }) => host),
        outcome: members[0]?.outcome ?? NOT_FINISHED,
        lines: members[0]?.lines ?? [],
      }))
      return { atMs, command: `copy ${view.sources.join(' ')} to ${view.destination}`, groups }
    }
    const work = this.#work
    const groups = view.groups.flatMap(({ hosts: all, state }) => {
      const hosts = all.filter((host) => started.has(host))
      if (hosts.length === 0) return []
      const text = work instanceof RunWork ? work.text(hosts[0] ?? '') : undefined
      const total = text?.lineCount ?? 0
      const count = Math.min(total, REPORTED_LINES)
      const lines = Array.from({ length: count }, (_, index) => text?.line(index).text ?? '')
      if (total > count) lines.push(`[… ${total - count} lines left out]`)
      return { hosts, outcome: state.kind === 'ended' ? formatOutcome(state.outcome) : NOT_FINISHED, lines }
    })
    return { atMs, command: view.command, groups }
  }

  /** What still runs, as far as it is. */
  get unfinishedRun(): RunReport | undefined {
    return this.#work && this.isBusy ? this.#reportOf(this.#work) : undefined
  }

  /** Where the user has stopped it. */
  #stoppedHosts(): string[] {
    const view = this.#work?.view
    if (view?.kind === 'run')
      return [...view.hosts].flatMap(([host, state]) =>
        state.kind === 'ended' && state.outcome.kind === 'cancelled' ? [host] : [],
      )
    return [...(view?.hosts ?? [])].flatMap(([host, { result }]) => (result?.outcome === 'cancelled' ? [host] : []))
  }

  #reportEnd(): void {
    if (this.#work) this.#context.noteRun(this.#reportOf(this.#work))
    const all = this.#work?.retryable ?? []
    const stopped = new Set(this.#stoppedHosts())
    const failed = all.filter((host) => !stopped.has(host))
    const parts = [
      ...(failed.length === 0 ? [] : [`failed on ${foldHostSet(failed)}`]),
      ...(stopped.size === 0 ? [] : [`stopped on ${foldHostSet([...stopped])}`]),
    ]
    const text = `${parts.join(', ') || 'done'}: ${this.title()}`
    const tone = all.length === 0 ? 'info' : 'warning'
    this.#context.log('', text, tone)
    const { state } = this.#context
    if (state.panel?.hasKeys !== true) this.#context.notice(text, tone)
  }
}

function logText(request: WorkRequest | RayWork): string {
  if (request.verb === 'run') return `run: ${request.command}`
  return request.verb === 'ray' ? request.title : `copy ${request.sources.join(' ')} to ${request.destination}`
}
