import { setImmediate } from 'node:timers/promises'
import { expect, it, vi } from 'vitest'
import { createOwnMachine } from '../../../../src/cli/net/own-machine.ts'

const asked = vi.hoisted(() => ({ fileSystems: 0 }))
vi.mock('systeminformation', () => ({
  default: {
    mem: async () => ({ total: 2, available: 1, swaptotal: 0, swapused: 0 }),
    networkStats: async () => [],
    fsStats: async () => null,
    fsSize: async () => {
      asked.fileSystems += 1
      if (asked.fileSystems === 1) throw new Error('df has ended')
      return [{ fs: '/dev/sda1', type: 'ext4', rw: true, use: 50, mount: '/' }]
    },
  },
}))

it('asks for file systems again after it could not read them', async () => {
  const port = createOwnMachine()
  for (let poll = 0; poll <= 60; poll += 1) await port.poll()
  await setImmediate()
  expect((await port.poll())?.fullest).toEqual({ point: '/', used: 0.5 })
})
