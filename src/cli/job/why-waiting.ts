/** Why a job does not run yet, or where its engine runs it, from what is stored alone. */
import { numberRanges } from '../../base/number-set.ts'
import { whenText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { fileTitle } from '../../inventory/inventory.ts'
import { whyNotGang } from '../../scheduler/gangs/why-not.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { askedOf, freeRoom, judgeRoom } from '../../scheduler/jobs/engine-room.ts'
import { isActive, isFinal, isInLine, isPlaced, type Job, missedWords } from '../../scheduler/jobs/job.ts'
import { gangOf, occupy } from '../../scheduler/jobs/plan-jobs.ts'
import type { Cluster } from '../../scheduler/model/cluster.ts'
import type { Gang } from '../../scheduler/model/resources.ts'
import { type Asked, namesIn, needsText } from '../../scheduler/plans/needs.ts'
import {
  changedWords,
  declaredHosts,
  downWords,
  freeBeside,
  hostsOf,
  type OpenQueue,
  undrivenWords,
  withEnough,
} from './open-queue.ts'

export type WhyWaiting = { readonly why: readonly string[]; readonly expected?: string }

/** What is free now; asked for only where it matters. */
export const freeOf = (queue: OpenQueue): Cluster => freeBeside(queue, queue.store.active())

/** `free`: the same for several jobs. */
export function whyWaiting(job: Job, queue: OpenQueue, nowMs: number, free = () => freeOf(queue)): WhyWaiting {
  const { why, ...rest } = whyNotNow(job, queue, nowMs, free)
  if (job.state.kind !== 'queued' || queue.driver() !== undefined) return { why, ...rest }
  return { why: [undrivenWords(queue), ...why.filter((line) => line !== THERE_IS_ROOM)], ...rest }
}

/**
 * Why neither the hosts of the running scheduler nor those that hosts.yaml declares now can ever hold it, however idle they are;
 * undefined: some can.
 */
export function neverFits(queue: OpenQueue, gang: Gang): readonly string[] | undefined {
  const [now, later] = [hostsOf(queue), declaredHosts(queue)].map((hosts) =>
    whyNotGang(occupy(withEnough(hosts), []).cluster, gang),
  )
  return now?.isImpossible === true && later?.isImpossible === true ? later.lines : undefined
}

const THERE_IS_ROOM = 'it fits: it starts at the next scheduling pass unless other jobs go first'

/** Preemptible jobs of lower priority that would make room, if the scheduler did that. */
export function preemptWords(job: Pick<Job, 'spec' | 'priority'>, queue: OpenQueue): readonly string[] {
  const { store } = queue
  if (store.report()?.isPreempting !== false) return []
  const staying = store
    .active()
    .filter(({ spec, priority, state }) => !spec.isPreemptible || priority >= job.priority || state.kind === 'ending')
  return whyNotGang(freeBeside(queue, staying), gangOf(job.spec)) === undefined
    ? [
        `It would fit if preemptible jobs of lower priority ended. Run the scheduler with: ${queue.command('job work --preempt')}`,
      ]
    : []
}

/** What keeps a job with --needs from its engine. */
function roomWords(asked: Asked, { store }: OpenQueue, engine: string, nowMs: number): readonly string[] {
  const title = placeTitle(enginePlace(engine))
  const room = store.report()?.rooms?.[engine]
  if (room === undefined) return [`needs ${needsText(asked.needs)}; ${title} has not said yet what is free`]
  const there = store.active().filter(({ spec }) => spec.engine === engine)
  const cluster = freeRoom(room, there, store.id, nowMs, namesIn(asked))
  const { kind, why } = judgeRoom(room.nodes, cluster, asked, title)
  return kind === 'fits'
    ? [`${title} has room for it: it goes there at the next scheduling pass, unless jobs before it wait for room`]
    : why
}

/** The jobs that it comes after and that ended otherwise than done: it is cancelled at the next scheduling pass. */
export const missedBy = ({ after }: Pick<Job, 'after'>, { store }: OpenQueue) =>
  after.flatMap((id) => {
    const state = store.get(id)?.state
    return state !== undefined && isFinal(state) && state.kind !== 'done'
      ? [{ id, words: missedWords(id, state.kind) }]
      : []
  })

const MOST_RANGES = 8

/** Which jobs it has to wait for first; undefined: none. */
export function undoneWords({ after }: Pick<Job, 'after'>, { store }: OpenQueue): string | undefined {
  const undone = after.filter((id) => {
    const state = store.get(id)?.state
    return state?.kind !== 'done' && !(state?.kind === 'running' && state.endpoint !== undefined)
  })
  if (undone.length === 0) return undefined
  const ranges = numberRanges(undone.toSorted((one, other) => one - other))
  const shown = ranges.slice(0, MOST_RANGES).join(', ')
  const more = ranges.length > MOST_RANGES ? ' and others' : ''
  const count = undone.length > 2 ? ` (${undone.length} left)` : ''
  return `waiting for ${undone.length === 1 ? 'job' : 'jobs'} ${shown}${more}${count}`
}

/** What lets a held job start. */
export function heldWords(job: Job, queue: OpenQueue): string {
  const release = queue.command(`job release ${job.id}`)
  return isInLine(job)
    ? `held until other trials of its study end. To start it now: ${release}`
    : `held. Run: ${release}`
}

function whyNotNow(job: Job, queue: OpenQueue, nowMs: number, free: () => Cluster): WhyWaiting {
  if (job.state.kind === 'held') return { why: [heldWords(job, queue)] }
  const { engine } = job.spec
  const place = enginePlace(engine ?? '')
  const title = placeTitle(place)
  const trouble = queue.store.report()?.down[place]
  const engineWords = (...words: readonly string[]) => ({
    why: trouble === undefined ? words : [`cannot reach ${title}: ${trouble}`],
  })
  const { storage } = job.spec
  if (
    job.state.kind === 'starting' &&
    engine === undefined &&
    storage !== undefined &&
    job.state.bundles.every(({ kind }) => kind === 'sent')
  )
    return { why: [`waiting for its hosts, or for the check of ${storage} on them`] }
  if (isPlaced(job.state) && engine !== undefined) {
    const { why, startS } = queue.store.report()?.waits?.[job.id] ?? {}
    const unknown = `waiting for resources in ${title}${storage === undefined ? '' : `, or for the check of ${storage} on its hosts`}`
    return { ...engineWords(why ?? unknown), ...expectedOf(startS) }
  }
  // It is suspended in its engine, or its host has another address.
  const paused = isActive(job.state) ? queue.store.report()?.waits?.[job.id]?.why : undefined
  if (job.state.kind !== 'queued') return { why: paused === undefined ? [] : [paused] }
  const missed = missedBy(job, queue).map(({ words }) => words)
  if (missed.length > 0) return { why: missed }
  const undone = undoneWords(job, queue)
  if (undone !== undefined) return { why: [undone] }
  const { notBeforeMs = 0 } = job.state
  const asked = askedOf(job.spec)
  if (engine !== undefined && asked !== undefined) return engineWords(...roomWords(asked, queue, engine, nowMs))
  if (engine !== undefined)
    return engineWords(`goes to ${title} at the next scheduling pass, or when fewer jobs wait there`)
  const report = queue.store.report()
  const waits = notBeforeMs > (report?.atMs ?? 0)
  const gang = gangOf(job.spec)
  const why = whyNotGang(free(), gang)
  // The scheduler's hosts can never hold it, but those of hosts.yaml can.
  const changed = why?.isImpossible === true && neverFits(queue, gang) === undefined ? changedWords(queue) : undefined
  if (changed !== undefined) return { why: [changed] }
  const gone = goneHosts(job, queue)
  if (gone !== undefined) return { why: [gone] }
  const startS = report?.expectedS[job.id]
  return {
    why: [
      ...(waits ? [`next attempt ${whenText(notBeforeMs, nowMs)}`] : []),
      ...downWords(queue),
      ...(why === undefined
        ? waits
          ? []
          : [roomButWaits(job, queue, free(), startS, nowMs)]
        : [...why.lines, ...preemptWords(job, queue)]),
    ],
    ...expectedOf(startS),
  }
}

/** None of the hosts that it may run on is there any more. */
function goneHosts({ id, spec }: Job, queue: OpenQueue): string | undefined {
  const on = spec.request.selectors?.find(({ label, is }) => label === 'host' && is === 'in')
  const wanted = on !== undefined && 'values' in on ? on.values : []
  const known = new Set(hostsOf(queue).map(({ name }) => name))
  if (wanted.length === 0 || wanted.some((name) => known.has(name))) return undefined
  const words = `it may run only on ${foldHostSet([...wanted])}, which ${fileTitle(queue.inventory)} no longer declares.`
  return `${words} Run: ${queue.command(`job edit ${id} --on HOSTS`)}`
}

const MOST_AHEAD = 50

/** Why a job that fits does not start: the scheduler keeps its place for one that goes first. */
function roomButWaits(
  { id, priority }: Job,
  { store }: OpenQueue,
  free: Cluster,
  startS: number | null | undefined,
  nowMs: number,
): string {
  if (typeof startS !== 'number' || startS * 1000 <= nowMs + PASS_MS) return THERE_IS_ROOM
  const isAhead = (other: Job) => other.priority > priority || (other.priority === priority && other.id < id)
  const ahead = store
    .queued(MOST_AHEAD)
    .find(
      (other) =>
        isAhead(other) && other.spec.engine === undefined && whyNotGang(free, gangOf(other.spec)) !== undefined,
    )
  return ahead === undefined
    ? 'it fits, but would delay a job that goes first'
    : `it fits, but would delay job ${ahead.id} (${ahead.spec.name}), which goes first`
}

const PASS_MS = 3000

/** Seconds since the epoch. */
const expectedOf = (startS: number | null | undefined) =>
  typeof startS === 'number' ? { expected: new Date(startS * 1000).toISOString() } : {}
