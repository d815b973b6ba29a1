import { expect, test } from 'vitest'
import { hasPassed } from '../../../../src/base/clock.ts'
import { HostClock, type HostLine } from '../../../../src/scheduler/jobs/host-line.ts'
import { isDue, type JobOrder, newHostRecord, specOf, wantsFacts } from '../../../../src/scheduler/jobs/host-rounds.ts'

const spec = { name: 'a', address: 'a', gpuCount: 0, labels: {}, custom: undefined }
const NOW_MS = 1_000_000_000

test('tests the disk of a host before starts, after trouble, and otherwise every few minutes', () => {
  const record = { ...newHostRecord(spec, {} as HostLine, new HostClock()), trouble: undefined, factsMs: NOW_MS }
  const order = (kind: 'start' | 'check') =>
    [{ host: 'a', rank: 0, order: { kind, key: 'k' } }] as unknown as JobOrder[]
  const wants = (orders: readonly JobOrder[], isWhole: boolean, afterS: number) =>
    wantsFacts(record, orders, isWhole, NOW_MS + afterS * 1000)
  expect([9, 10].map((afterS) => wants(order('start'), false, afterS))).toEqual([false, true])
  expect([59, 60].map((afterS) => wants(order('check'), true, afterS))).toEqual([false, true])
  expect([299, 300].map((afterS) => wants([], true, afterS))).toEqual([false, true])
  expect(wants(order('check'), false, 3600)).toBe(false)
  expect(wantsFacts({ ...record, trouble: 'it is full' }, [], true, NOW_MS)).toBe(true)
  expect(wantsFacts({ ...record, factsMs: undefined }, [], true, NOW_MS)).toBe(true)
})

test('offers no more GPUs than the host has, or those that are declared if the host cannot tell', () => {
  const record = newHostRecord({ ...spec, gpuCount: 11 }, {} as HostLine, new HostClock())
  const offered = (gpus?: number) => {
    const facts = gpus === undefined ? { cores: 8, memoryBytes: 1 } : { cores: 8, memoryBytes: 1, gpus }
    const { gpus: devices, gpusDeclared } = specOf({ ...record, facts })
    return [devices?.length, gpusDeclared]
  }
  expect([offered(1), offered(11), offered(16), offered()]).toEqual([
    [1, 11],
    [11, undefined],
    [11, undefined],
    [11, undefined],
  ])
  expect(specOf(record).gpus).toHaveLength(11)
})

test('polls at once when the clock was set back', () => {
  expect(
    [-1, 0, 10_000, 10_001].map((laterMs) =>
      isDue({ nextMs: NOW_MS + laterMs, pollMs: { soon: 100, late: 2000 } }, NOW_MS),
    ),
  ).toEqual([true, true, false, true])
  expect([0, 999, 1000].map((afterMs) => hasPassed(NOW_MS, 1000, NOW_MS + afterMs))).toEqual([false, false, true])
  expect(hasPassed(NOW_MS, 1000, NOW_MS - 1)).toBe(true)
})
