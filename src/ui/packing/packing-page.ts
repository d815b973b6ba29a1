/** The Packing tab: which job is placed where, and its keys. */
import { hasPassed } from '../../base/clock.ts'
import { messageOf } from '../../base/errors.ts'
import type { ClusterUsage } from '../../ops/ray/usage.ts'
import { type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import { type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import type { ClusterSource, JobsPort, QueueView, RealUse } from '../jobs/queue-view.ts'
import type { QueueWatch } from '../jobs/queue-watch.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'
import type { WatchedHosts } from '../network/watched-hosts.ts'
import type { RayCluster } from '../ray/ray-view.ts'
import type { RayWatch } from '../ray/ray-watch.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'
import { areaOf } from '../work-views/panel.ts'
import { lastOffset, packingPanes, queueInput } from './packing-panes.ts'
import { rayPicture } from './ray-picture.ts'
import { exampleWhatIf, formatWhatIf, nextSlider, parseWhatIf, slide, type WhatIf, whatIfWords } from './what-if.ts'

type Test = (state: ConsoleState) => boolean

const showsQueue: Test = ({ queue }) => queue.picture === 'queue'
const isTrying: Test = (state) => showsQueue(state) && state.queue.whatIf !== undefined
const isTall: Test = (state) =>
  !showsQueue(state) || lastOffset(queueInput(state.queue, areaOf(state), themes[state.themeName], state.clockMs)) > 0

const canTry: Test = (state) => showsQueue(state) && !isTrying(state)
const canSwitch: Test = (state) => state.ray.view.kind === 'up' || state.queue.clusters.length > 0 || !showsQueue(state)

export const packingKeys = keyTable<ConsoleState>()(
  ['to-shells', 'Esc q', 'shells', 'Go back to the shells.'],
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
    'ray',
    'y',
    'next cluster',
    'Show what Ray or Slurm has placed, or the queue again. Needs a Ray head that answers, or the login host of Slurm.',
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
}

/** Each reading is a request to the controller of a cluster. */
const CLUSTER_EVERY_MS = 4000
const CLUSTER_READ_MS = 10_000

export class PackingPage implements Page {
  readonly isIdle = true
  readonly busy = undefined
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #sources: PackingSources
  readonly #numbers = new Map<string, number>()
  #clusters: readonly ClusterSource[] | undefined
  #clusterReadMs = 0
  /** The reading that is under way. */
  #reading: AbortController | undefined
  #lastWhatIf: WhatIf | undefined

  constructor(context: PageContext, watch: QueueWatch, sources: PackingSources) {
    this.#context = context
    this.#watch = watch
    this.#sources = sources
    watch.onRead(() => {
      if (context.state.tab !== 'packing') return
      this.#readCluster()
      watch.set({ used: this.#sampledUse() })
      void this.#tryOut()
    })
  }

  open(): void {
    this.#watch.open()
    if (this.#clusters === undefined) void this.#findClusters()
  }

  async #findClusters(): Promise<void> {
    try {
      this.#clusters = await this.#sources.jobs.clusters()
      this.#watch.set({ clusters: this.#clusters.map(({ place }) => place) })
    } catch {
      // Why hosts.yaml or the queue cannot be read is shown instead of the queue.
    }
  }

  get #source(): ClusterSource | undefined {
    const { picture } = this.#context.state.queue
    return this.#clusters?.find(({ place }) => place === picture)
  }

  #readCluster(): void {
    const source = this.#source
    const nowMs = this.#context.clock.now()
    if (source === undefined || this.#reading || !hasPassed(this.#clusterReadMs, CLUSTER_EVERY_MS, nowMs)) return
    this.#clusterReadMs = nowMs
    void this.#show(source)
  }

  async #show(source: ClusterSource): Promise<void> {
    const reading = new AbortController()
    this.#reading = reading
    using _timer = this.#context.clock.after(CLUSTER_READ_MS, () => {
      this.#endReading()
      this.#watch.set({ cluster: 'no answer in time' })
    })
    const cluster = await source.read(reading.signal)
    if (this.#reading !== reading) return
    this.#reading = undefined
    this.#watch.set({ cluster })
  }

  #endReading(): void {
    this.#reading?.abort()
    this.#reading = undefined
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
    'to-shells': () => this.#context.showTab('shells'),
    up: () => this.scrollBy(-1),
    down: () => this.scrollBy(1),
    ray: () => this.#switchPicture(),
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
    const { queue, ray } = this.#context.state
    const withRay = ray.usage === undefined ? [] : (['ray'] as const)
    const pictures: readonly QueueView['picture'][] = ['queue', ...withRay, ...queue.clusters]
    if (pictures.length === 1 && queue.picture === 'queue')
      return this.#context.notice('the head of Ray does not answer', 'warning')
    const picture = pictures[pictures.indexOf(queue.picture) + 1] ?? 'queue'
    this.#clusterReadMs = 0
    this.#endReading()
    this.#watch.set({ picture, cluster: undefined, packingOffset: 0 })
    this.#readCluster()
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

  [Symbol.dispose](): void {
    this.#endReading()
  }

  #input(rect: Rect, theme: Theme) {
    const { state, clock } = this.#context
    const { usage } = state.ray
    const { cluster } = this.#sources.ray
    const input = queueInput(state.queue, rect, theme, clock.now())
    if (usage === undefined || cluster === undefined) return input
    const ray =
      state.queue.picture === 'ray' ? rayPicture(usage, cluster.nodes, (group) => this.#numberOf(group)) : undefined
    // Samples of the Network tab are more recent than what Ray reports.
    return { ...input, ray, used: new Map([...rayUse(usage, cluster), ...state.queue.used]) }
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
        used.set(host, { cpu: last.cpu, memoryBytes: last.memoryUsedBytes })
    }
    return used
  }
}

const rayUse = ({ nodes }: ClusterUsage, cluster: RayCluster): (readonly [string, RealUse])[] =>
  nodes.flatMap(({ ip, isAlive, cpuPercent, memory }) => {
    const host = cluster.nodes.get(ip)
    if (host === undefined || !isAlive || cpuPercent === undefined || memory === undefined) return []
    return [[host, { cpu: cpuPercent / 100, memoryBytes: memory.used }] as const]
  })
