import type { Calculation } from '../../src/base/calculation.ts'

/** The result of a calculation that nothing interrupts. */
export function atOnce<R>(work: Calculation<R>): R {
  let step = work.next()
  while (step.done !== true) step = work.next()
  return step.value
}
