/** What systeminformation says of the machine that Muster runs on. */
import { cpus, totalmem } from 'node:os'
import { expect, it } from 'vitest'
import { createOwnMachine } from '../../../src/cli/net/own-machine.ts'

it('has the same values from systeminformation as from Node', async () => {
  const port = createOwnMachine()
  expect(await port.poll()).toBeUndefined()
  const now = await port.poll()
  expect(now).toMatchObject({ cores: cpus().length, memoryBytes: totalmem(), gpus: [] })
  expect(now?.cpu).toBeGreaterThanOrEqual(0)
  expect(now?.cpu).toBeLessThanOrEqual(1)
  expect(now?.memoryUsedBytes).toBeGreaterThan(0)
  expect(now?.memoryUsedBytes).toBeLessThan(totalmem())
})
