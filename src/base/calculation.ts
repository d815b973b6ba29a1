/** Long calculations that signals and time limits end: they yield where they can be interrupted. */
import { setImmediate } from 'node:timers/promises'

export type Calculation<R> = Generator<undefined, R>
export type ResultOf<C> = C extends Calculation<infer R> ? R : never

const SLICE_MS = 50

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
