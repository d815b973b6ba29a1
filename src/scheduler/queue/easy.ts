/**
 * First come, first served; shortest first; and EASY back-fill, where only the head of the queue has a reservation (Lifka, The
 * ANL/IBM SP scheduling system, 1995).
 */
import type { QueuedJob, QueuePolicy, QueueState, RunningJob } from './job.ts'

export const fcfs: QueuePolicy = {
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
export const shortestFirst: QueuePolicy = {
  choose: (state) => fcfs.choose({ ...state, waiting: state.waiting.toSorted(byEstimate) }),
}

/** Jobs behind the head are tried by submission, or the shortest first. */
export function createEasy(isShortestFirst: boolean): QueuePolicy {
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
