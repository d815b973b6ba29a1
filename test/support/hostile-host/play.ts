/**
 * Plays seeded mutations against one protocol and names the seed that failed. MUSTER_SEED=N repeats that seed; MUSTER_ROUNDS=N plays
 * N mutations of each protocol, from that seed on if there is one.
 */
import { setImmediate } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { expect } from 'vitest'
import { createRandomNumbers } from '../../../src/scheduler/policies/random.ts'
import { Choice } from './mutate.ts'

const { MUSTER_SEED, MUSTER_ROUNDS } = process.env
const COUNT = Number(MUSTER_ROUNDS ?? (MUSTER_SEED === undefined ? 10_000 : 1))
const FROM = Number(MUSTER_SEED ?? 1)
/** By the real clock: what has not ended by then waits for something that never comes. */
const STUCK_MS = 20_000
/**
 * Live memory after garbage collection may grow by so much from check to check. What is kept of each mutation grows every time;
 * code that is loaded or compiled late grows it once.
 */
const MOST_GROWTH_BYTES = 3 * 1024 * 1024
const MEMORY_CHECKS = 4
const LEAST_GROWTHS = 2
const MOST_COLLECTIONS = 20
const COLLECT_EVERY = 250
/** What one mutation may take in passing, above what the process had at its most before. */
const MOST_TRANSIENT_BYTES = 512 * 1024 * 1024

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

export type Mutation = {
  readonly seed: number
  readonly choice: Choice
  /** What is done, for the message of a failure. */
  note(...how: readonly string[]): void
}

/** How many mutations of each protocol are played; 0 when a seed is repeated. */
export const playedCount = (): number => (MUSTER_SEED === undefined ? COUNT : 0)

/**
 * `play` throws when something is believed, kept or printed that must not be. `share`: the fraction of mutations to play.
 * `together`: how many at once, for those that wait for the disk or a network.
 */
export async function playMutations(
  play: (mutation: Mutation) => Promise<void> | void,
  share = 1,
  together = 1,
): Promise<void> {
  const seeds = Array.from({ length: Math.ceil(COUNT * share) }, (_, index) => FROM + index)
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  const memory = new MemoryCheck(seeds.length)
  let next = 0
  const work = async () => {
    for (let seed = seeds[next++]; seed !== undefined; seed = seeds[next++]) {
      const how: string[] = []
      const choice = new Choice(createRandomNumbers(seed))
      try {
        await inTime(
          async () => await play({ seed: seed as number, choice, note: (...words) => void how.push(...words) }),
        )
        if (unhandled.length > 0) throw unhandled[0]
        await memory.afterOne()
      } catch (error) {
        next = seeds.length
        throw failure(seed, how, error)
      }
    }
  }
  try {
    await Promise.all(Array.from({ length: together }, work))
  } finally {
    process.off('unhandledRejection', note)
  }
}

class MemoryCheck {
  readonly #every: number
  readonly #peakBefore = peakBytes()
  #count = 0
  readonly #live: number[] = []

  constructor(count: number) {
    this.#every = Math.max(100, Math.floor(count / MEMORY_CHECKS))
  }

  /** @throws when more and more is kept, or when one mutation took too much in passing */
  async afterOne(): Promise<void> {
    // Garbage of many mutations must not look like the need of one: a busy machine collects late.
    if (++this.#count % COLLECT_EVERY === 0) collectGarbage()
    if (this.#count % this.#every !== 0) return
    const peak = peakBytes() - this.#peakBefore
    if (peak > MOST_TRANSIENT_BYTES) throw new Error(`it took ${mebibytes(peak)} in passing`)
    // Finalizers and buffers outside the heap may need some more turns, and a busy machine gives them late.
    let live = await liveBytes()
    const before = this.#live.at(-1) ?? live
    for (let again = 0; live - before > MOST_GROWTH_BYTES && again < MOST_COLLECTIONS; again++) live = await liveBytes()
    this.#live.push(live)
    const growths = this.#live.slice(1).map((bytes, index) => bytes - (this.#live[index] ?? bytes))
    if (growths.length >= LEAST_GROWTHS && Math.min(...growths) > MOST_GROWTH_BYTES)
      throw new Error(`it keeps ${mebibytes(Math.min(...growths))} more after every ${this.#every}`)
  }
}

async function liveBytes(): Promise<number> {
  collectGarbage()
  await setImmediate()
  collectGarbage()
  const { heapUsed, external } = process.memoryUsage()
  return heapUsed + external
}

const peakBytes = (): number => process.resourceUsage().maxRSS * 1024
const mebibytes = (bytes: number): string => `${Math.round(bytes / 2 ** 20)} MiB`

function failure(seed: number, how: readonly string[], cause: unknown): Error {
  const { currentTestName = '' } = expect.getState()
  const again = `MUSTER_SEED=${seed} npx vitest run --project integration test/integration/hostile -t '${currentTestName.split(' > ').at(-1)}'`
  const words = cause instanceof Error ? cause.message : String(cause)
  return new Error(`seed ${seed} (${how.join(', ')}) fails. Repeat it: ${again}\n${words}`, { cause })
}

async function inTime(work: () => Promise<void>): Promise<void> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => late.reject(new Error('it does not end')), STUCK_MS)
  try {
    await Promise.race([work(), late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** What would act on a terminal: C0 but for tab and line feed, DEL and C1. */
const CONTROL = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/

/** @throws where a text for people has control characters; `\n` and tabs only where they are said to be fine */
export function expectPrintable(text: string, what: string, { lines = false } = {}): void {
  const found = (lines ? CONTROL : /[\u0000-\u001f\u007f-\u009f]/).exec(text)
  if (found === null) return
  throw new Error(
    `${what} has control characters: ${JSON.stringify(text.slice(Math.max(0, found.index - 60), found.index + 60))}`,
  )
}

/** No word of a defect of this program stands where a person reads why something went wrong. */
const DEFECT =
  /\b(TypeError|RangeError|ReferenceError|undefined|is not (a function|iterable)|Cannot (read|convert|destructure))\b/

export function expectNoDefect(text: string, what: string): void {
  if (DEFECT.test(text)) throw new Error(`${what} tells of a defect: ${JSON.stringify(text.slice(0, 300))}`)
}

/** All numbers in a value, at any depth. */
function numbersIn(value: unknown): number[] {
  if (typeof value === 'number') return [value]
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(numbersIn) : []
}

/** @throws if a number is negative, infinite or NaN */
export function expectNumbers(value: unknown, what: string): void {
  for (const number of numbersIn(value))
    if (!Number.isFinite(number) || number < 0)
      throw new Error(`${what} has the number ${number}: ${JSON.stringify(value)}`)
}
