import { expect, it } from 'vitest'
import { type Calculation, calculate } from '../../../src/base/calculation.ts'

function* endless(): Calculation<never> {
  for (;;) yield
}

it('is ended by an event that comes while it runs', async () => {
  const stopped = new AbortController()
  setImmediate(() => stopped.abort('SIGINT'))
  await expect(calculate(endless(), stopped.signal)).rejects.toBe('SIGINT')
})
