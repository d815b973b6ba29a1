/** Long calculations that signals and time limits end: they yield where they can be interrupted. */
import { setImmediate } from 'node:timers/promises'

export type Calculation<R> = Generator<undefined, R>
export type ResultOf<C> = C extends Calculation<infer R> ? R : never

const SLICE_MS = 50

/** All of it in one turn, where it is known to be short. */
export function complete<R>(work: Calculation<R>): R {
  for (;;) {
    const step = work.next()
    if (step.done === true) return step.value
  }
}

/** So many short parts of a calculation are done between two places where it yields. */
export const STEP = 1024

/** As `Array.map`, of very many. */
export function* mapOf<T, R>(all: readonly T[], to: (one: T) => R): Calculation<R[]> {
  const made: R[] = []
  for (const one of all) {
    made.push(to(one))
    if (made.length % STEP === 0) yield
  }
  return made
}

/** Lets other events in every 50 ms. Rejects with the reason of the signal. */
export async function calculate<R>(work: Calculation<R>, signal: AbortSignal): Promise<R> {
  for (;;) {
    signal.throwIfAborted()
    const endMs = performance.now() + SLICE_MS
    do {
      const step = work.next()
      if (step.done === true) return step.value
    } while (performance.now() < endMs)
    await setImmediate()
  }
}
