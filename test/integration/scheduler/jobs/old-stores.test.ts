/** Queues that earlier versions wrote load for ever: a fixture for each version of the file. */
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'

const FIXTURES = join(import.meta.dirname, '..', '..', '..', 'fixtures', 'jobs')

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-old-store-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true })
})

function openFixture(name: string): JobStore {
  const path = join(directory, 'queue.db')
  const database = new DatabaseSync(path)
  database.exec(readFileSync(join(FIXTURES, name), 'utf8'))
  database.close()
  return new JobStore(path)
}

test('there is a fixture for the version that is written now', () => {
  using store = new JobStore(join(directory, 'new.db'))
  store.counts()
  const database = new DatabaseSync(join(directory, 'new.db'))
  const version = database.prepare('PRAGMA user_version').get()?.user_version
  database.close()
  expect(readdirSync(FIXTURES)).toContain(`version-${version}.sql`)
})

test('a queue of version 1 keeps every job and continues', () => {
  using store = openFixture('version-1.sql')
  expect(store.id).toBe('0123456789ab')
  expect(Object.fromEntries(store.counts())).toEqual({ done: 1, running: 1, failed: 1, held: 1, queued: 2, ending: 1 })
  expect(store.get(2)).toMatchObject({
    attempt: 2,
    failures: 1,
    spec: { environment: { A: '1', X: '1' }, estimateS: 60 },
  })
  expect(store.get(5)?.state).toEqual({ kind: 'queued', notBeforeMs: 5000, last: 'failed: exit 1' })
  expect(store.get(6)).toMatchObject({ user: 'bob', priority: 3, after: [2], spec: { strategy: 'STRICT_SPREAD' } })
  expect(store.active().map(({ id }) => id)).toEqual([2, 7])
  expect(store.groups(10).groups.map(({ first, count }) => [first, count])).toEqual([
    [6, 2],
    [1, 5],
  ])
  const lease = store.lease.take('new', 2000, 1000)
  const ended = { kind: 'ended', end: { kind: 'exit', code: 0 } } as const
  expect(applyEvent(store, 2, { kind: 'seen', rank: 0, bundle: ended }, 3000, lease)).toBe(true)
  expect(store.get(2)?.state.kind).toBe('done')
  expect(applyEvent(store, 4, { kind: 'release' }, 3000)).toBe(true)
  const spec = store.get(6)?.spec
  if (spec === undefined) throw new Error('job 6 is gone')
  const rest = { user: 'eve', priority: 0, isHeld: false, after: [], variants: [{}] }
  expect(store.submit({ spec, ...rest }, 1)).toEqual([8])
  expect(store.submit({ spec: { ...spec, metrics: [{ name: 'loss' }] }, ...rest }, 1)).toEqual([9])
  if (lease === undefined) throw new Error('somebody else drives')
  store.noteResults([{ job: 9, attempt: 1, values: { loss: '1' }, isFinal: false }], lease)
  expect([2, 9].map((id) => store.results.of(id))).toEqual([{}, { loss: '1' }])
  expect(store.results.unread()).toEqual([])
})
