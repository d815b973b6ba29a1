/** The Packing tab: which job is placed where, and its keys. */
import { getOrMake, nearest } from '../../base/collections.ts'
import { messageOf } from '../../base/errors.ts'
import type { GpuSample } from '../../ops/net/watch/sample.ts'
import type { ClusterUsage, PlacementGroup } from '../../ops/ray/usage.ts'
import { jobsInEngine } from '../../scheduler/jobs/orders.ts'
import { lettersOf } from '../../scheduler/jobs/packing.ts'
import { type PaneView, type Rect, type Theme, themes } from '../compositor/scene.ts'
import { type PromptCheck, promptDialog } from '../dialogs/prompt-dialog.ts'
import { completeOneOf } from '../dialogs/prompt-line.ts'
import type { ClusterWatch } from '../jobs/cluster-watch.ts'
import { showInQueue } from '../jobs/jobs-tables.ts'
import { type JobsPort, lineOfJob, type PackingList, type QueueStatus, type RealUse } from '../jobs/queue-view.ts'
import type { QueueWatch } from '../jobs/queue-watch.ts'
import { commandOf, keyTable } from '../keys/key-table.ts'
import type { WatchedResources } from '../network/watched-hosts.ts'
import type { RayCluster } from '../ray/ray-view.ts'
import type { RayWatch } from '../ray/ray-watch.ts'
import type { ConsoleState, Page, PageContext } from '../state/console-state.ts'
import { areaOf } from '../work-views/panel.ts'
import { type BlockDirection, type BlockSpot, firstSpot, lastSpot, nextSpot, spotOfJob } from './arrange.ts'
import type { Letters } from './blocks.ts'
import type { EnginePicture } from './engine-picture.ts'
import { HoldHistory, UseHistory } from './history.ts'
import { downHosts, type PackingInput, queueInput, type ShownCluster, sourcesOf } from './packing-input.ts'
import { drawPacking, type PackingScene, type WaitingRows } from './packing-panes.ts'
import { endOf } from './picture.ts'
import { rayPicture } from './ray-picture.ts'
import {
  exampleWhatIf,
  formatWhatIf,
  nextSlider,
  OPTIONS,
  parseWhatIf,
  slide,
  type WhatIf,
  whatIfWords,
} from './what-if.ts'

type Test = (state: ConsoleState) => boolean

const showsQueue: Test = ({ queue }) => queue.picture === 'queue' || queue.picture === 'all'
const isTrying: Test = (state) => showsQueue(state) && state.queue.whatIf !== undefined
const isNotTrying: Test = (state) => !isTrying(state)
const canSwitch: Test = (state) => sourcesOf(state).length > 1
const isInList: Test = ({ queue }) => queue.packingList !== undefined
const isInPicture: Test = (state) => !isInList(state)
const canMark: Test = (state) => isInPicture(state) && isNotTrying(state)

export const packingKeys = keyTable<ConsoleState>()(
  ['to-picture', 'Esc q', 'hosts', 'Lists of jobs: go back to the hosts.', isInList],
  ['right', 'Right', 'next option', 'What-if: select the next option of the marked slider, or add a bundle.', isTrying],
  ['left', 'Left', '', 'What-if: select the previous option, or remove a bundle.', isTrying],
  ['slider', 'Tab', 'next slider', 'What-if: mark the next slider: policy, bundles, strategy.', isTrying],
  ['end-what-if', 'w Esc q', 'clear what-if', 'Clear the what-if.', isTrying],
  ['next', 'Right l', 'select', 'Select the block to the right.', canMark],
  ['previous', 'Left h', '', 'Select the block to the left.', canMark],
  ['below', 'Down j', '', 'Select the block or job below.'],
  ['above', 'Up k', '', 'Select the block or job above.'],
  ['page-down', 'PageDown f', '', 'Scroll a page down; in a list, five jobs.'],
  ['page-up', 'PageUp b', '', 'Scroll a page up; in a list, five jobs.'],
  ['first', 'Home g', '', 'Select the first block or job.'],
  ['last', 'End G', '', 'Select the last block or job.'],
  ['job', 'Enter', 'job', 'Open the selected job, or the job of the selected block.'],
  [
    'next-list',
    'Tab',
    'job lists',
    'Move the keys to the waiting jobs, then to the list of all jobs, then back to the hosts.',
    isNotTrying,
  ],
  ['by-user', 'u', 'by user', 'Give each user a colour, or each job again.'],
  [
    'what-if',
    'w',
    'what-if',
    'Show where a gang would be placed, without submitting it. Enter alone repeats the last request.',
    isNotTrying,
  ],
  ['strategy', 's', '', 'What-if: use the next strategy.'],
  ['policy', 'p', '', "What-if: use the next policy: the queue's, Ray's, or one of `muster simulate` for each bundle."],
  ['more', '+', '', 'What-if: add a bundle.'],
  ['fewer', '-', '', 'What-if: remove a bundle.'],
  [
    'cluster',
    'y',
    'next cluster',
    "Show only the next cluster: the queue's own hosts, or what Ray, Slurm or Kubernetes has placed; then all again.",
    canSwitch,
  ],
)

export type PackingCommand = (typeof packingKeys)[number]['id']

/** The queue, and what hosts really use. */
export type PackingSources = {
  readonly jobs: JobsPort
  readonly ray: RayWatch
  readonly watched: WatchedResources
  readonly clusters: ClusterWatch
}

export class PackingPage implements Page {
  readonly isIdle = true
  readonly busy = []
  readonly #context: PageContext
  readonly #watch: QueueWatch
  readonly #sources: PackingSources
  readonly #numbers = new Map<string, number>()
  /** Of jobs of the queue and of other people's placement groups. */
  #letters: Letters = new Map()
  readonly #use = new UseHistory()
  /** By cluster. */
  readonly #seen = new Map<string, HoldHistory>()
  readonly #sampling: Disposable
  /** Drawn for these values. */
  #drawn: { readonly of: readonly unknown[]; readonly scene: PackingScene } | undefined
  #tried: readonly unknown[] = []
  #lastWhatIf: WhatIf | undefined

  constructor(context: PageContext, watch: QueueWatch, sources: PackingSources) {
    this.#context = context
    this.#watch = watch
    this.#sources = sources
    this.#sampling = sources.watched.changes.on((change) => {
      if (change !== undefined) this.#use.note(change.host, change.sample)
    })
    watch.onRead(() => {
      if (context.state.tab !== 'packing') return
      this.#sample()
      watch.set({ used: this.#sampledUse() })
      const { packingList } = context.state.queue
      if (packingList !== undefined && !(packingList in this.#scene.lists)) watch.set({ packingList: undefined })
      void this.#tryOut()
    })
  }

  open(): void {
    this.#watch.open()
    this.#sources.clusters.open()
    this.#sample()
  }

  #sample(): void {
    const names = [...this.#context.state.hosts.keys()]
    this.#sources.watched.follow(names)
    this.#use.keep(new Set(names))
  }

  panes(rect: Rect, theme: Theme): readonly PaneView[] {
    return this.#draw(rect, theme).panes
  }

  /** Drawn again only when something that it shows has changed; times and strips move every ten seconds, or as a job is about to end. */
  #draw(rect: Rect, theme: Theme): PackingScene {
    const { state, clock } = this.#context
    const { column, row, width, height } = rect
    const stepMs = this.#endsSoon ? COUNT_DOWN_MS : REDRAW_MS
    const nowMs = Math.floor(clock.now() / stepMs) * stepMs
    const hosts = [...state.hosts.values()]
      .map(({ host, address, session }) => `${host} ${address} ${session.kind}`)
      .join()
    const of = [state.queue, state.ray, state.tables, state.mode, hosts, theme, column, row, width, height, nowMs]
    if (this.#drawn !== undefined && of.every((value, at) => value === this.#drawn?.of[at])) return this.#drawn.scene
    const scene = drawPacking(this.#input(rect, theme, nowMs))
    this.#drawn = { of, scene }
    return scene
  }

  /** Its limit or its estimate is told in seconds. */
  get #endsSoon(): boolean {
    const { state, clock } = this.#context
    const { active = [] } = state.queue.status ?? {}
    return active.some((job) => {
      const leftMs = (endOf(job)?.atMs ?? 0) - clock.now()
      return leftMs > -COUNT_DOWN_MS && leftMs < SOON_MS
    })
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
    'to-picture': () => {
      const { listOffsets } = this.#context.state.queue
      this.#watch.set({ packingList: undefined, listOffsets: { ...listOffsets, waiting: 0 } })
    },
    'next-list': () => this.#nextList(),
    next: () => this.#move('right'),
    previous: () => this.#move('left'),
    below: () => this.#scrollList(1) || this.#move('down'),
    above: () => this.#scrollList(-1) || this.#move('up'),
    'page-down': () => this.#page(1),
    'page-up': () => this.#page(-1),
    first: () => this.#toEnd(-ALL_ROWS, firstSpot),
    last: () => this.#toEnd(ALL_ROWS, lastSpot),
    job: () => this.#showJob(),
    'by-user': () => this.#watch.set({ isByUser: this.#context.state.queue.isByUser !== true }),
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

  /** What is on the screen. */
  get #scene(): PackingScene {
    const { state } = this.#context
    return this.#draw(areaOf(state), themes[state.themeName])
  }

  #move(direction: BlockDirection): void {
    const { arrangement, spot } = this.#scene
    const next = arrangement && spot && nextSpot(arrangement, spot, direction)
    if (next !== undefined) this.#choose(next)
  }

  /** Selects a block and scrolls to its tile. */
  #choose(spot: BlockSpot): void {
    const { arrangement, area, offset, lastOffset } = this.#scene
    const tile = arrangement?.tiles.find(({ group, host }) => group === spot.group && host.name === spot.host)
    if (tile === undefined) return
    const { row, height } = tile.rect
    const from = Math.max(row + height - area.height, Math.min(offset, row))
    this.#watch.set({ spot, packingOffset: Math.max(0, Math.min(lastOffset, from)) })
  }

  #toEnd(rows: number, spotOf: typeof firstSpot): void {
    if (this.#scrollList(rows)) return
    const { arrangement } = this.#scene
    const spot = arrangement && spotOf(arrangement)
    if (spot !== undefined) this.#choose(spot)
  }

  #page(pages: 1 | -1): void {
    if (this.#scrollList(pages * LIST_PAGE)) return
    this.scrollBy(pages * Math.max(1, this.#scene.area.height - 1))
  }

  #nextList(): void {
    const { packingList, trouble } = this.#context.state.queue
    const places = [undefined, ...LISTS.filter((list) => list in this.#scene.lists)]
    if (places.length === 1)
      this.#context.notice(
        trouble !== undefined
          ? 'there are no lists while the queue cannot be read'
          : this.#scene.hasJobs
            ? 'the lists need a larger window'
            : 'no job runs or waits here, so there are no lists',
      )
    this.#watch.set({ packingList: places[(places.indexOf(packingList) + 1) % places.length] })
  }

  /** Scrolls this list; by default, the one that has the keys. False: none has them. */
  #scrollList(rows: number, list = this.#context.state.queue.packingList): boolean {
    if (list === undefined) return false
    const { listOffsets, packingList } = this.#context.state.queue
    if (list === packingList) {
      if (list === 'jobs') this.#moveJob(rows)
      else this.#moveWaiting(rows)
      return true
    }
    const last = this.#scene.lists[list] ?? 0
    const from = Math.min(last, listOffsets[list])
    this.#watch.set({ listOffsets: { ...listOffsets, [list]: Math.max(0, Math.min(last, from + rows)) } })
    return true
  }

  /** Also selects the first block of the job. */
  #moveJob(by: number): void {
    const { jobs, jobAt = 0, arrangement } = this.#scene
    const job = nearest(jobs, jobAt + by)
    if (job !== undefined) this.#chooseJob(job, arrangement && spotOfJob(arrangement, job))
  }

  #chooseJob({ group, job }: { readonly group: number; readonly job: number }, spot: BlockSpot | undefined): void {
    this.#watch.set({ packingList: 'jobs', packingJob: { group, job } })
    if (spot !== undefined) this.#choose(spot)
  }

  /** A job whose reason is longer than its list is scrolled to its end first. */
  #moveWaiting(by: number): void {
    const { waiting, waitingAt = 0, waitingPlace } = this.#scene
    const { offset, rows } = waitingPlace
    const card = waiting[waitingAt]
    const next = nearest(waiting, waitingAt + by)
    if (card === undefined || next === undefined) return
    const isFar = Math.abs(by) > LIST_PAGE
    if (!isFar && by > 0 && card.to > offset + rows)
      return this.#showWaiting(card, Math.min(card.to - rows, offset + by))
    if (!isFar && by < 0 && card.from < offset) return this.#showWaiting(card, Math.max(card.from, offset + by))
    // Of the last one the end, of the first one the beginning.
    if (next === card) return this.#showWaiting(next, by > 0 ? Math.max(0, next.to - rows) : next.from)
    // All of it, or at least its first row.
    this.#showWaiting(next, Math.min(next.from, Math.max(offset, next.to - rows)))
  }

  #showWaiting({ group, id }: WaitingRows, waiting: number): void {
    const { listOffsets } = this.#context.state.queue
    this.#watch.set({ waitingJob: { group, id }, listOffsets: { ...listOffsets, waiting } })
  }

  /** The selected job, or the first one of the queue on the selected block. */
  #showJob(): void {
    const { arrangement, spot, jobs, jobAt, waiting, waitingAt } = this.#scene
    const { status } = this.#context.state.queue
    const chosen = jobAt === undefined ? (waitingAt === undefined ? undefined : waiting[waitingAt]) : jobs[jobAt]
    const tile = arrangement?.tiles.find(({ group, host }) => group === spot?.group && host.name === spot.host)
    const onBlock =
      typeof spot?.part === 'number' ? tile?.host.devices[spot.part]?.map(({ job }) => job) : tile?.host.jobs
    const [found] = (chosen === undefined ? (onBlock ?? []) : [chosen.job]).flatMap((id) => {
      const line = lineOfJob(status, id)
      return line === undefined ? [] : [{ id, line }]
    })
    if (found === undefined) return this.#context.notice('no job of the queue is selected', 'warning')
    const { id, line } = found
    showInQueue(this.#context, line.spec, id)
    this.#context.showTab('jobs')
    this.#context.change(() => ({ cameFrom: 'packing' }))
  }

  #switchPicture(): void {
    const { state } = this.#context
    const sources = sourcesOf(state)
    const picture = sources[sources.indexOf(state.queue.picture) + 1] ?? sources[0] ?? 'all'
    if (sources.length < 2)
      return this.#context.notice('hosts.yaml declares no other cluster: Ray, Slurm or Kubernetes', 'warning')
    this.#sources.clusters.show({ picture, packingOffset: 0, spot: undefined })
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
        emptyHelp: [{ text: 'Press Enter to use the request shown.', tone: 'muted' }],
        help: [{ text: 'Options: --bundles, --cpu, --gpu, --memory (16GiB) and --strategy.', tone: 'muted' }],
        check,
        complete: completeOneOf(OPTIONS),
        onSubmit: (text) => {
          const parsed = parseWhatIf(text)
          if (typeof parsed === 'string') return
          // Tab moves the sliders now.
          this.#watch.set({ packingList: undefined })
          this.#try(text === fallback ? last : parsed)
        },
      }),
    )
  }

  /** The trial before stays until there is a new one, so that the picture does not flicker. */
  #try(whatIf: WhatIf): void {
    this.#lastWhatIf = whatIf
    this.#watch.set({ whatIf, ...(showsQueue(this.#context.state) ? {} : { picture: 'all' as const }) })
    void this.#tryOut()
  }

  async #tryOut(): Promise<void> {
    const { whatIf, status } = this.#context.state.queue
    const away = status === undefined ? [] : Object.keys(downHosts(status, this.#context.state))
    const of = [whatIf, status, away.join('\n')]
    if (whatIf === undefined || of.every((value, at) => value === this.#tried[at])) return
    this.#tried = of
    try {
      const trial = await this.#sources.jobs.tryOut(whatIf, away)
      if (this.#context.state.queue.whatIf === whatIf) this.#watch.set({ trial })
    } catch (error) {
      this.#context.notice(messageOf(error), 'error')
    }
  }

  keepRow(): void {
    const { packingList } = this.#context.state.queue
    const { spot, jobs, jobAt = 0, waiting, waitingAt = 0 } = this.#scene
    if (packingList === undefined) return this.#watch.set({ spot })
    const [held, waits] = [jobs[jobAt], waiting[waitingAt]]
    if (packingList === 'waiting') {
      if (waits !== undefined) this.#watch.set({ waitingJob: { group: waits.group, id: waits.id } })
    } else if (held !== undefined) this.#watch.set({ packingJob: { group: held.group, job: held.job } })
  }

  /** Another filter: the list begins with its first row, or with the selected job; its block, or the selected one, is in view. */
  onTableChange(): void {
    const { listOffsets, packingList, spot } = this.#context.state.queue
    this.#watch.set({ listOffsets: { ...listOffsets, waiting: 0 } })
    const { jobs, jobAt = 0, arrangement } = this.#scene
    const job = packingList === 'jobs' ? jobs[jobAt] : undefined
    const shown = packingList === undefined ? spot : arrangement && job && spotOfJob(arrangement, job)
    if (shown !== undefined) this.#choose(shown)
  }

  scrollBy(rows: number): void {
    const { lastOffset, offset } = this.#scene
    this.#watch.set({ packingOffset: Math.max(0, Math.min(lastOffset, offset + rows)) })
  }

  [Symbol.dispose](): void {
    this.#sampling[Symbol.dispose]()
  }

  #input(rect: Rect, theme: Theme, nowMs: number): PackingInput {
    const { state } = this.#context
    const { usage } = state.ray
    const { cluster } = this.#sources.ray
    const input = queueInput(state, rect, theme, nowMs)
    const used = withAddresses(state.queue.used, state)
    const machines = new Map([...state.hosts.values()].map(({ host, address }) => [address, host]))
    const ofQueue = groupsOfQueue(state.queue.status)
    let { letters } = input
    const shown = input.shown?.map((one): ShownCluster => {
      if (one.kind === 'queue') return one
      if (one.kind === 'engine') return { ...one, history: this.#remember(one.place, one.picture, nowMs) }
      if (usage === undefined || cluster === undefined) return one
      const picture = rayPicture(usage, cluster.nodes, (group) => ofQueue(group) ?? this.#numberOf(group.id))
      const jobs: Letters = input.letters ?? new Map()
      letters = lettersOf([...jobs.keys(), ...picture.groups.keys()], new Map([...this.#letters, ...jobs]))
      this.#letters = letters
      const own = new Map(rayUse(usage, cluster))
      return { ...one, picture, used: own, history: this.#remember('ray', picture, nowMs) }
    })
    const select = (spot: BlockSpot) => {
      this.#watch.set({ packingList: undefined })
      this.#choose(spot)
    }
    const slide = (whatIf: WhatIf): void => this.#try(whatIf)
    const selectWaiting = (waitingJob: NonNullable<PackingInput['chosenWaiting']>) =>
      this.#watch.set({ packingList: 'waiting', waitingJob })
    const mouse = {
      select,
      selectWaiting,
      selectJob: (job: { readonly group: number; readonly job: number }, spot: BlockSpot | undefined) =>
        this.#chooseJob(job, spot),
      slide,
      scrollList: (list: PackingList, rows: number) => this.#scrollList(rows, list),
    }
    return { ...input, ...mouse, letters, used, machines, history: this.#use, ...(shown && { shown }) }
  }

  #remember(key: string, picture: Pick<EnginePicture, 'hosts' | 'isOld'> | string, nowMs: number) {
    const seen = getOrMake(this.#seen, key, () => new HoldHistory())
    if (typeof picture !== 'string' && picture.isOld !== true) seen.see(picture.hosts, nowMs)
    return seen
  }

  /** Other people's groups keep their letters. */
  #numberOf(group: string): number {
    return getOrMake(this.#numbers, group, () => FIRST_GROUP + this.#numbers.size)
  }

  #sampledUse(): ReadonlyMap<string, RealUse> {
    const used = new Map<string, RealUse>()
    for (const { host, samples, trouble, isOwn } of this.#sources.watched.hosts) {
      const last = samples.at(-1)
      if (last === undefined || isOwn || trouble !== undefined) continue
      const gpus = new Map(
        last.gpus.map(({ id, name, busy, usedBytes, totalBytes, processes }) => [
          Number(id),
          { name, busy, usedBytes, totalBytes, processes },
        ]),
      )
      const { cpu, cores, memoryUsedBytes: memoryBytes, memoryBytes: totalBytes } = last
      used.set(host, { cpu, cores, memoryBytes, totalBytes, gpu: meanBusy(last.gpus), gpus })
    }
    return used
  }
}

/** How often times and strips move. */
const REDRAW_MS = 10_000
const COUNT_DOWN_MS = 1_000
/** Longer times are told in minutes. */
const SOON_MS = 100_000
const LIST_PAGE = 5
const LISTS: readonly PackingList[] = ['waiting', 'jobs']
const ALL_ROWS = Number.MAX_SAFE_INTEGER

/** So that the number of no other group of Ray is that of a job of the queue. */
const FIRST_GROUP = 1_000_000_000

/** Which job of the queue a placement group is named after: running ones that Ray has. */
function groupsOfQueue(status: QueueStatus | undefined): (group: PlacementGroup) => number | undefined {
  if (status === undefined) return () => undefined
  const jobOf = jobsInEngine(status.storeId, 'ray', status.active)
  return ({ name }) => jobOf(name)
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
