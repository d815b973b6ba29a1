/** What systeminformation says of the machine that Muster runs on. */
import { statfsSync } from 'node:fs'
import { cpus, totalmem, uptime } from 'node:os'
import { expect, it } from 'vitest'
import { createOwnMachine } from '../../../src/cli/net/own-machine.ts'
import { waitUntil } from '../../support/wait-until.ts'

it('has the same values from systeminformation as from Node', async () => {
  const port = createOwnMachine()
  expect(await port.poll()).toBeUndefined()
  const now = await port.poll()
  expect(now).toMatchObject({ cores: cpus().length, memoryBytes: totalmem(), gpus: [] })
  expect(now?.cpu).toBeGreaterThanOrEqual(0)
  expect(now?.cpu).toBeLessThanOrEqual(1)
  expect(now?.memoryUsedBytes).toBeGreaterThan(0)
  expect(now?.memoryUsedBytes).toBeLessThan(totalmem())
  expect(now?.upSeconds).toBeLessThanOrEqual(uptime())
})

it('names the fullest file system of its disks', async () => {
  const port = createOwnMachine()
  let seen: Awaited<ReturnType<typeof port.poll>>
  await waitUntil(async () => {
    seen = await port.poll()
    return seen?.fullest !== undefined
  }, 'its file systems')
  const { point = '', used = 0 } = seen?.fullest ?? {}
  const { blocks, bfree, bavail } = statfsSync(point)
  // As df counts: without what is kept for root.
  expect(used).toBeCloseTo((blocks - bfree) / (blocks - bfree + bavail), 1)
})
