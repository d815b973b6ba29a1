import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Job, JobEvent, JobSpec } from '../../../../src/scheduler/jobs/job.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { alikeOf } from '../../../../src/scheduler/jobs/waiting-lines.ts'
import { applyEvent } from '../../../support/apply-event.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const spec = (cpuMilli: number, rest: Partial<JobSpec> = {}): JobSpec => ({
  name: '',
  command: 'true',
  environment: {},
  request: { cpuMilli, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
  bundles: 1,
  strategy: 'PACK',
  retries: 3,
  isPreemptible: false,
  ...rest,
})
const submit = (store: JobStore, own: JobSpec, count = 1, after: readonly number[] = [], priority = 0) =>
  store.submit(
    { spec: own, user: 'ann', priority, isHeld: false, after, variants: Array.from({ length: count }, () => ({})) },
    0,
  )
const linesOf = (store: JobStore, nowMs: number): readonly (readonly Job[])[] =>
  store.waiting(nowMs).map((line) => {
    const jobs: Job[] = []
    for (let job = line.at(0); job !== undefined; job = line.at(jobs.length)) jobs.push(job)
    return jobs
  })
const places = [{ host: 'a', devices: [] }]
const ended = (code: number): JobEvent => ({
  kind: 'seen',
  rank: 0,
  bundle: { kind: 'ended', end: { kind: 'exit', code } },
})

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-lines-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true })
})
const open = () => new JobStore(join(directory, 'queue.db'))

describe('the lines of waiting jobs', () => {
  test('hold jobs that are placed alike, apart by request, user and priority but not by command', () => {
    using store = open()
    store.submitAll(
      [1, 2, 3].map((index) => ({
        spec: spec(1000, { name: `n${index}`, command: `run ${index}`, environment: { A: `${index}` } }),
        user: 'ann',
        priority: 0,
        isHeld: false,
        after: [],
        variants: [{}],
      })),
      0,
    )
    submit(store, spec(2000))
    submit(store, spec(1000), 1, [], 5)
    submit(store, spec(1000, { estimateS: 60 }))
    submit(store, spec(1000, { engine: 'ray' }))
    const ids = linesOf(store, 0).map((jobs) => jobs.map(({ id }) => id))
    expect(ids.toSorted((one, other) => (one[0] ?? 0) - (other[0] ?? 0))).toEqual([[1, 2, 3], [4], [5], [6], [7]])
  })

  test('are read only as far as needed', () => {
    using store = open()
    submit(store, spec(1000), 5000)
    const [line] = store.waiting(0)
    expect([line?.at(0)?.id, line?.at(3000)?.id, line?.at(4999)?.id, line?.at(5000)]).toEqual([
      1,
      3001,
      5000,
      undefined,
    ])
  })

  test('include jobs that an older version submitted', () => {
    using store = open()
    submit(store, spec(1000), 2)
    submit(store, spec(2000))
    store.file.run('UPDATE jobs SET alike = NULL')
    submit(store, spec(1000))
    expect(
      linesOf(store, 0)
        .map((jobs) => jobs.length)
        .sort(),
    ).toEqual([1, 3])
    expect(store.file.one('SELECT alike FROM jobs WHERE id = 1')).toEqual({ alike: alikeOf(spec(1000)) })
  })

  test('hold exactly the jobs that may begin after any changes by this and another program', () => {
    const anyAction = fc.oneof(
      fc.record({
        kind: fc.constant('submit' as const),
        cpu: fc.integer({ min: 1, max: 3 }),
        count: fc.integer({ min: 1, max: 9 }),
        after: fc.option(fc.nat(30), { nil: undefined }),
        priority: fc.integer({ min: 0, max: 1 }),
      }),
      fc.record({ kind: fc.constant('apply' as const), id: fc.nat(40), event: fc.nat(7) }),
      fc.record({ kind: fc.constant('edit' as const), id: fc.nat(40), cpu: fc.integer({ min: 1, max: 3 }) }),
      fc.record({ kind: fc.constant('fail' as const), id: fc.nat(40) }),
      fc.record({ kind: fc.constant('wait' as const), ms: fc.integer({ min: 1, max: 3000 }) }),
    )
    const events: readonly JobEvent[] = [
      { kind: 'placed', places },
      ended(0),
      ended(1),
      { kind: 'stop', reason: 'cancelled' },
      { kind: 'stop', reason: 'preempted' },
      { kind: 'hold' },
      { kind: 'release' },
      { kind: 'retry' },
    ]
    let count = 0
    fc.assert(
      fc.property(fc.array(fc.tuple(anyAction, fc.boolean()), { maxLength: 40 }), (actions) => {
        const path = join(directory, `${count++}.db`)
        using own = new JobStore(path)
        using other = new JobStore(path)
        for (const store of [own, other]) store.file.all('PRAGMA synchronous = OFF')
        let nowMs = 0
        for (const [action, isOwn] of actions) {
          const store = isOwn ? own : other
          const known = (id: number) => store.get(id + 1) !== undefined
          if (action.kind === 'submit') {
            const after = action.after !== undefined && known(action.after) ? [action.after + 1] : []
            submit(store, spec(action.cpu * 1000), action.count, after, action.priority)
          } else if (action.kind === 'apply') applyEvent(store, action.id + 1, events[action.event] as JobEvent, nowMs)
          else if (action.kind === 'edit')
            store.editAll([action.id + 1], (job) => ({
              spec: { ...job.spec, ...spec(action.cpu * 1000) },
              priority: 0,
            }))
          else if (action.kind === 'wait') nowMs += action.ms
          else
            expect(() =>
              store.together(() => {
                submit(store, spec(9000), 3)
                applyEvent(store, action.id + 1, { kind: 'hold' }, nowMs)
                throw new Error('cut')
              }),
            ).toThrow('cut')
          const lines = linesOf(own, nowMs)
          using fresh = new JobStore(path)
          const expected = fresh.list(['queued'], 1000).filter(({ state, after }) => {
            const isDue = state.kind === 'queued' && (state.notBeforeMs ?? 0) <= nowMs
            return isDue && after.every((id) => fresh.get(id)?.state.kind === 'done')
          })
          const byId = (one: Job, next: Job) => one.id - next.id
          expect(lines.flat().toSorted(byId)).toEqual(expected.toSorted(byId))
          for (const jobs of lines) {
            expect(jobs.length).toBeGreaterThan(0)
            expect(new Set(jobs.map((job) => `${alikeOf(job.spec)} ${job.user} ${job.priority}`)).size).toBe(1)
          }
        }
      }),
      { numRuns: randomRuns(25) },
    )
  })
})
