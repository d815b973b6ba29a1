/** Jobs with --storage: what holds them back, and what lets them go. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { EngineOrder, EngineReport, JobEngine, StorageProblem } from '../../../../src/scheduler/jobs/engine.ts'
import type { ActiveState, BundleState, Job, SeenBundle } from '../../../../src/scheduler/jobs/job.ts'
import { HostStorageGate, StorageGate } from '../../../../src/scheduler/jobs/storage-gate.ts'
import { worldSpec } from '../../../support/queue-world.ts'
import { testJob } from '../../../support/test-job.ts'

const start = (key: string, storage?: string): EngineOrder => ({
  kind: 'start',
  key,
  spec: worldSpec(storage === undefined ? {} : { storage }),
  priority: 0,
  environment: {},
})
const room = { nodes: ['m1', 'm2'].map((host) => ({ host, total: {}, free: {} })), taken: {} }

describe('a job with a directory of results', () => {
  let proofs: { path: string; nodes: readonly string[]; end(problems: readonly StorageProblem[]): Promise<void> }[]
  let gate: StorageGate
  let nowMs: number
  let wakes: number
  beforeEach(() => {
    proofs = []
    nowMs = 1000
    wakes = 0
    const engine: JobEngine = {
      name: 'ray',
      mostWaiting: 8,
      pollMs: { soon: 1, late: 1 },
      round: async () => ({ trouble: undefined, reports: new Map() }),
      proveStorage(path, nodes) {
        const { promise, resolve } = Promise.withResolvers<readonly StorageProblem[]>()
        const end = async (problems: readonly StorageProblem[]) => {
          resolve(problems)
          await promise
        }
        proofs.push({ path, nodes, end })
        return promise
      },
    }
    gate = new StorageGate({ engine, signal: new AbortController().signal, now: () => nowMs, onProved: () => wakes++ })
  })

  /** What goes to the engine, and what is told of the bundles, if the engine reports this. */
  const round = (orders: readonly EngineOrder[], reports: Record<string, EngineReport> = {}, trouble?: string) => {
    const sent = gate.replace(orders).map(({ kind, key }) => `${kind} ${key}`)
    const told = new Map(orders.map(({ key }): [string, EngineReport] => [key, reports[key] ?? 'forgotten']))
    const bundles = new Map([...told.keys()].map((key): [string, SeenBundle] => [key, { kind: 'sent' }]))
    gate.judge(orders, { trouble, reports: told, room, bundles })
    return { sent, bundles }
  }

  it('is handed over once the directory is proved on all nodes, others at once', async () => {
    const orders = [start('a', '/results'), start('b')]
    expect(gate.holdsAny(orders)).toBe(true)
    expect(round(orders)).toMatchObject({ sent: ['check a', 'start b'], bundles: new Map([['b', { kind: 'sent' }]]) })
    expect(round(orders).sent).toEqual(['check a', 'start b'])
    expect(proofs).toMatchObject([{ path: '/results', nodes: ['m1', 'm2'] }])
    await proofs[0]?.end([])
    expect(wakes).toBe(1)
    round(orders)
    expect(gate.holdsAny(orders)).toBe(false)
    expect(round(orders).sent).toEqual(['start a', 'start b'])
    // Another one of the same time needs no proof of its own.
    const more = [...orders, start('c', '/results')]
    expect(round(more).sent).toEqual(['start a', 'start b', 'check c'])
    expect(round(more).sent).toContain('start c')
    nowMs += 40_000
    round([start('d', '/results')])
    expect(proofs).toHaveLength(2)
  })

  it('ends with the names of the hosts that have another one, and is proved anew when it is submitted again', async () => {
    round([start('a', '/results')])
    await proofs[0]?.end([
      { words: 'm2: it differs', isUnsure: false },
      { words: 'm3: no answer', isUnsure: true },
    ])
    const { bundles } = round([start('a', '/results'), start('b', '/results')])
    expect(bundles.get('a')).toEqual({
      kind: 'ended',
      end: { kind: 'refused', reason: 'm2: it differs; m3: no answer' },
    })
    expect(bundles.get('b')).toBeUndefined()
    expect(proofs).toHaveLength(2)
    await proofs[1]?.end([])
    round([start('b', '/results')])
    expect(round([start('b', '/results')]).sent).toEqual(['start b'])
  })

  it('is queued again if hosts could only not be asked', async () => {
    round([start('a', '/results')])
    await proofs[0]?.end(Array.from({ length: 7 }, (_, index) => ({ words: `m${index}: down`, isUnsure: true })))
    expect(round([start('a', '/results')]).bundles.get('a')).toEqual({
      kind: 'ended',
      end: { kind: 'unable', reason: 'm0: down; m1: down; m2: down; m3: down; m4: down; and 2 more hosts' },
    })
  })

  it('is not held back if the engine has it, as after a restart of the scheduler', () => {
    const orders = [start('a', '/results')]
    expect(round(orders, { a: 'waiting' }).bundles.get('a')).toEqual({ kind: 'sent' })
    expect(proofs).toHaveLength(0)
    expect(round(orders).sent).toEqual(['start a'])
  })

  it('waits while the engine is in trouble', () => {
    expect(round([start('a', '/results')], {}, 'down').bundles.size).toBe(0)
    expect(proofs).toHaveLength(0)
  })
})

describe('a launched job with a directory of results', () => {
  const jobOf = (bundles: readonly BundleState[], kind: ActiveState['kind'] = 'starting'): Job => {
    const places = bundles.map((_, index) => ({ host: `m${index + 1}`, devices: [] }))
    const active = { places, bundles, startedMs: 1000 }
    const state: ActiveState =
      kind === 'ending' ? { ...active, kind, stop: undefined, sinceMs: 1000 } : { ...active, kind }
    return testJob({ storage: '/results', bundles: bundles.length }, { state })
  }
  const sent = jobOf([{ kind: 'sent' }, { kind: 'sent' }])
  let problems: readonly StorageProblem[]
  let asked: (readonly string[])[]
  let gate: HostStorageGate
  beforeEach(() => {
    asked = []
    problems = []
    const prove = async (_: string, hosts: readonly string[]) => {
      asked.push(hosts)
      return problems
    }
    const { signal } = new AbortController()
    gate = new HostStorageGate({ storeId: 'q', prove, signal, now: () => 1000, onProved: () => undefined })
  })

  it('waits for the proof of its hosts, and then begins', async () => {
    expect([...gate.judge([sent]).waiting]).toEqual([sent])
    await Promise.resolve()
    expect(gate.judge([sent])).toEqual({ waiting: new Set(), ends: new Map() })
    expect(asked).toEqual([['m1', 'm2']])
  })

  it.each([
    [{ words: 'm2: it differs', isUnsure: false }, 'refused'],
    [{ words: 'm2: no answer', isUnsure: true }, 'unable'],
  ])('ends by its first bundle: %o', async (problem, kind) => {
    problems = [problem]
    gate.judge([sent])
    await Promise.resolve()
    const { waiting, ends } = gate.judge([sent])
    expect(waiting.size).toBe(1)
    expect([...ends]).toEqual([['q-7-1-0', { host: 'm1', end: { kind, reason: problem.words } }]])
  })

  it('is not held back once a bundle has begun, or while it ends', () => {
    const begun = jobOf([{ kind: 'begun' }, { kind: 'sent' }])
    const ending = jobOf([{ kind: 'sent' }], 'ending')
    expect(gate.judge([begun, ending]).waiting.size).toBe(0)
    expect(asked).toEqual([])
  })
})
