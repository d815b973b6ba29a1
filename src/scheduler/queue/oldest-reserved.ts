/**
 * The default: 64 waiting jobs reserve places in the plan, the rest fills what is free now. Places go first to jobs that have
 * waited for an hour, by submission, then to those with the longest wait in relation to their length. Short jobs hardly wait, and
 * none starves, because every job ages and the places of the oldest do not move back.
 */
import { FreeProfile } from './free-profile.ts'
import type { QueuedJob, QueuePolicy, QueueState } from './job.ts'

/** More: closer to conservative back-fill. Fewer: less waiting on average, longer for the widest. */
const RESERVED = 64

const OLD_S = 3600

/** Shorter jobs count as equal. */
const SHORT_S = 10

export const oldestReserved: QueuePolicy = {
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
