/** What the console shows of one job. */

import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openConsoleQueue } from '../../../../src/cli/job/console-queue.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { parseWhatIf } from '../../../../src/ui/packing/what-if.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { bundleKeyOf } from '../../../support/bundle-key.ts'
import { contextIn, runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-details-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { m1: {}, m2: {}, m3: {} }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

it('says of a damaged job or study each time why nothing can be read, and reads again once it is repaired', async () => {
  await runMuster(['job', 'submit', '--', 'train'], { directory })
  await runMuster(['study', 'create', 'wf', '--param', 'lr=1,2', '--metric', 'loss', '--', 'train'], { directory })
  const file = new DatabaseSync(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  using queue = await openConsoleQueue({ hosts: join(directory, 'hosts.yaml') }, contextIn(directory))
  for (const [text, title] of [
    ['jobs SET state', 'job 1 in the queue'],
    ['study SET spec', 'study wf in the queue'],
  ] as const)
    for (const broken of ['{', '[]']) {
      const [table, column] = text.split(' SET ') as [string, string]
      const whole = file.prepare(`SELECT ${column} AS text FROM ${table}`).get()?.text ?? null
      const set = file.prepare(`UPDATE ${text} = ?`)
      set.run(broken)
      for (let time = 0; time < 3; time += 1) expect(() => queue.read()).toThrow(title)
      set.run(whole)
      expect(queue.read()?.groups).toHaveLength(2)
      expect(queue.read()).toBeUndefined()
    }
  file.close()
})

it('reads the output of the bundle that failed first, and says whose it is', async () => {
  await runMuster(['job', 'submit', '--bundles', '3', '--', 'train'], { directory })
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  using queue = await openConsoleQueue({ hosts: join(directory, 'hosts.yaml') }, contextIn(directory))
  const places = ['m1', 'm2', 'm3'].map((host) => ({ host, devices: [] }))
  applyEvent(store, 1, { kind: 'placed', places }, 1000, lease)
  expect(queue.details(1)?.log).toMatchObject({ host: 'm1', whose: 'rank 0 on m1' })
  for (const [rank, code] of [3, 143, 143].entries()) {
    const bundle = { kind: 'ended', end: { kind: 'exit', code }, beganMs: 1000, ranMs: code } as const
    applyEvent(store, 1, { kind: 'seen', rank: (rank + 1) % 3, bundle }, 2000, lease)
  }
  expect(queue.details(1)).toMatchObject({
    job: { state: { kind: 'failed' } },
    log: {
      host: 'm2',
      whose: 'rank 1 on m2',
      program: expect.stringContaining(`${bundleKeyOf(store, 1, { rank: 1 })} 2>/dev/null || exit 4; `),
    },
  })
})

it('shows in the line by hand no value of --env, which may be a secret', async () => {
  const env = ['--env', 'DB_PASSWORD=hunter2']
  await runMuster(['launch', 'torchrun', '--detach', '--bundles', '2', ...env, '--', 'train.py'], { directory })
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  const places = ['m1', 'm2'].map((host) => ({ host, devices: [] }))
  applyEvent(store, 1, { kind: 'placed', places }, 1000)
  const { output } = await runMuster(['job', 'show', '1'], { directory })
  expect(output).toContain('DB_PASSWORD=')
  expect(output).not.toContain('hunter2')
})

it.each([
  ['accuracy 0.9', '5 warnings\n', 'accuracy 0.9\n5 warnings\n'],
  ['done\n', 'why\n', 'done\nwhy\n'],
  ['', 'why\n', 'why\n'],
  ['no end', '', 'no end'],
])('reads stderr on a line of its own after stdout: %j, %j', async (out, err, shown) => {
  await runMuster(['job', 'submit', '--', 'train'], { directory })
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  applyEvent(store, 1, { kind: 'placed', places: [{ host: 'm1', devices: [] }] }, 1000)
  using queue = await openConsoleQueue({ hosts: join(directory, 'hosts.yaml') }, contextIn(directory))
  const { log } = queue.details(1) ?? {}
  if (log === undefined || !('program' in log)) throw new Error('it has no log on a host')
  const place = join(directory, '.local/state/muster/jobs', bundleKeyOf(store, 1))
  mkdirSync(place, { recursive: true })
  writeFileSync(join(place, 'out'), out)
  writeFileSync(join(place, 'err'), err)
  expect(execFileSync('sh', ['-c', log.program], { env: { ...process.env, HOME: directory }, encoding: 'utf8' })).toBe(
    shown,
  )
})

/** Ten hosts with a job on each one's only GPU. */
async function tenTaken() {
  const hosts = Array.from({ length: 10 }, (_, index) => `m${index}`)
  const declared = hosts.map((host) => `${host}: { resources: { cpu: 4, gpu: 1, memory: 8GiB } }`)
  writeFileSync(join(directory, 'hosts.yaml'), `cluster: lab\nhosts: { ${declared.join(', ')} }\n`)
  await runMuster(['job', 'submit', '--array', '0-9', '--gpu', '1', '--', 'train'], { directory })
  {
    using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
    for (const [index, host] of hosts.entries())
      applyEvent(store, index + 1, { kind: 'placed', places: [{ host, devices: [0] }] }, Date.now())
  }
  const queue = await openConsoleQueue({ hosts: join(directory, 'hosts.yaml') }, contextIn(directory))
  const tryOut = (line: string, away: readonly string[]) => {
    const whatIf = parseWhatIf(line)
    if (typeof whatIf === 'string') throw new Error(whatIf)
    return queue.tryOut(whatIf, away)
  }
  return { hosts, tryOut, [Symbol.dispose]: () => queue[Symbol.dispose]() }
}

it('names in a what-if all jobs that would have to end', async () => {
  using queue = await tenTaken()
  const { victims = [] } = queue.tryOut('--bundles 10 --gpu 1 --strategy SPREAD', [])
  expect(victims.map(({ job }) => job).toSorted((one, other) => one - other)).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
})

it('places nothing in a what-if on hosts that are away', async () => {
  using queue = await tenTaken()
  const line = '--cpu 0 --memory 1GiB'
  expect(queue.tryOut(line, ['m0', 'm1']).places?.map(({ host }) => host)).toEqual(['m2'])
  expect(queue.tryOut(line, queue.hosts)).toMatchObject({
    places: undefined,
    why: [expect.stringContaining('m[0-9]')],
  })
})
