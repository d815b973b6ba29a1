/** Random choices of a test that can be made again: a failing test prints its seed, and MUSTER_SEED=N repeats it. */
import { onTestFailed } from 'vitest'
import { createRandomNumbers } from '../../src/scheduler/policies/random.ts'

/** Numbers from 0 up to but not including 1. Call it inside a test. */
export function seededRandom(): () => number {
  const seed = Number(process.env.MUSTER_SEED ?? Math.floor(Math.random() * 2 ** 32))
  onTestFailed(() => void process.stderr.write(`Repeat the random choices of this test with MUSTER_SEED=${seed}\n`))
  return createRandomNumbers(seed)
}
