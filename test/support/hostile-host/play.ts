/**
 * Plays seeded mutations against one protocol and says with which seed one failed. With MUSTER_HOSTILE_SEED in the environment
 * only that one is played; MUSTER_HOSTILE_COUNT plays another number of them, from MUSTER_HOSTILE_FROM on.
 */
import { expect } from 'vitest'
import { createRandomNumbers } from '../../../src/scheduler/policies/random.ts'
import { Choice } from './mutate.ts'

const COUNT = Number(process.env.MUSTER_HOSTILE_COUNT ?? 10_000)
const FROM = Number(process.env.MUSTER_HOSTILE_FROM ?? 1)
const ONLY = process.env.MUSTER_HOSTILE_SEED
/** Of the real clock: whoever does not end by then waits for something that never comes. */
const STUCK_MS = 20_000
/** Over what was there before, once what is not used any more is gone. */
const MOST_KEPT_BYTES = 256 * 1024 * 1024
const LOOK_EVERY = 500

type Mutation = {
  readonly seed: number
  readonly choice: Choice
  /** What is done, so that a failure can tell it. */
  note(...how: readonly string[]): void
}

/**
 * `play` throws when something is believed, kept or printed that must not be. `share`: of the mutations of its protocol.
 * `together`: so many at once, where they wait for the disk or a network.
 */
export async function playMutations(
  play: (mutation: Mutation) => Promise<void> | void,
  share = 1,
  together = 1,
): Promise<void> {
  const seeds =
    ONLY === undefined ? Array.from({ length: Math.ceil(COUNT * share) }, (_, index) => FROM + index) : [Number(ONLY)]
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  const before = process.memoryUsage().rss
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
        if (seed % LOOK_EVERY === 0) checkMemory(before)
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

function failure(seed: number, how: readonly string[], cause: unknown): Error {
  const { currentTestName = '' } = expect.getState()
  const again = `MUSTER_HOSTILE_SEED=${seed} npx vitest run --project integration test/integration/hostile -t '${currentTestName.split(' > ').at(-1)}'`
  const words = cause instanceof Error ? cause.message : String(cause)
  return new Error(`seed ${seed} (${how.join(', ')}) fails. Play it again: ${again}\n${words}`, { cause })
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

function checkMemory(before: number): void {
  const kept = process.memoryUsage().rss - before
  if (kept <= MOST_KEPT_BYTES) return
  globalThis.gc?.()
  const { heapUsed, external } = process.memoryUsage()
  if (heapUsed + external > before + MOST_KEPT_BYTES) throw new Error(`${Math.round(kept / 2 ** 20)} MiB are kept`)
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
