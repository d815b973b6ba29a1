import { ownEntries } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { type DeviceHold, holdsOf, type PackedHost } from '../../scheduler/jobs/packing.ts'
import type { SessionState } from '../../ssh/session-transition.ts'
import { boldStyle, mutedStyle, type Rect, type Span, type Theme } from '../compositor/scene.ts'
import {
  type EnginePlace,
  type ListOffsets,
  type PackingList,
  pictureAt,
  type QueueStatus,
  type QueueView,
  type RealUse,
  schedulerAlerts,
} from '../jobs/queue-view.ts'
import type { RayStatus } from '../ray/ray-view.ts'
import type { Row } from '../rows/rows-pane.ts'
import {
  filterRows,
  findHost,
  hasWord,
  isNumberWithin,
  type TableColumn,
  type TableFrame,
  type TableView,
} from '../rows/table-view.ts'
import { type ConsoleState, tableView } from '../state/console-state.ts'
import type { BlockSpot } from './arrange.ts'
import type { Letters } from './blocks.ts'
import type { EnginePicture } from './engine-picture.ts'
import { clusterFigureRows, figureRows, rayFigureRows } from './figure-rows.ts'
import type { UseHistory } from './history.ts'
import {
  clusterOfEngine,
  clusterOfQueue,
  clusterOfRay,
  type JobCard,
  NO_CLUSTER,
  type PackedCluster,
  type WaitingCard,
} from './picture.ts'
import type { RayPicture } from './ray-picture.ts'
import { type TryOut, type WhatIf, withTrial } from './what-if.ts'

type Sources = readonly { readonly title: string; readonly isShown: boolean }[]

/** A cluster that is drawn; a string: why it cannot be. */
export type ShownCluster =
  | { readonly kind: 'queue' }
  | {
      readonly kind: 'ray'
      readonly picture: RayPicture | string
      readonly history?: Remembered | undefined
      /** What Ray's head says of its nodes, where their own samples say nothing. */
      readonly used?: ReadonlyMap<string, RealUse>
    }
  | {
      readonly kind: 'engine'
      readonly place: EnginePlace
      readonly picture: EnginePicture | string
      readonly history?: Remembered | undefined
    }

/** What the console has seen of a cluster. */
export type Remembered = { readonly holds: readonly DeviceHold[]; readonly sinceMs: number | undefined }

export type PackingInput = {
  /** What can be shown, and which of it is. */
  readonly sources?: Sources
  readonly status: QueueStatus | undefined
  readonly trouble: string | undefined
  /** The queue's own hosts unless given. */
  readonly shown?: readonly ShownCluster[]
  readonly whatIf?: { readonly gang: WhatIf; readonly trial: TryOut | undefined } | undefined
  /** By host, or by the address of one. */
  readonly used?: ReadonlyMap<string, RealUse>
  /** Hosts by their addresses, as an engine may name its nodes. */
  readonly machines?: ReadonlyMap<string, string>
  readonly history?: UseHistory
  /** Of the jobs of the queue. */
  readonly letters?: Letters | undefined
  readonly spot?: BlockSpot | undefined
  readonly list?: PackingList | undefined
  readonly chosenJob?: { readonly group: number; readonly job: number } | undefined
  readonly chosenWaiting?: { readonly group: number; readonly id: string } | undefined
  readonly listOffsets?: ListOffsets
  readonly isByUser?: boolean
  /** Rows of the picture scrolled out above. */
  readonly offset: number
  readonly rect: Rect
  readonly theme: Theme
  readonly nowMs: number
  /** The filters of the hosts and of the lists. */
  readonly tables?: { readonly hosts: TableView } & Readonly<Record<PackingList, TableView>>
  /** A click on a block or on a job, and the wheel over a list. */
  select?(spot: BlockSpot): void
  selectWaiting?(chosen: { readonly group: number; readonly id: string }): void
  /** In the list of jobs; `spot`: its first block. */
  selectJob?(chosen: { readonly group: number; readonly job: number }, spot: BlockSpot | undefined): void
  scrollList?(list: PackingList, rows: number): void
  /** A click on a slider. */
  slide?(whatIf: WhatIf): void
}

/** The ids of the panes. */
export const HOSTS = ' packing'
export const WAITING = ' waiting'
export const JOBS = ' packed jobs'

/** The table that the user can filter; undefined: there are no hosts. */
export function packingTable(state: ConsoleState): TableFrame | undefined {
  const { status, trouble, packingList } = state.queue
  const isQueueAlone = shownPlaces(state).every((place) => place === 'queue')
  if (isQueueAlone && (status === undefined || trouble !== undefined)) return undefined
  if (packingList === 'jobs') return { id: JOBS, columns: JOB_COLUMNS.map(({ title }) => title) }
  // No columns to sort by: hosts and waiting jobs have an order of their own.
  return { id: packingList === 'waiting' ? WAITING : HOSTS, columns: [] }
}

/** The hosts of a cluster that the filter leaves, by their names and by the names and users of their jobs. */
export function shownHosts({ hosts, cards, down }: PackedCluster, view: TableView | undefined): readonly PackedHost[] {
  if (view === undefined) return hosts
  const cardsOn = ({ holdings, devices }: PackedHost) =>
    [...new Set([...holdings, ...devices.flat()].map(({ job }) => job))].flatMap((job) => cards.get(job) ?? [])
  const columns: readonly TableColumn<PackedHost>[] = [
    { title: 'HOST', text: ({ name }) => name, find: findHost(({ name }) => name) },
    {
      title: 'JOB',
      text: (host) =>
        cardsOn(host)
          .map(({ name }) => name)
          .join('\n'),
    },
    {
      title: 'USER',
      text: (host) =>
        cardsOn(host)
          .map(({ user }) => user)
          .join('\n'),
    },
    { title: 'DOWN', text: ({ name }) => down[name] ?? '' },
  ]
  const found = filterRows(hosts, columns, view.filter.text)
  return view.isReversed ? found.toReversed() : found
}

const waitingColumns: readonly TableColumn<WaitingCard>[] = [
  {
    title: 'JOB',
    text: ({ name }) => name,
    find: ({ job, first = job, last = job, name }, word) => hasWord(name, word) || isNumberWithin(word, first, last),
  },
  { title: 'REASON', text: ({ why }) => why },
]

export function shownWaiting(waiting: readonly WaitingCard[], view: TableView | undefined): readonly WaitingCard[] {
  if (view === undefined) return waiting
  const found = filterRows(waiting, waitingColumns, view.filter.text)
  return view.isReversed ? found.toReversed() : found
}

/** A job that has a letter, with what it holds on all hosts. */
export type HeldCard = JobCard & {
  /** Among the clusters that are shown. */
  readonly group: number
  readonly gpuMilli: number
  readonly cpuMilli: number
}

export const JOB_COLUMNS: readonly TableColumn<HeldCard>[] = [
  { title: 'JOB', text: ({ name }) => name },
  { title: 'USER', text: ({ user }) => user },
  {
    ...{ title: 'GPUS', isAmount: true, isDescending: true },
    text: ({ gpuMilli }) => (gpuMilli === 0 ? '' : String(gpuMilli / 1000)),
    order: ({ gpuMilli }) => gpuMilli,
  },
  { title: 'ENDS', isAmount: true, text: () => '', order: ({ end }) => end?.atMs },
]

export function queueInput(state: ConsoleState, rect: Rect, theme: Theme, nowMs: number): PackingInput {
  const { queue } = state
  const { trouble, whatIf, trial, used, packingOffset: offset, picture, letters } = queue
  const status = queue.status && {
    ...queue.status,
    hosts: queue.status.hosts.map((host) => withSampled(host, used.get(host.name))),
    down: downHosts(queue.status, state),
  }
  const sources = sourcesOf(state).map((source) => ({ title: sourceTitle(source), isShown: source === picture }))
  const { spot, packingList: list, packingJob: chosenJob, waitingJob: chosenWaiting, listOffsets, isByUser } = queue
  return {
    ...{ sources, status, trouble, whatIf: whatIf && { gang: whatIf, trial }, used, offset, rect, theme, nowMs },
    ...{ spot, list, chosenJob, chosenWaiting, listOffsets, letters, isByUser: isByUser === true },
    tables: { hosts: tableView(state, HOSTS), waiting: tableView(state, WAITING), jobs: tableView(state, JOBS) },
    shown: shownPlaces(state).map((place): ShownCluster => {
      if (place === 'queue') return { kind: 'queue' }
      if (place === 'ray') return { kind: 'ray', picture: rayTrouble(state.ray) }
      return { kind: 'engine', place, picture: pictureAt(queue, place) ?? NO_ANSWER }
    }),
  }
}

/** A host that no scheduler has asked yet has what its samples show. */
function withSampled(host: PackedHost, use: RealUse | undefined): PackedHost {
  const { unknown, ...known } = host
  if (unknown === undefined || use === undefined) return host
  const { cores = 0, totalBytes = 0 } = use
  const [hasCores, hasMemory] = [unknown.includes('cores') && cores > 0, unknown.includes('memory') && totalBytes > 0]
  const left = unknown.filter((part) => !(part === 'cores' ? hasCores : hasMemory))
  return {
    ...known,
    ...(hasCores ? { cpuMilli: cores * 1000 } : {}),
    ...(hasMemory ? { memoryBytes: totalBytes } : {}),
    ...(left.length > 0 ? { unknown: left } : {}),
  }
}

/** While no scheduler runs, its last report is old, but the console knows which of its hosts are away. */
export function downHosts(status: QueueStatus, { hosts }: Pick<ConsoleState, 'hosts'>): QueueStatus['down'] {
  if (status.driver !== undefined) return status.down
  const down = status.hosts.flatMap(({ name }) => {
    const reason = awayReason(hosts.get(name)?.session, status.down[name])
    return reason === undefined ? [] : [[name, reason] as const]
  })
  return ownEntries(Object.fromEntries(down))
}

/** A host is away until its connection is ready. `reported`: by the last scheduler, for hosts that the console does not connect. */
function awayReason(session: SessionState | undefined, reported: string | undefined): string | undefined {
  if (session === undefined || session.kind === 'idle' || session.kind === 'closed') return reported
  if (session.kind === 'ready') return undefined
  if (session.kind === 'failed') return session.failure.reason
  if ('reason' in session) return session.reason
  return session.attempt > 1 ? `connecting (attempt ${session.attempt})` : 'connecting'
}

/** Why Ray cannot be drawn. */
function rayTrouble({ view }: RayStatus): string {
  const reason = 'reason' in view ? view.reason : 'its head is not open in the console'
  return reason === '' ? NO_ANSWER : `the head of Ray does not answer: ${reason}`
}

export type Source = QueueView['picture']
type Place = Exclude<Source, 'all'>

/** What the Packing tab can show, in the order of `y`. */
export function sourcesOf(state: Pick<ConsoleState, 'ray' | 'queue'>): readonly Source[] {
  const places = placesOf(state)
  return places.length > 1 ? ['all', ...places] : places
}

function placesOf({ ray, queue }: Pick<ConsoleState, 'ray' | 'queue'>): readonly Place[] {
  const withRay = ray.view.kind !== 'none' || queue.picture === 'ray'
  return ['queue', ...(withRay ? (['ray'] as const) : []), ...queue.clusters]
}

/** The clusters of the picture. */
export const shownPlaces = (state: Pick<ConsoleState, 'ray' | 'queue'>): readonly Place[] =>
  state.queue.picture === 'all' ? placesOf(state) : [state.queue.picture]

export const sourceTitle = (source: Source): string =>
  source === 'all' ? 'all' : source === 'queue' ? 'own hosts' : source === 'ray' ? 'Ray' : placeTitle(source)

/** `y:  own hosts  [Slurm]  K8s`; none where there is nothing to choose. */
export function sourcesRow(sources: Sources = [], theme: Theme): readonly Row[] {
  if (sources.length < 2) return []
  const cells = sources.map(
    ({ title, isShown }): Span =>
      isShown
        ? { text: ` [${title}] `, style: boldStyle(theme.accent) }
        : { text: `  ${title}  `, style: mutedStyle(theme) },
  )
  return [[{ text: ' y:', style: boldStyle(theme.text) }, ...cells]]
}

export const NO_ANSWER = 'no answer yet …'

/** A cluster as it is drawn. */
export type Group = {
  readonly title: string
  /** Why there is nothing to draw. */
  readonly trouble?: string
  readonly cluster: PackedCluster
  readonly figures: readonly Row[]
  /** What must be said where the second row of figures has no room. */
  readonly alert?: string
  readonly sinceMs?: number | undefined
  readonly holds: ReadonlyMap<string, readonly DeviceHold[]>
  readonly used?: ReadonlyMap<string, RealUse> | undefined
}

export function groupOf(shown: ShownCluster, { status, trouble, whatIf, rect, theme, used }: PackingInput): Group {
  const columns = rect.width - 2
  if (shown.kind === 'queue') {
    const empty = { title: 'own hosts', cluster: NO_CLUSTER, figures: [], holds: new Map(), used }
    if (trouble !== undefined) return { ...empty, trouble }
    if (status === undefined) return { ...empty, trouble: 'reading the queue …' }
    if (status.hosts.length === 0) return { ...empty, trouble: 'no hosts in hosts.yaml' }
    const { gang, trial } = whatIf ?? {}
    const hosts = gang && trial ? withTrial(status.hosts, gang, trial) : status.hosts
    const holds = [...status.active.flatMap(holdsOf), ...(status.past ?? [])]
    return {
      title: 'own hosts',
      cluster: clusterOfQueue(status, hosts),
      figures: figureRows(status, columns, theme, used),
      ...defined({ alert: schedulerAlerts(status).at(-1) }),
      holds: Map.groupBy(holds, ({ host }) => host),
      used,
    }
  }
  const { picture, history } = shown
  const nothing = {
    title: shown.kind === 'ray' ? 'Ray' : placeTitle(shown.place),
    cluster: NO_CLUSTER,
    figures: [],
    holds: Map.groupBy(history?.holds ?? [], ({ host }) => host),
    sinceMs: history?.sinceMs ?? Number.POSITIVE_INFINITY,
    used: shown.kind === 'ray' ? new Map([...(shown.used ?? []), ...(used ?? [])]) : used,
  }
  if (typeof picture === 'string') return { ...nothing, trouble: picture }
  if (shown.kind === 'ray') {
    const ray = picture as RayPicture
    return { ...nothing, cluster: clusterOfRay(ray, status?.active ?? []), figures: rayFigureRows(ray, theme) }
  }
  const engine = picture as EnginePicture
  if (engine.hosts.length === 0 && engine.jobs.length === 0)
    return { ...nothing, trouble: engine.note ?? `${nothing.title} has no nodes` }
  const cluster = clusterOfEngine(shown.place, engine, status?.active ?? [])
  return { ...nothing, cluster, figures: clusterFigureRows(engine, theme) }
}
