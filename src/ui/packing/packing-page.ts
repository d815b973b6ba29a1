/** The Packing tab: which job is placed where, and its keys. */
import { messageOf } from '../../base/errors.ts'
import type { GpuSample } from '../../ops/net/watch/sample.ts'
import type { ClusterUsage } from '../../ops/ray/usage.ts'
import { type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import { type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import type { ClusterWatch } from '../jobs/cluster-watch.ts'
import type { JobsPort, RealUse } from '../jobs/queue-view.ts'
import type { QueueWatch } from '../jobs/queue-watch.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'
import type { WatchedHosts } from '../network/watched-hosts.ts'
import type { RayCluster } from '../ray/ray-view.ts'
import type { RayWatch } from '../ray/ray-watch.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'
import { areaOf } from '../work-views/panel.ts'
import { lastOffset, packingPanes, queueInput, sourcesOf } from './packing-panes.ts'
import { rayPicture } from './ray-picture.ts'
import { exampleWhatIf, formatWhatIf, nextSlider, parseWhatIf, slide, type WhatIf, whatIfWords } from './what-if.ts'

type Test = (state: ConsoleState) => boolean

const showsQueue: Test = ({ queue }) => queue.picture === 'queue'
const isTrying: Test = (state) => showsQueue(state) && state.queue.whatIf !== undefined
const isTall: Test = (state) =>
  state.queue.picture === 'ray' ||
  lastOffset(queueInput(state, areaOf(state), themes[state.themeName], state.clockMs)) > 0

const canTry: Test = (state) => showsQueue(state) && !isTrying(state)
const canSwitch: Test = (state) => sourcesOf(state).length > 1

export const packingKeys = keyTable<ConsoleState>()(
  [
    'what-if',
    'w',
    'what-if',
    'Show where a gang would be placed, without submitting it. Enter alone repeats the last request.',
    canTry,
  ],
  ['end-what-if', 'w', 'clear what-if', 'Clear the what-if.', isTrying],
  ['right', 'Right', 'next option', 'What-if: select the next option of the marked slider, or add a bundle.', isTrying],
  ['left', 'Left', '', 'What-if: select the previous option, or remove a bundle.'],
  ['slider', 'Tab', 'next slider', 'What-if: mark the next slider: policy, bundles, strategy.', isTrying],
  ['strategy', 's', '', 'What-if: use the next strategy.'],
  ['policy', 'p', '', "What-if: use the next policy: the queue's, Ray's, or one of `muster simulate` for each bundle."],
  ['more', '+', '', 'What-if: add a bundle.'],
  ['fewer', '-', '', 'What-if: remove a bundle.'],
  [
    'cluster',
    'y',
    'next cluster',
    "Show the next cluster: what Ray, Slurm or Kubernetes has placed, then the queue's own hosts again.",
    canSwitch,
  ],
  ['down', 'Down j PageDown', 'more hosts', 'Scroll one row of hosts down.', isTall],
  ['up', 'Up k PageUp', '', 'Scroll one row of hosts up.'],
)

export type PackingCommand = (typeof packingKeys)[number]['id']

/** The queue, and what hosts really use. */
export type PackingSources = {
  readonly jobs: JobsPort
  readonly ray: RayWatch
  readonly watched: WatchedHosts
  readonly clusters: ClusterWatch
}

export class PackingPage implements Page {
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #sources: PackingSources
  readonly #numbers = new Map<string, number>()
  #lastWhatIf: WhatIf | undefined

  constructor(context: PageContext, watch: QueueWatch, sources: PackingSources) {
    this.#context = context
    this.#watch = watch
    this.#sources = sources
    watch.onRead(() => {
      if (context.state.tab !== 'packing') return
      this.#sample()
      watch.set({ used: this.#sampledUse() })
      void this.#tryOut()
    })
  }

  open(): void {
    this.#watch.open()
    this.#sources.clusters.open()
    this.#sample()
  }

  #sample(): void {
    this.#sources.watched.follow([...this.#context.state.hosts.keys()])
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    return packingPanes(this.#input(rect, theme))
  }

  handleKey(label: string): boolean {
    const command = commandOf(packingKeys, label, this.#context.state)
    if (command === undefined) return false
    this.#actions[command]()
    return true
  }

  showRay(): void {
    this.#context.showTab('packing')
    this.#watch.set({ picture: 'ray', packingOffset: 0 })
  }

  readonly #actions: Readonly<Record<PackingCommand, () => void>> = {
    up: () => this.scrollBy(-1),
    down: () => this.scrollBy(1),
    cluster: () => this.#switchPicture(),
    'what-if': () => this.#askWhatIf(),
    'end-what-if': () => this.#watch.set({ whatIf: undefined, trial: undefined }),
    strategy: () => this.#change((whatIf) => slide(whatIf, 'strategy', 1)),
    policy: () => this.#change((whatIf) => slide(whatIf, 'policy', 1)),
    more: () => this.#change((whatIf) => slide(whatIf, 'bundles', 1)),
    fewer: () => this.#change((whatIf) => slide(whatIf, 'bundles', -1)),
    right: () => this.#change((whatIf) => slide(whatIf, whatIf.slider, 1)),
    left: () => this.#change((whatIf) => slide(whatIf, whatIf.slider, -1)),
    slider: () => this.#change(nextSlider),
  }

  #switchPicture(): void {
    const { state } = this.#context
    const sources = sourcesOf(state)
    const picture = sources[sources.indexOf(state.queue.picture) + 1] ?? 'queue'
    if (picture === state.queue.picture)
      return this.#context.notice('hosts.yaml declares no other cluster: Ray, Slurm or Kubernetes', 'warning')
    this.#sources.clusters.show({ picture, packingOffset: 0 })
  }

  #change(change: (whatIf: WhatIf) => WhatIf): void {
    const { whatIf } = this.#context.state.queue
    if (whatIf === undefined) return this.#context.notice('press w for a what-if', 'warning')
    this.#try(change(whatIf))
  }

  #askWhatIf(): void {
    const { status } = this.#context.state.queue
    const last = this.#lastWhatIf ?? exampleWhatIf(status?.hosts ?? [])
    const fallback = formatWhatIf(last)
    const check = (text: string): PromptCheck => {
      const parsed = parseWhatIf(text)
      return typeof parsed === 'string' ? { error: parsed } : { preview: [{ text: whatIfWords(parsed), tone: 'ok' }] }
    }
    this.#context.openDialog(
      promptDialog({
        id: 'what-if',
        title: 'What-if: where would a gang go?',
        label: 'Request:',
        submitTitle: 'show',
        fallback,
        help: [
          { text: 'Press Enter to use the request shown.', tone: 'muted' },
          { text: 'Options: --bundles, --cpu, --gpu, --memory (16GiB) and --strategy.', tone: 'muted' },
        ],
        check,
        onSubmit: (text) => {
          const parsed = parseWhatIf(text)
          if (typeof parsed !== 'string') this.#try(text === fallback ? last : parsed)
        },
      }),
    )
  }

  /** The trial before stays until there is a new one, so that the picture does not flicker. */
  #try(whatIf: WhatIf): void {
    this.#lastWhatIf = whatIf
    this.#watch.set({ whatIf, picture: 'queue' })
    void this.#tryOut()
  }

  async #tryOut(): Promise<void> {
    const { whatIf } = this.#context.state.queue
    if (whatIf === undefined) return
    try {
      const trial = await this.#sources.jobs.tryOut(whatIf)
      if (this.#context.state.queue.whatIf === whatIf) this.#watch.set({ trial })
    } catch (error) {
      this.#context.notice(messageOf(error), 'error')
    }
  }

  scrollBy(rows: number): void {
    const { state } = this.#context
    const last = lastOffset(this.#input(areaOf(state), themes[state.themeName]))
    const from = Math.min(last, state.queue.packingOffset)
    this.#watch.set({ packingOffset: Math.max(0, Math.min(last, from + Math.sign(rows))) })
  }

  [Symbol.dispose](): void {}

  #input(rect: Rect, theme: Theme) {
    const { state, clock } = this.#context
    const { usage } = state.ray
    const { cluster } = this.#sources.ray
    const input = queueInput(state, rect, theme, clock.now())
    const fromRay = usage === undefined || cluster === undefined ? [] : rayUse(usage, cluster)
    // Samples are more recent than what Ray reports.
    const used = withAddresses(new Map([...fromRay, ...state.queue.used]), state)
    if (usage === undefined || cluster === undefined || state.queue.picture !== 'ray') return { ...input, used }
    return { ...input, used, ray: rayPicture(usage, cluster.nodes, (group) => this.#numberOf(group)) }
  }

  /** Groups keep their letters. */
  #numberOf(group: string): number {
    const known = this.#numbers.get(group)
    if (known !== undefined) return known
    this.#numbers.set(group, this.#numbers.size + 1)
    return this.#numbers.size
  }

  #sampledUse(): ReadonlyMap<string, RealUse> {
    const used = new Map<string, RealUse>()
    for (const { host, samples, trouble, isOwn } of this.#sources.watched.hosts) {
      const last = samples.at(-1)
      if (last !== undefined && !isOwn && trouble === undefined)
        used.set(host, { cpu: last.cpu, memoryBytes: last.memoryUsedBytes, gpu: meanBusy(last.gpus) })
    }
    return used
  }
}

function meanBusy(gpus: readonly GpuSample[]): number | undefined {
  const busy = gpus.flatMap(({ busy }) => busy ?? [])
  return busy.length === 0 ? undefined : busy.reduce((sum, each) => sum + each, 0) / busy.length
}

const rayUse = ({ nodes }: ClusterUsage, cluster: RayCluster): (readonly [string, RealUse])[] =>
  nodes.flatMap(({ ip, isAlive, cpuPercent, memory }) => {
    const host = cluster.nodes.get(ip)
    if (host === undefined || !isAlive || cpuPercent === undefined || memory === undefined) return []
    return [[host, { cpu: cpuPercent / 100, memoryBytes: memory.used }] as const]
  })

/** An engine may name its nodes after the addresses that hosts.yaml declares. */
function withAddresses(used: ReadonlyMap<string, RealUse>, { hosts }: ConsoleState): ReadonlyMap<string, RealUse> {
  const byAddress = [...used].flatMap(([host, use]) => {
    const address = hosts.get(host)?.address ?? ''
    return address === '' ? [] : [[address, use] as const]
  })
  return new Map([...byAddress, ...used])
}
