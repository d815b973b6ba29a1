/** What the Packing tab draws of each cluster: hosts, the jobs on them, and what waits and why. Pure. */
import { counted } from '../../base/counted.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { isActive, type Job, requestsOf } from '../../scheduler/jobs/job.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import type { QueueStatus } from '../jobs/queue-view.ts'
import { type ClusterJob, type EnginePicture, isWaiting, nameWithTitle } from './engine-picture.ts'
import { LOOSE_JOB, type RayPicture } from './ray-picture.ts'

/** What is known about a job that has a letter. */
export type JobCard = {
  readonly job: number
  /** `17 pretrain` */
  readonly name: string
  readonly title: string
  readonly user: string
  readonly sinceMs?: number
  /** `limit`: it is stopped then; `estimate`: it is expected to end. */
  readonly end?: { readonly atMs: number; readonly by: 'limit' | 'estimate' }
  /** All of it: `4 GPUs on m[1-2]`. */
  holds(): string
}

export type WaitingCard = {
  /** Of each one in its cluster, also of jobs that are not of the queue. */
  readonly id: string
  readonly job: number
  readonly name: string
  /** Between which numbers how many of its submission wait; undefined: it alone. */
  readonly first?: number
  readonly last?: number
  readonly count?: number
  readonly why: string
  readonly expectedMs: number | undefined
}

/** The hosts of one cluster. */
export type PackedCluster = {
  readonly key: string
  readonly hosts: readonly PackedHost[]
  readonly down: Readonly<Record<string, string>>
  readonly cards: ReadonlyMap<number, JobCard>
  /** What holds a block that none of its known jobs explains. */
  readonly looseText: string
  /** Other people's jobs: what they are on a node, or on one of its devices. */
  othersOn(node: string, device: number | undefined): readonly ClusterJob[]
  readonly waiting: readonly WaitingCard[]
  readonly waitingCount: number
}

/** A cluster of which nothing is known. */
export const NO_CLUSTER: PackedCluster = {
  ...{ key: '', hosts: [], down: {}, cards: new Map(), waiting: [], waitingCount: 0 },
  looseText: 'not a job that you can see',
  othersOn: () => [],
}

export function clusterOfQueue(status: QueueStatus, hosts: readonly PackedHost[]): PackedCluster {
  const own = status.active.filter(({ spec }) => spec.engine === undefined)
  return {
    ...NO_CLUSTER,
    key: 'queue',
    hosts,
    down: status.down,
    cards: new Map(own.map((job) => [job.id, cardOf(job)])),
    waiting: status.waiting.map(({ job: { id, spec }, first, last, count, ...rest }) => ({
      ...rest,
      id: String(id),
      job: id,
      ...(count === 1
        ? { name: `${id} ${spec.name}` }
        : {
            ...{ first, last, count },
            name: `${first}-${last}${last - first + 1 === count ? '' : ` (${count} of them)`} ${spec.name}`,
          }),
    })),
    waitingCount: status.counts.get('queued') ?? status.waiting.length,
  }
}

export function clusterOfEngine(key: string, picture: EnginePicture, active: readonly Job[]): PackedCluster {
  const { hosts, down, jobs } = picture
  const byId = new Map(active.map((job) => [job.id, job]))
  const running = jobs.filter(({ places }) => places.length > 0)
  const cards = running.flatMap((one): JobCard[] => {
    if (one.job === LOOSE_JOB) return []
    const job = byId.get(one.job)
    const devices = one.places.reduce((sum, place) => sum + place.devices.length, 0)
    const nodes = one.places.map(({ node }) => node)
    const holds = () => holdsText(devices, nodes)
    if (job !== undefined) return [{ ...cardOf(job), holds }]
    return [{ job: one.job, name: one.name, title: one.title, user: one.user, holds }]
  })
  const waiting = jobs.filter(isWaiting)
  return {
    ...NO_CLUSTER,
    key,
    hosts,
    down,
    cards: new Map(cards.map((card) => [card.job, card])),
    othersOn: (node, device) =>
      running.filter(
        ({ job, places }) =>
          job === LOOSE_JOB &&
          places.some((place) => place.node === node && (device === undefined || place.devices.includes(device))),
      ),
    waiting: waiting.map((one) => ({ ...one, name: nameWithTitle(one, active), expectedMs: one.expectedMs })),
    waitingCount: waiting.length,
  }
}

export function clusterOfRay(picture: RayPicture, active: readonly Job[]): PackedCluster {
  const ofQueue = new Map(active.map((job) => [job.id, cardOf(job)]))
  const cards = [...picture.groups].map(([job, name]): [number, JobCard] => {
    const holds = () => {
      const there = picture.hosts.filter(({ jobs }) => jobs.includes(job))
      const own = there.flatMap(({ devices }) => devices.flat()).filter((share) => share.job === job)
      const names = there.map(({ name }) => name)
      return holdsText(own.reduce((sum, { milli }) => sum + milli, 0) / 1000, names)
    }
    return [job, { ...(ofQueue.get(job) ?? { job, name, title: name, user: '' }), holds }]
  })
  const cardOfGroup = new Map(cards)
  return {
    ...NO_CLUSTER,
    key: 'ray',
    hosts: picture.hosts,
    looseText: 'tasks and actors in no placement group',
    cards: cardOfGroup,
    waiting: picture.waiting.map(({ group: job = LOOSE_JOB, name, why }, index) => ({
      ...{ id: job === LOOSE_JOB ? `${name} ${index}` : String(job), job, why, expectedMs: undefined },
      name: cardOfGroup.get(job)?.name ?? name,
    })),
    waitingCount: picture.waiting.length,
  }
}

/** Kept, as the same jobs are drawn again and again. */
const cards = new WeakMap<Job, JobCard>()

function cardOf(job: Job): JobCard {
  const known = cards.get(job)
  if (known !== undefined) return known
  const { id, user, spec, state } = job
  const end = endOf(job)
  const card = {
    job: id,
    name: `${id} ${spec.name}`,
    title: spec.name,
    user,
    ...(isActive(state) ? { sinceMs: state.startedMs } : {}),
    ...(end === undefined ? {} : { end }),
    holds: () => placesText(job),
  }
  cards.set(job, card)
  return card
}

function placesText({ spec, state }: Job): string {
  const places = isActive(state) ? state.places : []
  const requests = requestsOf(spec)
  const requestOf = (rank: number) => requests[rank] ?? spec.request
  const gpus = places.reduce((sum, { devices }, rank) => sum + devices.length * requestOf(rank).gpuMilli, 0)
  const cpus = places.reduce((sum, _, rank) => sum + requestOf(rank).cpuMilli, 0)
  const on = places.map(({ host }) => host)
  return gpus > 0 ? holdsText(gpus / 1000, on) : `${counted(rounded(cpus / 1000), 'core')} on ${foldHostSet(on)}`
}

/** Of a job that runs: its limit or its estimate, whichever comes first. */
export function endOf({ spec: { limitS, estimateS }, state }: Job): JobCard['end'] {
  if (!isActive(state)) return undefined
  const { startedMs } = state
  const limitMs = limitS === undefined ? undefined : startedMs + limitS * 1000
  const estimateMs = estimateS === undefined ? undefined : startedMs + estimateS * 1000
  if (estimateMs !== undefined && (limitMs === undefined || estimateMs < limitMs))
    return { atMs: estimateMs, by: 'estimate' }
  return limitMs === undefined ? undefined : { atMs: limitMs, by: 'limit' }
}

const rounded = (amount: number) => Math.round(amount * 100) / 100

function holdsText(gpus: number, on: readonly string[]): string {
  return `${counted(rounded(gpus), 'GPU')} on ${foldHostSet(on)}`
}
