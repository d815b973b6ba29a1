/**
 * The default: 64 of those who wait have places in the plan, the rest fills what is left now. Places go first to those who
 * have waited for an hour, in the order of submission, then to those whose wait is the longest beside their length. So
 * short ones hardly wait, and nobody is passed for ever: whoever stays grows old, and the places of the oldest do not move
 * back.
 */
import { FreeProfile } from './free-profile.ts'
import type { QueuedJob, QueuePolicy, QueueState } from './job.ts'

/** More of them: nearer to conservative back-fill. Fewer: less waiting on average, longer for the widest. */
const RESERVED = 64

const OLD_S = 3600

/** Below that, jobs are alike: nobody minds seconds. */
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
