/** The mesh in the Network tab: asks for the hosts, shows the plan, measures, and shows the result. It continues while another view or tab is shown. */
import { MusterError, sentenceOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { measuredOf } from '../../ops/net/mesh/judge.ts'
import { beginChange, type ChangeView, takePlan, takeStep } from '../bring-up/bring-up-view.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import type { DialogLine } from '../dialogs/dialog.ts'
import { completeHostSet } from '../dialogs/prompt-line.ts'
import { confirmDialog, withdrawable } from '../dialogs/text-dialog.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import { type ConsoleState, receiverList } from '../state/console-state.ts'
import { picturePanes, planPanes } from './mesh-panes.ts'
import { changePicture } from './mesh-picture.ts'
import {
  beginMesh,
  canInstall,
  canStart,
  installWords,
  isDeciding,
  isMeasuring,
  isPlan,
  type MeshOrder,
  type MeshRun,
  takeEnd,
  takeEvent,
  takeFailure,
  takeStart,
  takeSurvey,
  withLinks,
} from './mesh-run.ts'
import { NetTest } from './net-test.ts'
import { splitOrder } from './network-view.ts'
import { meshExport, openExport } from './result-export.ts'

type Test = (run: MeshRun) => boolean

const isDone: Test = ({ phase }) => phase === 'done'
/** The hosts may already be changed. */
const isInstalling: Test = (run) => run.phase === 'install' && !isDeciding(run)
/** From an open link, Esc goes back to the matrix first. */
const isMatrix: Test = (run) => (run.phase === 'done' || isMeasuring(run)) && !run.shown.isOpen

const runKeys = keyTable<MeshRun>()(
  ['start', 'Enter', 'start', 'Mesh: start the measurement that the plan shows.', canStart],
  ['install', 'i', 'install iperf', 'Mesh: install iperf on the hosts that lack it; shows the plan first.', canInstall],
  ['apply', 'y', 'apply', 'Mesh: apply the plan of the installation.', ({ install }) => install?.phase === 'ask'],
  ['discard', 'Esc q Ctrl-c', 'cancel', 'Mesh: discard the plan.', (run) => isPlan(run) && !isInstalling(run)],
  ['up', 'Up k PageUp', '', 'Mesh: scroll the plan up.', isPlan],
  ['down', 'Down j PageDown', '', 'Mesh: scroll the plan down.', isPlan],
  ['halt', 'Ctrl-c c', 'stop', 'Mesh: stop the installation.', ({ phase }) => phase === 'install'],
  ['stop', 'Ctrl-c c', 'stop', 'Mesh: stop measuring, and keep the finished links.', isMeasuring],
  ['ask', 'Esc q x', 'stop', 'Mesh: ask whether to stop the installation.', isInstalling],
  ['leave', 'Esc q', 'hosts', 'Mesh: go back to the table of hosts. A running measurement continues.', isMatrix],
  ['write', 'w', 'write', 'Mesh: write the result as SVG or CSV.', isDone],
  ['again', 'r', 'repeat', 'Mesh: plan the same measurement again.', isDone],
  ['results', 'v', 'results', 'Mesh: list the kept results.', isDone],
  ['other', 'm', 'other hosts', 'Mesh: measure other hosts.', isDone],
)

const onRun =
  (isActive: Test | undefined) =>
  ({ network: { mesh } }: ConsoleState): boolean =>
    mesh !== undefined && isActive?.(mesh) !== false

export const meshKeys: readonly KeyEntry<ConsoleState>[] = runKeys.map((entry) => ({
  ...entry,
  isActive: onRun(entry.isActive),
}))

const HELP: readonly DialogLine[] = [
  { text: 'm[1-4]     @gpus --time 10 --serial     all --udp 100M', tone: 'muted' },
  { text: 'Takes the options of muster net mesh. The plan is shown first.', tone: 'muted' },
]

const TICK_MS = 1000

export class MeshView extends NetTest<MeshOrder> {
  #run: MeshRun | undefined
  #ticking: Disposable | undefined
  /** Answers the question whether to install. */
  #answer: ((isYes: boolean) => void) | undefined
  /** Withdraws the question whether to stop the installation. */
  #withdrawStop: (() => void) | undefined

  get busy() {
    const run = this.#run
    if (run === undefined || !(isMeasuring(run) || run.phase === 'install')) return undefined
    return { title: run.phase === 'install' ? 'installation of iperf' : 'mesh', hosts: run.order.hosts }
  }

  /** Asks for the hosts, or shows the measurement that runs or has ended unseen. */
  ask(): void {
    if (this.busy !== undefined || this.#run?.isUnseen === true) return this.parts.show('mesh')
    this.prompt(
      {
        id: 'mesh',
        title: 'Measure every link between hosts',
        label: 'Hosts, options:',
        initial: foldHostSet(receiverList(this.parts.context.state)),
        submitTitle: 'plan',
        help: HELP,
        complete: completeHostSet,
      },
      (order) => [{ text: `${foldHostSet(order.hosts)}: ${beginMesh(order).plan.words}`, tone: 'ok' }],
    )
  }

  override open(): void {
    if (this.#run?.isUnseen === true) this.#set({ ...this.#run, isUnseen: false })
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    const run = this.parts.context.state.network.mesh
    if (run === undefined) return []
    const onChange = (shown: MeshRun['shown']) => this.#run !== undefined && this.#set({ ...this.#run, shown })
    const context = { rect, theme, nowMs: this.parts.context.clock.now(), onChange }
    return isPlan(run) ? planPanes(run, context) : picturePanes(run.shown, context, run)
  }

  isAnswer(label: string): boolean {
    return this.#commandOf(label) === 'apply'
  }

  #commandOf(label: string) {
    const run = this.#run
    const entries = run && runKeys.filter((entry) => entry.isActive?.(run) !== false)
    return entries && commandOf(entries, label)
  }

  handleKey(label: string): boolean | 'leave' {
    const run = this.#run
    if (run === undefined) return 'leave'
    const command = this.#commandOf(label)
    switch (command) {
      case 'start':
        void this.#measure(run)
        return true
      case 'install':
        void this.#install(run)
        return true
      case 'apply':
        this.#changeInstall((view) => ({ ...view, phase: 'lock' }))
        this.#answer?.(true)
        return true
      case 'discard':
        if (run.phase !== 'install') {
          this.working?.abort()
          return 'leave'
        }
        this.#halt()
        return true
      case 'halt':
        this.#halt()
        return true
      case 'leave':
        return 'leave'
      case 'up':
      case 'down':
        this.scrollBy((command === 'up' ? -1 : 1) * (label.startsWith('Page') ? 10 : 1))
        return true
      case 'stop':
        this.#stop()
        return true
      case 'ask':
        this.#askToStop()
        return true
      case 'write':
        openExport(this.parts.context, this.parts.port, meshExport(run.shown.picture))
        return true
      case 'again':
        this.begin(run.order)
        return true
      case 'results':
        this.parts.show('results')
        return true
      case 'other':
        this.ask()
        return true
      case undefined: {
        if (isPlan(run)) return false
        const shown = changePicture(run.shown, label)
        if (shown !== undefined) this.#set({ ...run, shown })
        return shown !== undefined
      }
    }
  }

  scrollBy(rows: number): void {
    const run = this.#run
    if (run === undefined) return
    if (isPlan(run)) {
      const most = run.plan.slots.length + (run.tools?.lines.length ?? 0)
      return this.#set({ ...run, offset: Math.max(0, Math.min(most, run.offset + rows)) })
    }
    const shown = changePicture(run.shown, rows > 0 ? 'Down' : 'Up')
    if (shown !== undefined) this.#set({ ...run, shown })
  }

  override [Symbol.dispose](): void {
    super[Symbol.dispose]()
    this.#answer?.(false)
    this.#ticking?.[Symbol.dispose]()
  }

  protected read(text: string): MeshOrder {
    const { target, words } = splitOrder(text)
    const { hosts: all, groups } = this.parts.context.state
    const hosts = this.parts.resolveHosts(target, [...all.keys()], groups)
    if (hosts.length < 2) throw new MusterError('usage', 'a measurement needs two or more hosts')
    return {
      hosts,
      options: this.parts.port.meshOptions(words, hosts),
    }
  }

  protected begin(order: MeshOrder): void {
    void this.#survey(order)
  }

  async #survey(order: MeshOrder, install?: ChangeView): Promise<void> {
    const working = new AbortController()
    this.working?.abort()
    this.working = working
    this.#set(beginMesh(order, install))
    this.parts.show('mesh')
    try {
      const hosts = await this.parts.port.survey(order, working.signal)
      if (!working.signal.aborted && this.#run !== undefined) this.#set(takeSurvey(this.#run, hosts))
    } catch (error) {
      if (!working.signal.aborted) this.#fail(error)
    }
  }

  async #measure(run: MeshRun): Promise<void> {
    const working = new AbortController()
    this.working = working
    this.#set(takeStart(run))
    this.#tick()
    const { clock } = this.parts.context
    const who = foldHostSet(run.order.hosts)
    try {
      const end = await this.parts.port.measureMesh(run.order, working.signal, (event) => {
        if (this.#run !== undefined) this.#run = takeEvent(this.#run, event, clock.now())
        if (!this.isDisposed) this.showing.soon()
      })
      if (this.isDisposed || this.#run === undefined) return
      const problem = end.problem === undefined ? undefined : `cannot keep the result: ${end.problem}`
      this.#set({
        ...takeEnd(this.#run, end.report, end.findings, end.earlier, problem, clock.now()),
        isStopping: false,
      })
      const [first] = end.findings
      const measured = measuredOf(end.report.links).length
      const words = `mesh: ${measured} of ${end.report.links.length} links measured${first === undefined ? '' : `; ${first.text}`}`
      this.parts.context.log(
        who,
        printable(words),
        first === undefined || first.gravity === 'note' ? 'info' : 'warning',
      )
      this.#noteEnd('mesh measured')
    } catch (error) {
      this.#fail(error)
    }
  }

  #fail(error: unknown): void {
    if (this.isDisposed || this.#run === undefined) return
    const problem = sentenceOf(error)
    this.#set(takeFailure(this.#run, problem))
    this.parts.context.log('', printable(`mesh: ${problem}`), 'error')
    this.#noteEnd('mesh failed')
  }

  /** The user may have left the view or the tab meanwhile. */
  #noteEnd(text: string): void {
    const { tab, network } = this.parts.context.state
    const isShown = network.views.at(-1) === 'mesh'
    if (this.#run !== undefined && !isShown) this.#set({ ...this.#run, isUnseen: true })
    if (tab !== 'network') this.parts.context.notice(`${text}: see the Network tab`)
    else if (!isShown) this.parts.context.notice(`${text}: m shows it`)
  }

  async #install(run: MeshRun): Promise<void> {
    const working = new AbortController()
    const { clock } = this.parts.context
    const { order } = run
    this.working = working
    const change = { direction: 'up' as const, areas: ['iperf'], hosts: run.tools?.lacking ?? [] }
    this.#set({ ...run, phase: 'install', install: beginChange(change, clock.now()), offset: 0 })
    this.#tick()
    let end: NonNullable<ChangeView['end']> = 'error'
    try {
      end = await this.parts.port.installIperf(order, working.signal, {
        onPhase: (phase) => this.#changeInstall((view) => ({ ...view, phase })),
        onPlan: (plan, isAgain) => this.#changeInstall((view) => takePlan(view, plan, isAgain)),
        confirm: () => {
          this.#changeInstall((view) => ({ ...view, phase: 'ask' }))
          return new Promise((resolve) => {
            this.#answer = resolve
          })
        },
        onEvent: (event) => this.#changeInstall((view) => takeStep(view, event, clock.now())),
        onSay: (text, isDetail) => {
          if (!isDetail) this.#changeInstall((view) => ({ ...view, said: [...view.said, text] }))
        },
      })
    } catch (error) {
      this.#changeInstall((view) => ({ ...view, said: [...view.said, printable(sentenceOf(error))] }))
    }
    this.#answer = undefined
    const install = this.#run?.install
    if (this.isDisposed || install === undefined) return
    const hasBegun = [...install.steps.values()].some(({ state }) => state.kind !== 'waiting')
    if ((end === 'declined' || end === 'cancelled') && !hasBegun)
      return this.#set({ ...run, install: undefined, phase: 'plan' })
    const ended: ChangeView = { ...install, phase: 'ended', end, isStopping: false }
    const who = foldHostSet(order.hosts)
    for (const { text, isBad } of installWords(ended))
      this.parts.context.log(who, `mesh: ${text}`, isBad ? 'warning' : 'info')
    if (this.parts.context.state.tab !== 'network') this.parts.context.notice('mesh plan ready: see the Network tab')
    await this.#survey(order, ended)
  }

  /** Stops running steps on the hosts, too. */
  #halt(): void {
    this.working?.abort()
    this.#answer?.(false)
    this.#answer = undefined
    this.#changeInstall((view) => ({ ...view, isStopping: true }))
  }

  #changeInstall(change: (view: ChangeView) => ChangeView): void {
    if (this.isDisposed || this.#run?.install === undefined) return
    this.#run = { ...this.#run, install: change(this.#run.install) }
    this.showing.soon()
  }

  #stop(): void {
    if (this.#run === undefined || this.#run.isStopping) return
    this.working?.abort()
    this.#set({ ...this.#run, isStopping: true })
  }

  #askToStop(): void {
    const { make, withdraw } = withdrawable(
      confirmDialog({
        id: 'stop-mesh',
        title: 'Stop the installation?',
        lines: [],
        yesTitle: 'stop',
        noTitle: 'keep installing',
        onYes: () => this.#halt(),
      }),
    )
    this.#withdrawStop = withdraw
    this.parts.context.openDialog(make)
  }

  /** The time that is left counts down. */
  #tick(): void {
    this.#ticking?.[Symbol.dispose]()
    this.#ticking = this.parts.context.clock.after(TICK_MS, () => {
      if (this.busy === undefined) return
      this.showing.soon()
      this.#tick()
    })
  }

  #set(run: MeshRun): void {
    this.#run = run
    this.showing.now()
  }

  protected publish(): void {
    const run = this.#run
    if (run === undefined) return
    if (this.busy === undefined) this.#withdrawStop?.()
    this.#run = isMeasuring(run) ? withLinks(run) : run
    this.parts.context.change(({ network }) => ({ network: { ...network, mesh: this.#run } }))
  }
}
