/** `muster job submit --needs` and `--storage`: what is stored, what is refused, and why such a job waits. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import type { EngineRoom } from '../../../../src/scheduler/jobs/engine.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { runMuster } from '../../../support/run-muster.ts'

const NOW = 1_000_000
let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-needs-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    `cluster: lab
hosts: { m1: { transport: local, resources: { cpu: 4, gpu: 2 } }, m2: { transport: local, resources: { gpu: 2 } } }
ray: { head: m1, workers: m2 }
nfs: [{ server: m1, path: /data, clients: m2, mount: /shared }]
`,
  )
})
afterEach(() => rmSync(directory, { recursive: true }))

const job = (...args: readonly string[]) => runMuster(['job', ...args], { directory, now: () => NOW })
const submit = (...args: readonly string[]) => job('submit', '--engine', 'ray', ...args, '--', 'true')
const openStore = () => new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))

/** As the scheduler reports it. */
function report(rooms: Record<string, EngineRoom>): void {
  using store = openStore()
  const lease = store.lease.take('here', NOW, 60_000, () => true)
  if (lease === undefined) throw new Error('there is another scheduler')
  store.writeReport({ atMs: NOW, hosts: [], down: {}, expectedS: {}, rooms }, lease)
}

test('stores what a job needs', async () => {
  expect((await submit('--needs', '4x{gpu:1,cpu:1}', '--storage', '/shared//results/')).output).toBe('1\n')
  using store = openStore()
  expect(store.get(1)?.spec).toMatchObject({
    engine: 'ray',
    needs: { bundles: [{ count: 4, amounts: { GPU: 1, CPU: 1 } }], strategy: 'PACK' },
    storage: '/shared/results',
  })
  expect(store.storages()).toEqual(['/shared/results'])
  const { output } = await job('show', '1')
  expect(output).toContain('requests:     1 CPU, needs 4 × {GPU 1, CPU 1} PACK\n')
  expect(output).toContain('storage:      /shared/results (nfs: m1:/data at /shared)\n')
  await submit('--storage', '/scratch')
  expect((await job('show', '2')).output).toContain('storage:      /scratch (not declared in nfs)\n')
})

test.each([
  [['job', 'submit', '--needs', '{gpu:1}'], '--needs can only be used with --engine ray'],
  [['job', 'submit', '--storage', '/shared'], '--storage can only be used with --engine ray or --launch'],
  [['job', 'submit', '--engine', 'ray', '--storage', 'results'], 'it must be the absolute path of a directory'],
  [['job', 'submit', '--engine', 'ray', '--storage', 's3://bucket'], 'it must be the absolute path of a directory'],
  [['job', 'submit', '--engine', 'ray', '--needs', '4 GPUs'], '--needs 4 GPUs: write it as 4x{gpu:1,cpu:1} PACK'],
  [
    ['job', 'submit', '--engine', 'ray', '--needs', '{gpu:1}', '--bundles', '2'],
    '--needs and --bundles cannot be used together',
  ],
])('refuses %j', async (args, words) => {
  const { exitCode, output, messages } = await runMuster([...args, '--', 'true'], { directory, now: () => NOW })
  expect([exitCode, output]).toEqual([2, ''])
  expect(messages).toContain(words)
})

test('refuses what the declared cluster can never hold; what is not declared may be enough', async () => {
  const { exitCode, messages } = await submit('--needs', '5x{gpu:1}')
  expect(exitCode).toBe(2)
  expect(messages).toContain(
    'can never be placed: Ray has no room for 5 × {GPU 1} PACK and {CPU 1} for the job itself, even when it is idle (m1 2 of 2 GPU, 4 of 4 CPU; m2 2 of 2 GPU, CPU unknown)',
  )
  expect((await submit('--needs', '{cpu:400,memory:1TiB,accelerator_type:A100:0.001}')).exitCode).toBe(0)
})

test('refuses what the cluster itself says that it can never hold', async () => {
  const total = { CPU: 4, GPU: 1 }
  report({ ray: { nodes: [{ host: 'm1', total, free: total }], taken: {} } })
  expect((await submit('--needs', '2x{gpu:1}')).messages).toContain('(m1 1 of 1 GPU, 4 of 4 CPU)')
})

test('shows why a job waits: no answer yet, no room, never, or only its turn', async () => {
  await submit('--needs', '2x{gpu:1}')
  const why = async () => JSON.parse((await job('show', '1', '--json')).output).why as string[]
  expect(await why()).toEqual([
    'no scheduler running. Run: muster job work',
    'needs 2 × {GPU 1} PACK; Ray has not said yet what is free',
  ])
  const total = { CPU: 4, GPU: 2 }
  const told = async (free: Record<string, number>, all = total) => {
    report({ ray: { nodes: [{ host: 'm1', total: all, free }], taken: {} } })
    return await why()
  }
  expect(await told({ CPU: 4, GPU: 1 })).toEqual([
    'Ray has no room for 2 × {GPU 1} PACK and {CPU 1} for the job itself: 1 of 2 bundles fits.',
    'Free: m1 1 of 2 GPU, 4 of 4 CPU.',
  ])
  expect(await told({ CPU: 4, GPU: 1 }, { CPU: 4, GPU: 1 })).toEqual([expect.stringMatching(/^can never be placed: /)])
  expect(await told(total)).toEqual([
    'Ray has room for it: it goes there at the next scheduling pass, unless jobs before it wait for room',
  ])
})

test('shows that a job may wait for the check of its directory', async () => {
  await submit('--storage', '/shared')
  using store = openStore()
  applyEvent(store, 1, { kind: 'placed', places: [{ host: '@ray', devices: [] }] }, NOW)
  expect((await job('show', '1')).output).toContain(
    'waiting for resources in Ray, or for the check of /shared on its hosts',
  )
})
