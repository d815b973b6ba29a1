/** `muster job ranks` of a gang that has ended, whose files are on this machine. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { bundleKey } from '../../../../src/scheduler/jobs/orders.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-job-ranks-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { here: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

const jobs = () => join(directory, '.local/state/muster/jobs')

const muster = (...args: readonly string[]) =>
  runMuster(['job', ...args], {
    directory,
    environment: { HOME: directory, PATH: process.env.PATH, SHELL: '/bin/sh' },
    now: () => 1000,
  })

/** Job 1, whose two bundles have ended; each wrote what is given. */
async function endedGang(texts: readonly string[]): Promise<readonly string[]> {
  await muster('submit', '--bundles', String(texts.length), '--', 'true')
  using store = new JobStore(join(jobs(), 'lab.db'))
  const lease = store.lease.take('test', 1000, 10_000)
  const places = texts.map(() => ({ host: 'here', devices: [] }))
  const apply = (event: Parameters<typeof applyEvent>[2]) => applyEvent(store, 1, event, 2000, lease)
  apply({ kind: 'placed', places })
  for (const rank of texts.keys()) apply({ kind: 'seen', rank, bundle: { kind: 'begun', beganMs: 1000 } })
  for (const rank of texts.keys())
    apply({
      kind: 'seen',
      rank,
      bundle: { kind: 'ended', end: { kind: 'exit', code: 0 }, beganMs: 1000, ranMs: 500 },
    })
  const job = store.get(1)
  if (job === undefined) throw new Error('there is no job 1')
  return texts.map((text, rank) => {
    const place = join(jobs(), bundleKey(store.id, job, rank))
    mkdirSync(place, { recursive: true })
    // The number of a process that runs: this one.
    writeFileSync(join(place, 'id'), `${process.pid} boot 1 1\n`)
    writeFileSync(join(place, 'out'), text)
    writeFileSync(join(place, 'err'), '')
    return place
  })
}

it('shows the last step and line of a gang that has ended, and no process that has its number now', async () => {
  await endedGang(['step 7\nsaved\n', 'step 8\n'])
  const shown = await muster('ranks', '1')
  expect(shown).toMatchObject({ exitCode: 0, messages: '' })
  expect(shown.output).toBe(
    'RANK\tHOST\tSTATE\tRESTART\tSTEP\tQUIET\tLAST LINE\n0\there\tdone\t\t7\t\tsaved\n1\there\tdone\t\t8\t\tstep 8\n',
  )
  const [line = ''] = (await muster('ranks', '1', '--json')).output.split('\n')
  expect(JSON.parse(line)).toMatchObject({ rank: 0, state: 'done', step: 7, line: 'saved', bytes: 13, process: null })
})

it('says that the files of a gang were deleted', async () => {
  const [first = ''] = await endedGang(['step 7\n', 'step 8\n'])
  rmSync(first, { recursive: true })
  const some = await muster('ranks', '1')
  expect(some).toMatchObject({ exitCode: 0, messages: 'muster: no output of job 1 on here: its files were deleted\n' })
  expect(some.output).toContain('0\there\tdone\t\t\t\t\n1\there\tdone\t\t8\t\tstep 8\n')
})

it('names a host that hosts.yaml no longer has', async () => {
  await endedGang(['step 7\n'])
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { other: { transport: local } }\n')
  const shown = await muster('ranks', '1')
  expect([shown.exitCode, shown.messages]).toEqual([0, 'muster: here: no longer in hosts.yaml\n'])
  expect(shown.output).toContain('0\there\tdone\t\t\t\t\n')
})
