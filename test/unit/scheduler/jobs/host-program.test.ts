/** What a host of the queue says of itself. */
import { expect, it } from 'vitest'
import { parseHostAnswer } from '../../../../src/scheduler/jobs/host-program.ts'

it('takes only cores and memory that a machine can have from a host', () => {
  expect(parseHostAnswer('host 8 1024').facts).toEqual({ cores: 8, memoryBytes: 2 ** 20 })
  for (const number of ['-1', '1e309', 'NaN', '8x', '18446744073709551616', '9'.repeat(400)])
    expect(parseHostAnswer(`host ${number} ${number}`).facts).toEqual({ cores: 0, memoryBytes: 0 })
})
