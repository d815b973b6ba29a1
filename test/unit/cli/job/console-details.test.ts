/** What the console shows of one job. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { openConsoleQueue } from '../../../../src/cli/job/console-queue.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-details-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { m1: {}, m2: {}, m3: {} }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

it('reads the output of the bundle that failed first, and says whose it is', async () => {
  await runMuster(['job', 'submit', '--bundles', '3', '--', 'train'], { directory })
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  const lease = store.lease.take('test', 1000, 10_000)
  if (lease === undefined) throw new Error('another scheduler runs')
  const context = {
    environment: { HOME: directory },
    workingDirectory: directory,
    signal: new AbortController().signal,
    now: Date.now,
    stdin: new PassThrough(),
    stdout: new PassThrough(),
    stderr: new PassThrough(),
  }
  using queue = await openConsoleQueue({ hosts: join(directory, 'hosts.yaml') }, context)
  const places = ['m1', 'm2', 'm3'].map((host) => ({ host, devices: [] }))
  applyEvent(store, 1, { kind: 'placed', places }, 1000, lease)
  expect(queue.details(1)?.log).toMatchObject({ host: 'm1', whose: 'rank 0 on m1' })
  for (const [rank, code] of [3, 143, 143].entries()) {
    const bundle = { kind: 'ended', end: { kind: 'exit', code }, beganMs: 1000, ranMs: code } as const
    applyEvent(store, 1, { kind: 'seen', rank: (rank + 1) % 3, bundle }, 2000, lease)
  }
  expect(queue.details(1)).toMatchObject({
    job: { state: { kind: 'failed' } },
    log: { host: 'm2', whose: 'rank 1 on m2', program: expect.stringContaining('-1-1-1 2>/dev/null || exit 4; ') },
  })
})
