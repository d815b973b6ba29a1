import { describe, expect, it } from 'vitest'
import type { Sample } from '../../../../src/ops/net/watch/sample.ts'
import type { PackedHost } from '../../../../src/scheduler/jobs/packing.ts'
import { HISTORY_MS, HoldHistory, pastCells, UseHistory } from '../../../../src/ui/packing/history.ts'

const NOW = 10 * HISTORY_MS

const sampleAt = (atMs: number, busy: number, cpu = 0): Sample => ({
  ...{ atMs, cpu, cores: 4, memoryBytes: 1, memoryUsedBytes: 0, swapBytes: 0, swapUsedBytes: 0, cards: [] },
  gpus: [{ id: '0', name: 'A100', busy }],
})

const pasts = (...args: Parameters<typeof pastCells>) => pastCells(...args).map(({ past }) => past)

describe('the last ten minutes of a device', () => {
  const hold = { job: 3, host: 'm1', devices: [0], fromMs: NOW - HISTORY_MS / 2 }

  it('are held while a job has it, and used or idle where its host was sampled meanwhile', () => {
    const use = new UseHistory()
    for (let atMs = NOW - HISTORY_MS / 5; atMs < NOW; atMs += 1000)
      use.note('m1', sampleAt(atMs, atMs < NOW - HISTORY_MS / 10 ? 0.9 : 0.01))
    const histories = { use, holds: new Map([['m1', [hold]]]), sinceMs: undefined }
    expect(pasts(histories, 'm1', 'm1', 0, 10, NOW)).toEqual([
      ...['free', 'free', 'free', 'free', 'free'],
      ...['held', 'held', 'held', 'used', 'idle'],
    ])
    expect(pasts(histories, 'm1', 'm1', 1, 2, NOW)).toEqual(['free', 'free'])
    expect(pastCells(histories, 'm1', 'm1', 0, 10, NOW).at(8)).toMatchObject({ job: 3, busy: expect.closeTo(0.9) })
  })

  it('are kept of so many devices of a host, whatever it says', () => {
    const use = new UseHistory()
    for (let id = 0; id < 2000; id++)
      use.note('m1', { ...sampleAt(NOW, 1), gpus: [{ id: String(id), name: 'A100', busy: 1 }] })
    expect(use.between('m1', 500, NOW - 1, NOW + 1)).toBe(1)
    expect(use.between('m1', 600, NOW - 1, NOW + 1)).toBeUndefined()
  })

  it('say that a device was used without a job, and that nothing is known of the time before', () => {
    const use = new UseHistory()
    use.note('m1', sampleAt(NOW - 1000, 0.5))
    const histories = { use, holds: new Map(), sinceMs: NOW - HISTORY_MS / 2 }
    expect(pasts(histories, 'm1', 'm1', 0, 4, NOW)).toEqual(['unknown', 'unknown', 'free', 'taken'])
  })

  it('are overwritten by the next ten, and forgotten with their host', () => {
    const use = new UseHistory()
    for (let atMs = NOW - 2 * HISTORY_MS; atMs <= NOW; atMs += 10_000)
      use.note('m1', sampleAt(atMs, atMs < NOW ? 0.5 : 0.7))
    expect(use.between('m1', 0, NOW - 2 * HISTORY_MS, NOW - 1.5 * HISTORY_MS)).toBeUndefined()
    expect(use.between('m1', 0, NOW, NOW + 1000)).toBeCloseTo(0.7)
    use.keep(new Set(['m2']))
    expect(use.has('m1')).toBe(false)
  })

  it('of an engine are what the console saw, from the first poll on', () => {
    const seen = new HoldHistory()
    const node = (devices: PackedHost['devices'], jobs: readonly number[]): PackedHost => ({
      ...{
        name: 'n1',
        cpuMilli: 1,
        cpuUsedMilli: 0,
        memoryBytes: 1,
        memoryUsedBytes: 0,
        holdings: [],
        strandedMilli: 0,
      },
      ...{ devices, jobs },
    })
    seen.see([node([[{ job: 5, milli: 1000 }]], [5])], NOW - 60_000)
    seen.see([node([[{ job: 5, milli: 1000 }]], [5])], NOW - 40_000)
    seen.see([node([[]], [])], NOW - 20_000)
    expect(seen.sinceMs).toBe(NOW - 60_000)
    expect(seen.holds).toEqual([{ job: 5, host: 'n1', devices: [0], fromMs: NOW - 60_000, toMs: NOW - 20_000 }])
    seen.see([node([[]], [])], NOW + 2 * HISTORY_MS)
    expect(seen.holds).toEqual([])
  })
})
