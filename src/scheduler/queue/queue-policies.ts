/** Queue policies by name; conservative back-fill is in free-profile.ts. */
import {
  ConservativeBackfill,
  FreeProfile,
  type QueuedJob,
  type QueuePolicy,
  type QueueState,
  type RunningJob,
} from './free-profile.ts'

const fcfs: QueuePolicy = {
  choose({ waiting, free }) {
    let left = free
    const blocked = waiting.findIndex(({ width }) => {
      left -= width
      return left < 0
    })
    return blocked < 0 ? waiting : waiting.slice(0, blocked)
  },
}

/** Nothing passes the shortest job, so the machine drains for wide ones; long jobs may starve. */
const shortestFirst: QueuePolicy = {
  choose: (state) => fcfs.choose({ ...state, waiting: state.waiting.toSorted(byEstimate) }),
}

/**
 * EASY back-fill: only the head of the queue has a reservation (Lifka, The ANL/IBM SP scheduling system, 1995). Jobs behind it are
 * tried by submission, or the shortest first.
 */
function createEasy(isShortestFirst: boolean): QueuePolicy {
  return { choose: (state) => chooseEasy(state, isShortestFirst) }
}

function chooseEasy(state: QueueState, isShortestFirst: boolean): readonly QueuedJob[] {
  const begun = [...fcfs.choose(state)]
  const head = state.waiting[begun.length]
  let left = begun.reduce((rest, { width }) => rest - width, state.free)
  if (head === undefined || left === 0) return begun
  const { nowS } = state
  const running = [
    ...state.running,
    ...begun.map(({ width, estimateS }) => ({ width, estimatedEndS: nowS + estimateS })),
  ]
  const { shadowS, ...reserved } = reserve(head, left, running)
  let { extra } = reserved
  const behind = state.waiting.slice(begun.length + 1)
  for (const job of isShortestFirst ? behind.sort(byEstimate) : behind) {
    const isOver = nowS + job.estimateS <= shadowS
    if (job.width > left || !(isOver || job.width <= extra)) continue
    if (!isOver) extra -= job.width
    left -= job.width
    begun.push(job)
  }
  return begun
}

/** When the head can begin, and what is free beside it then. */
function reserve(head: QueuedJob, free: number, running: readonly RunningJob[]): { shadowS: number; extra: number } {
  let left = free
  for (const { width, estimatedEndS } of running.toSorted((one, other) => one.estimatedEndS - other.estimatedEndS)) {
    left += width
    if (left >= head.width) return { shadowS: estimatedEndS, extra: left - head.width }
  }
  return { shadowS: Number.POSITIVE_INFINITY, extra: 0 }
}

function byEstimate(one: QueuedJob, other: QueuedJob): number {
  return one.estimateS - other.estimateS || one.order - other.order
}

/** More: closer to conservative back-fill. Fewer: less waiting on average, longer for the widest. */
const RESERVED = 64

const OLD_S = 3600

/** Shorter jobs count as equal. */
const SHORT_S = 10

/**
 * The default: 64 waiting jobs reserve places in the plan, the rest fills what is free now. Places go first to jobs that have
 * waited for an hour, by submission, then to those with the longest wait in relation to their length. Short jobs hardly wait,
 * and none starves, because every job ages and the places of the oldest do not move back.
 */
const oldestReserved: QueuePolicy = {
  choose({ nowS, free, running, waiting }: QueueState): readonly QueuedJob[] {
    const profile = new FreeProfile(nowS, free, running)
    const begun: QueuedJob[] = []
    let left = free
    let reserved = 0
    for (const job of inTurn(waiting, nowS)) {
      if (left === 0) break
      const startS =
        reserved < RESERVED
          ? profile.earliest(job.width, job.estimateS)
          : job.width <= left && profile.holdsNow(job.width, job.estimateS)
            ? nowS
            : undefined
      if (startS === undefined) continue
      profile.take(startS, job.estimateS, job.width)
      if (startS === nowS) {
        begun.push(job)
        left -= job.width
      } else reserved++
    }
    return begun
  },
}

function inTurn(waiting: readonly QueuedJob[], nowS: number): readonly QueuedJob[] {
  const firstYoung = waiting.slice(0, RESERVED).findIndex(({ submitS }) => nowS - submitS <= OLD_S)
  const oldCount = firstYoung < 0 ? RESERVED : firstYoung
  const rest = waiting.slice(oldCount).sort((one, other) => compareSlowdown(one, other, nowS))
  return [...waiting.slice(0, oldCount), ...rest]
}

function compareSlowdown(one: QueuedJob, other: QueuedJob, nowS: number): number {
  return slowdown(other, nowS) - slowdown(one, nowS) || one.order - other.order
}

function slowdown({ submitS, estimateS }: QueuedJob, nowS: number): number {
  return (nowS - submitS + estimateS) / Math.max(SHORT_S, estimateS)
}

export const QUEUE_POLICIES = {
  'oldest-reserved': () => oldestReserved,
  conservative: () => new ConservativeBackfill(),
  easy: () => createEasy(false),
  'easy-sjf': () => createEasy(true),
  sjf: () => shortestFirst,
  fcfs: () => fcfs,
} satisfies Record<string, () => QueuePolicy>

export type QueuePolicyName = keyof typeof QUEUE_POLICIES

export const DEFAULT_QUEUE_POLICY: QueuePolicyName = 'oldest-reserved'
