/**
 * The turn of waiting jobs: by priority, which grows by one each day; then users who consumed less; then jobs that have
 * waited for an hour, by submission; then the longest wait in relation to the length.
 */
import { lowerBound } from '../../base/collections.ts'
import type { WaitingJob } from './predict.ts'

/** Waiting this long adds one to the priority, so that no job starves. */
const AGEING_S = 86_400
const OLD_S = 3600
const SHORT_S = 10

/** What each user consumed lately, in any unit; others consumed nothing. */
export type Usage = ReadonlyMap<string, number>

/** Jobs of one user and priority that are placed alike, the longest waiting first; a single job is a line as well. */
export interface QueueLine<Job extends WaitingJob = WaitingJob> {
  at(index: number): Job | undefined
}

/** The first job of a line that has not had its turn. */
export type Head<Job extends WaitingJob> = {
  readonly job: Job
  readonly line: QueueLine<Job>
  readonly index: number
  readonly rank: number
  readonly had: number
  readonly slowdown: number
}

export type TurnOptions<Job extends WaitingJob> = {
  readonly nowS: number
  readonly usage: Usage
  /** Expected run time. */
  lengthS(job: Job): number
}

/** Merges many lines into one order, reading each line only as far as needed. */
export class Turns<Job extends WaitingJob> {
  readonly #options: TurnOptions<Job>
  /** The last one is next. */
  readonly #heads: Head<Job>[]

  constructor(lines: readonly QueueLine<Job>[], options: TurnOptions<Job>) {
    this.#options = options
    this.#heads = lines.flatMap((line) => this.#headOf(line, 0) ?? []).sort((one, other) => compare(other, one))
  }

  take(): Head<Job> | undefined {
    return this.#heads.pop()
  }

  /** Gives the next job of the same line its turn. */
  follow({ line, index }: Head<Job>): void {
    const head = this.#headOf(line, index + 1)
    if (head === undefined) return
    const isLater = (index: number) => compare(this.#heads[index] as Head<Job>, head) > 0
    this.#heads.splice(lowerBound(this.#heads.length, isLater), 0, head)
  }

  #headOf(line: QueueLine<Job>, index: number): Head<Job> | undefined {
    const { nowS, usage, lengthS } = this.#options
    const job = line.at(index)
    if (job === undefined) return undefined
    const waitS = Math.max(0, nowS - job.submitS)
    const length = lengthS(job)
    return {
      job,
      line,
      index,
      rank: rankOf(job, nowS),
      // Users count as equal within a factor of two.
      had: Math.floor(Math.log2(Math.max(1, usage.get(job.user) ?? 0))),
      slowdown: waitS > OLD_S ? Number.POSITIVE_INFINITY : (waitS + length) / Math.max(SHORT_S, length),
    }
  }
}

export function firstInTurn<Job extends WaitingJob>(
  lines: readonly QueueLine<Job>[],
  count: number,
  options: TurnOptions<Job>,
): readonly Job[] {
  const turns = new Turns(lines, options)
  const first: Job[] = []
  for (let head = turns.take(); head !== undefined && first.length < count; head = turns.take()) {
    first.push(head.job)
    turns.follow(head)
  }
  return first
}

/** Its priority, and what waiting added to it. */
export function rankOf({ priority, submitS }: WaitingJob, nowS: number): number {
  return priority + Math.floor(Math.max(0, nowS - submitS) / AGEING_S)
}

function compare(one: Head<WaitingJob>, other: Head<WaitingJob>): number {
  const first = other.rank - one.rank || one.had - other.had
  // Two slowdowns may both be infinite.
  if (first !== 0 || one.slowdown === other.slowdown)
    return first || one.job.submitS - other.job.submitS || one.job.order - other.job.order
  return other.slowdown - one.slowdown
}

/** What users consumed, halved every half-life. */
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
