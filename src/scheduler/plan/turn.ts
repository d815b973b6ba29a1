/**
 * In which turn those who wait are looked at: by priority, which grows with each day of waiting; of equals, users who have had
 * less; of these, whoever has waited for an hour, in the order of submission, and then those whose wait is the longest beside
 * their length.
 */
import type { WaitingJob } from './job.ts'

/** So long a wait counts as one more of priority: nobody is passed for ever. */
const AGEING_S = 86_400
const OLD_S = 3600
const SHORT_S = 10

/** How much a user has had lately, in any unit; users that are not named had nothing. */
export type Usage = ReadonlyMap<string, number>

type Ranked = { readonly job: WaitingJob; readonly rank: number; readonly had: number; readonly slowdown: number }

/** `lengthS`: how long a job is taken to run. */
export function inTurn<Job extends WaitingJob>(
  waiting: readonly Job[],
  nowS: number,
  usage: Usage,
  lengthS: (job: Job) => number,
): readonly Job[] {
  const ranked = waiting.map((job) => {
    const waitS = Math.max(0, nowS - job.submitS)
    const length = lengthS(job)
    return {
      job,
      rank: rankOf(job, nowS),
      had: level(usage.get(job.user) ?? 0),
      slowdown: waitS > OLD_S ? Number.POSITIVE_INFINITY : (waitS + length) / Math.max(SHORT_S, length),
    }
  })
  return ranked.sort(compare).map(({ job }) => job)
}

/** Its priority and what waiting has added to it. */
export function rankOf({ priority, submitS }: WaitingJob, nowS: number): number {
  return priority + Math.floor(Math.max(0, nowS - submitS) / AGEING_S)
}

function compare(one: Ranked, other: Ranked): number {
  if (one.rank !== other.rank) return other.rank - one.rank
  if (one.had !== other.had) return one.had - other.had
  if (one.slowdown !== other.slowdown) return other.slowdown - one.slowdown
  return one.job.submitS - other.job.submitS || one.job.order - other.job.order
}

/** Users count as equal until one has had twice as much. */
function level(had: number): number {
  return had <= 1 ? 0 : Math.floor(Math.log2(had))
}

/** What users have had, halved every so often: who has had much long ago is as good as new. */
export class FairShare {
  readonly #halfLifeS: number
  readonly #had = new Map<string, { amount: number; atS: number }>()

  constructor(halfLifeS = 86_400) {
    this.#halfLifeS = halfLifeS
  }

  charge(user: string, amount: number, nowS: number): void {
    this.#had.set(user, { amount: this.#at(user, nowS) + amount, atS: nowS })
  }

  usage(nowS: number): Usage {
    return new Map([...this.#had.keys()].map((user) => [user, this.#at(user, nowS)]))
  }

  #at(user: string, nowS: number): number {
    const { amount = 0, atS = nowS } = this.#had.get(user) ?? {}
    return amount * 0.5 ** ((nowS - atS) / this.#halfLifeS)
  }
}
