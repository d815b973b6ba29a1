import { spawnSync } from 'node:child_process'
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Job, JobSpec } from '../../../../src/scheduler/jobs/job.ts'
import { ownName } from '../../../../src/scheduler/jobs/queue-file.ts'
import { JobStore, type Submission } from '../../../../src/scheduler/jobs/store.ts'
import { applyEvent } from '../../../support/apply-event.ts'

const spec: JobSpec = {
  name: 'one',
  command: 'true',
  environment: { A: '1' },
  request: { cpuMilli: 1000, memoryBytes: 0, gpuCount: 0, gpuMilli: 0 },
  bundles: 1,
  strategy: 'PACK',
  retries: 0,
  isPreemptible: false,
}
const submission = (rest: Partial<Submission> = {}): Submission => ({
  spec,
  user: 'ann',
  priority: 0,
  isHeld: false,
  after: [],
  variants: [{}],
  ...rest,
})
/** Of all lines, each read to its end. */
const waitingIds = (store: JobStore, nowMs: number): readonly number[] =>
  store
    .waiting(nowMs)
    .flatMap((line) => {
      const ids: number[] = []
      for (let job = line.at(0); job !== undefined; job = line.at(ids.length)) ids.push(job.id)
      return ids
    })
    .sort((one, other) => one - other)
const places = [{ host: 'a', devices: [] }]
const done = { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 0 } } } as const

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-store-'))
})
afterEach(() => {
  rmSync(directory, { recursive: true })
})

const open = (name = 'queue.db') => new JobStore(join(directory, name))

test('names of each submission the first job that waits, in their order, and how many wait', () => {
  using store = open()
  const groups = (limit = 10) => store.queuedGroups(limit).map(({ first, last, count }) => [first, last, count])
  expect(groups()).toEqual([])
  const sixty = Array.from({ length: 60 }, () => ({}))
  store.submit(submission({ variants: sixty }), 5)
  store.submit(submission({ variants: sixty.slice(0, 20), priority: 2 }), 5)
  store.submit(submission(), 5)
  store.submit(submission({ variants: [{}, {}], priority: -1 }), 5)
  expect(groups()).toEqual([
    [61, 80, 20],
    [1, 60, 60],
    [81, 81, 1],
    [82, 83, 2],
  ])
  expect(groups(2)).toEqual([
    [61, 80, 20],
    [1, 60, 60],
  ])
  applyEvent(store, 1, { kind: 'stop', reason: 'cancelled' }, 6)
  applyEvent(store, 61, { kind: 'stop', reason: 'cancelled' }, 6)
  expect(groups().slice(0, 2)).toEqual([
    [62, 80, 19],
    [2, 60, 59],
  ])
})

describe('the queue on disk', () => {
  test('ignores copied directories whose names a shell could interpret', () => {
    using store = open()
    const copied = `${store.id}-copied-0123abcd`
    for (const name of [copied, `${store.id}-'; rm -rf ~; '`, `${store.id}-a\nb`])
      store.submit(submission({ spec: { ...spec, directory: `../${name}` } }), 5)
    expect(store.keptDirectories()).toEqual([copied])
  })

  test('keeps submitted jobs and their variables for the next program that opens it', () => {
    using store = open()
    const ids = store.submit(submission({ variants: [{ X: '1' }, { X: '2' }], priority: 3 }), 5)
    using other = open()
    expect(other.id).toBe(store.id)
    expect(ids.map((id) => other.get(id)?.spec.environment)).toEqual([
      { A: '1', X: '1' },
      { A: '1', X: '2' },
    ])
    expect(other.get(1)).toMatchObject({
      user: 'ann',
      priority: 3,
      submittedMs: 5,
      attempt: 1,
      state: { kind: 'queued' },
    })
    expect(other.get(99)).toBeUndefined()
  })

  test('caches active jobs correctly after its own changes, those of others and a rollback', () => {
    using store = open()
    using other = open()
    const [first = 0, second = 0, third = 0] = store.submit(submission({ variants: [{}, {}, {}] }), 5)
    const running = () => {
      using fresh = open()
      expect(store.active()).toEqual(fresh.active())
      expect(store.get(first)).toEqual(fresh.get(first))
      return store.active().map(({ id }) => id)
    }
    expect(running()).toEqual([])
    applyEvent(store, second, { kind: 'placed', places }, 6)
    applyEvent(store, first, { kind: 'placed', places }, 7)
    expect(running()).toEqual([first, second])
    applyEvent(other, third, { kind: 'placed', places }, 8)
    applyEvent(other, first, { kind: 'stop', reason: 'cancelled' }, 9)
    expect(running()).toEqual([first, second, third])
    const told: Job[] = []
    store.applyAll([{ id: second, event: done }], 10, { onChange: (job) => told.push(job) })
    expect(told).toEqual([store.get(second)])
    expect(running()).toEqual([first, third])
    expect(() =>
      store.together(() => {
        applyEvent(store, first, done, 11)
        throw new Error('cut')
      }),
    ).toThrow('cut')
    expect(running()).toEqual([first, third])
  })

  test('makes its files private, also where others could read them before', () => {
    const umask = process.umask(0)
    try {
      const kept = join(directory, 'jobs')
      const files = ['queue.db', 'queue.db-wal', 'queue.db-shm'].map((name) => join(kept, name))
      const modes = () => [kept, ...files].map((path) => (statSync(path).mode & 0o777).toString(8))
      using store = open('jobs/queue.db')
      store.submit(submission(), 0)
      expect(modes()).toEqual(['700', '600', '600', '600'])
      chmodSync(kept, 0o755)
      for (const file of files) chmodSync(file, 0o644)
      using other = open('jobs/queue.db')
      expect(other.get(1)?.user).toBe('ann')
      expect(modes()).toEqual(['700', '600', '600', '600'])
    } finally {
      process.umask(umask)
    }
  })

  test.each(['queue.db', 'queue.db-wal', 'queue.db-shm'])('refuses %s that other users could have written', (name) => {
    const file = join(directory, 'jobs', name)
    using store = open('jobs/queue.db')
    store.submit(submission(), 0)
    chmodSync(join(directory, 'jobs'), 0o755)
    chmodSync(file, 0o666)
    expect(() => open('jobs/queue.db')).toThrow(`${file} is not used: it can be changed by every user of this machine`)
    expect(statSync(file).mode & 0o777).toBe(0o666)
    chmodSync(file, 0o644)
    using other = open('jobs/queue.db')
    expect(other.get(1)?.user).toBe('ann')
  })

  test('lists waiting jobs by priority, then by age', () => {
    using store = open()
    store.submit(submission({ variants: [{}, {}] }), 0)
    store.submit(submission({ priority: 1 }), 0)
    store.submit(submission({ isHeld: true }), 0)
    expect(store.queued(10).map(({ id }) => id)).toEqual([3, 1, 2])
    expect(store.counts()).toEqual(
      new Map([
        ['held', 1],
        ['queued', 3],
      ]),
    )
  })

  test("gives the lease to another scheduler when the first is silent too long, and refuses the first one's writes", () => {
    using store = open()
    store.submit(submission(), 0)
    const first = store.lease.take('one', 0, 1000)
    expect(store.lease.take('other', 999, 1000)).toBeUndefined()
    expect(store.lease.owner(999)).toBe('one')
    if (first === undefined) throw new Error('no lease')
    store.lease.renew(first, 900, 1000)
    expect(store.lease.take('other', 1800, 1000)).toBeUndefined()
    const second = store.lease.take('other', 1900, 1000)
    expect(() => applyEvent(store, 1, { kind: 'placed', places }, 2000, first)).toThrow('another scheduler')
    expect(() => store.lease.renew(first, 2000, 1000)).toThrow('another scheduler')
    expect(store.get(1)?.state.kind).toBe('queued')
    expect(applyEvent(store, 1, { kind: 'placed', places }, 2000, second)).toBe(true)
    const third = store.lease.take('third', 2000, 1000, (owner) => owner === 'other')
    expect(third).toBeDefined()
    expect(store.lease.take('fourth', 2000, 1000, (owner) => owner === 'other')).toBeUndefined()
    store.lease.give(first)
    expect(store.lease.owner(2000)).toBe('third')
    // A lease from before the clock was set back by an hour holds up nobody for an hour.
    const hourBack = 2000 - 3_600_000
    expect(store.lease.owner(hourBack)).toBeUndefined()
    expect(store.lease.take('after it was set', hourBack, 1000)).toBeDefined()
  })

  test('names no scheduler of this machine that has ended without giving the lease back', () => {
    using store = open()
    store.lease.take(ownName(), 0, 1000)
    expect(store.lease.owner(999)).toBe(ownName().replace(/, process (.*)/, ' (pid $1)'))
    const { pid } = spawnSync('true')
    store.lease.take(ownName().replace(/\d+$/, String(pid)), 1000, 1000)
    expect(store.lease.owner(1500)).toBeUndefined()
    store.lease.take(`root@another-machine, process ${pid}`, 2000, 1000)
    expect(store.lease.owner(2500)).toBe(`root@another-machine (pid ${pid})`)
  })

  test('loses nothing when a scheduler and a person change the same job', () => {
    using driver = open()
    using person = open()
    driver.submit(submission(), 0)
    applyEvent(driver, 1, { kind: 'placed', places }, 1)
    expect(applyEvent(person, 1, { kind: 'stop', reason: 'cancelled' }, 2)).toBe(true)
    expect(applyEvent(driver, 1, { kind: 'seen', rank: 0, bundle: { kind: 'begun' } }, 3)).toBe(true)
    expect(person.get(1)?.state.kind).toBe('ending')
    expect(applyEvent(driver, 1, done, 4)).toBe(true)
    expect(person.get(1)?.state.kind).toBe('cancelled')
    expect(applyEvent(person, 1, { kind: 'hold' }, 5)).toBe(false)
    expect(applyEvent(person, 5, { kind: 'hold' }, 5)).toBeUndefined()
  })

  test('cancels jobs that wait for a job that was never done', () => {
    using store = open()
    store.submit(submission(), 0)
    store.submit(submission({ after: [1] }), 0)
    expect(() => store.submit(submission({ after: [9] }), 0)).toThrow('no job 9')
    const lease = store.lease.take('one', 0, 1000)
    if (lease === undefined) throw new Error('no lease')
    expect(store.cancelOrphans(1, lease)).toBe(0)
    applyEvent(store, 1, { kind: 'stop', reason: 'cancelled' }, 1)
    store.cancelOrphans(1, lease)
    expect(store.get(2)?.state.kind).toBe('cancelled')
  })

  test('groups jobs by submission, latest first', () => {
    using store = open()
    store.submit(submission({ variants: [{}, {}, {}] }), 0)
    store.submit(submission(), 0)
    store.applyAll(
      [2, 4].map((id) => ({ id, event: { kind: 'stop', reason: 'cancelled' } })),
      1,
    )
    const groups = store.groups(10).groups
    expect(groups.map(({ first, count, counts }) => [first, count, Object.fromEntries(counts)])).toEqual([
      [4, 1, { cancelled: 1 }],
      [1, 3, { queued: 2, cancelled: 1 }],
    ])
    const spec = groups[1]?.spec ?? 0
    expect(store.idsOf(spec, [])).toEqual([1, 2, 3])
    expect(store.idsOf(spec, ['queued'])).toEqual([1, 3])
    // What waits or runs is named however old it is, and that older ones are not.
    const firsts = () => {
      const { groups: latest, isCut } = store.groups(1)
      return [latest.map(({ first }) => first), isCut]
    }
    expect(firsts()).toEqual([[4, 1], false])
    applyEvent(store, 1, { kind: 'placed', places }, 1)
    applyEvent(store, 3, { kind: 'stop', reason: 'cancelled' }, 1)
    expect(firsts()).toEqual([[4, 1], false])
    store.submit(submission(), 0)
    // Of the last to end, too.
    expect(firsts()).toEqual([[5, 4, 1], false])
    store.submit(submission({ isHeld: true }), 0)
    store.submit(submission(), 0)
    expect(firsts()).toEqual([[7, 6, 5, 4, 1], false])
    applyEvent(store, 1, { kind: 'stop', reason: 'cancelled' }, 2)
    applyEvent(store, 5, { kind: 'stop', reason: 'cancelled' }, 3)
    expect(firsts()).toEqual([[7, 6, 5, 1], true])
  })

  test('counts the last to end among the latest, however low their numbers are', () => {
    using store = open()
    store.submitAll([submission(), submission(), submission(), submission()], 0)
    for (const [index, id] of [2, 3, 4, 1].entries())
      applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, 100 + index)
    const listed = (kinds: readonly string[], most: number) => store.listWhole(kinds, most).found.map(({ id }) => id)
    expect([listed([], 0), listed([], 1), listed([], 2)]).toEqual([[], [1], [4, 1]])
    expect(listed(['cancelled'], 3)).toEqual([4, 3, 1])
    expect(listed(['failed'], 3)).toEqual([])
    expect(store.groups(1).groups.map(({ first }) => first)).toEqual([4, 1])
    const [, , spec] = store.groups(9).groups.map((group) => group.spec)
    expect(store.groups(1, spec).groups.map(({ first }) => first)).toEqual([4, 2, 1])
  })

  test('lists the last jobs that failed, however many ended after them', () => {
    using store = open()
    store.submitAll(
      Array.from({ length: 6 }, () => submission({})),
      0,
    )
    const fail = { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 1 } } } as const
    for (const id of [1, 2, 3]) {
      for (const event of [
        { kind: 'placed', places },
        { kind: 'seen', rank: 0, bundle: { kind: 'begun' } },
      ] as const)
        applyEvent(store, id, event, id)
      applyEvent(store, id, id < 3 ? fail : done, 10 + id)
    }
    for (const id of [4, 5, 6]) applyEvent(store, id, { kind: 'stop', reason: 'cancelled' }, 100 + id)
    expect(store.get(2)?.state.kind).toBe('failed')
    expect(store.groups(1).groups.map(({ first }) => first)).toEqual([6, 2])
  })

  test('says when and where the jobs of an array ran', () => {
    using store = open()
    store.submit(submission({ variants: [{}, {}, {}] }), 0)
    const spec = store.groups(1).groups[0]?.spec ?? 0
    expect(store.extentOf(spec)).toEqual({ startedMs: undefined, endedMs: undefined, hosts: [] })
    for (const [id, host, startMs, endMs] of [
      [1, 'n2', 100, 300],
      [2, 'n1', 200, 900],
    ] as const) {
      applyEvent(store, id, { kind: 'placed', places: [{ host, devices: [] }] }, startMs)
      applyEvent(store, id, { kind: 'seen', rank: 0, bundle: { kind: 'begun' } }, startMs)
      applyEvent(store, id, { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 0 } } }, endMs)
    }
    expect(store.extentOf(spec)).toEqual({ startedMs: 100, endedMs: 900, hosts: ['n2', 'n1'] })
  })

  test('takes many submissions in one call, all or none', () => {
    using store = open()
    expect(store.submitAll([submission(), submission({ variants: [{}, {}] })], 0)).toEqual([[1], [2, 3]])
    expect(() => store.submitAll([submission(), submission({ after: [99] })], 0)).toThrow('no job 99')
    expect(store.counts()).toEqual(new Map([['queued', 3]]))
    expect(store.queued(10)).toHaveLength(3)
  })

  test('caches waiting jobs correctly after writes of this and other programs', () => {
    using store = open()
    using other = open()
    const ids = () => waitingIds(store, 0)
    store.submit(submission({ variants: Array.from({ length: 6 }, () => ({})) }), 0)
    expect(ids()).toEqual([1, 2, 3, 4, 5, 6])
    applyEvent(store, 1, { kind: 'placed', places }, 1)
    expect(ids()).toEqual([2, 3, 4, 5, 6])
    expect(store.active().map(({ id }) => id)).toEqual([1])
    applyEvent(other, 2, { kind: 'hold' }, 1)
    expect(ids()).toEqual([3, 4, 5, 6])
    expect(() =>
      store.together(() => {
        applyEvent(store, 3, { kind: 'hold' }, 1)
        throw new Error('not after all')
      }),
    ).toThrow('not after all')
    expect(ids()).toEqual([3, 4, 5, 6])
    store.applyAll(
      [3, 4, 5].map((id) => ({ id, event: { kind: 'hold' } })),
      2,
    )
    expect(ids()).toEqual([6])
    applyEvent(store, 3, { kind: 'release' }, 3)
    expect(ids()).toEqual([3, 6])
    store.submit(submission({ priority: 9, after: [1] }), 3)
    expect(ids()).toEqual([3, 6])
    applyEvent(store, 1, done, 4)
    expect(ids()).toEqual([3, 6, 7])
  })

  test('deletes old records on request, except those that others wait for, and never reuses numbers', () => {
    using store = open()
    store.submit(submission({ variants: [{}, {}, {}] }), 0)
    store.submit(submission({ spec: { ...spec, metrics: [{ name: 'loss' }] } }), 0)
    store.submit(submission({ after: [2], isHeld: true }), 0)
    for (const [id, atMs] of [
      [1, 10],
      [2, 20],
      [3, 5000],
      [4, 30],
    ] as const) {
      applyEvent(store, id, { kind: 'placed', places }, 1)
      applyEvent(store, id, done, atMs)
    }
    expect(store.countForgettable(1000)).toBe(2)
    expect([store.forgetEnded(1000, 1), store.forgetEnded(1000, 9), store.forgetEnded(1000, 9)]).toEqual([1, 1, 0])
    expect(store.list([], 10).map(({ id }) => id)).toEqual([5, 3, 2])
    expect(store.file.all('SELECT job FROM results')).toEqual([])
    expect(store.counts()).toEqual(
      new Map([
        ['done', 2],
        ['held', 1],
      ]),
    )
    const last = store.groupOf(5)
    applyEvent(store, 5, { kind: 'stop', reason: 'cancelled' }, 40)
    expect(store.forgetEnded(1_000_000, 9)).toBe(3)
    expect(store.submit(submission(), 0)).toEqual([6])
    expect(store.groupOf(6)).toBeGreaterThan(Number(last))
    expect(store.get(6)?.spec.name).toBe('one')
  })

  test('counts jobs by kind correctly, also after writes of a version that does not count', () => {
    using store = open()
    using other = open()
    store.submit(submission({ variants: Array.from({ length: 9 }, () => ({})) }), 0)
    applyEvent(other, 1, { kind: 'hold' }, 1)
    applyEvent(store, 2, { kind: 'placed', places }, 1)
    applyEvent(other, 2, done, 2)
    expect(() =>
      store.together(() => {
        applyEvent(store, 3, { kind: 'hold' }, 1)
        throw new Error('cut')
      }),
    ).toThrow('cut')
    store.file.run("UPDATE jobs SET kind = 'lost' WHERE id = 9")
    store.file.run('DELETE FROM jobs WHERE id = 8')
    const counted = store.file.all('SELECT kind, count(*) AS count FROM jobs GROUP BY kind')
    expect(store.counts()).toEqual(new Map(counted.map(({ kind, count }) => [String(kind), Number(count)])))
    expect(Object.fromEntries(store.counts())).toEqual({ held: 1, done: 1, lost: 1, queued: 5 })
  })

  test('keeps the same object for an active job that others did not change', () => {
    using store = open()
    using other = open()
    store.submit(submission({ variants: [{}, {}] }), 0)
    other.applyAll(
      [1, 2].map((id) => ({ id, event: { kind: 'placed', places } })),
      1,
    )
    const before = store.active()
    applyEvent(other, 1, { kind: 'stop', reason: 'cancelled' }, 2)
    const after = store.active()
    expect(after[1]).toBe(before[1])
    expect(after.map(({ state }) => state.kind)).toEqual(['ending', 'starting'])
  })

  test('edits waiting jobs with their variables, and no running ones', () => {
    using store = open()
    store.submit(submission({ variants: [{ X: '1' }, { X: '2' }] }), 0)
    applyEvent(store, 1, { kind: 'placed', places }, 1)
    const change = (job: Job) => ({ spec: { ...job.spec, estimateS: 60 }, priority: 5 })
    expect(store.editAll([1, 2, 9], change)).toEqual([false, true, undefined])
    expect(store.get(2)).toMatchObject({ priority: 5, spec: { estimateS: 60, environment: { A: '1', X: '2' } } })
    expect(store.get(1)).toMatchObject({ priority: 0, spec: { environment: { A: '1', X: '1' } } })
  })

  test('edited jobs stay in their submission, with their own variables', () => {
    using store = open()
    store.submit(submission({ variants: [{ X: '1' }, { X: '2' }, { X: '3' }] }), 0)
    store.submit(submission(), 0)
    const [, before] = store.groups(10).groups
    store.editAll([1, 2, 3], ({ spec }) => ({ spec, priority: 4 }))
    expect(store.groups(10).groups[1]).toEqual(before)
    store.editAll([2, 3], ({ spec, priority }) => ({ spec: { ...spec, name: 'two' }, priority }))
    store.editAll([3], ({ spec, priority }) => ({ spec: { ...spec, name: 'three' }, priority }))
    expect(store.groups(10).groups.map(({ first, count, isMixed }) => [first, count, isMixed])).toEqual([
      [1, 3, true],
      [4, 1, undefined],
    ])
    expect(store.idsOf(store.groupOf(3) ?? 0, [])).toEqual([1, 2, 3])
    const { rows } = store.results.sweep(store.groupOf(2) ?? 0, spec)
    expect(rows.map(({ parameters }) => parameters)).toEqual([{ X: '1' }, { X: '2' }, { X: '3' }])
    expect([1, 2, 3].map((id) => store.get(id)?.spec.name)).toEqual(['one', 'two', 'three'])
  })

  test('counts what users consumed by size and time, fading by age', () => {
    using store = open()
    store.submit(submission(), 0)
    store.submit(submission({ user: 'bob', spec: { ...spec, bundles: 2 } }), 0)
    const day = 86_400_000
    for (const id of [1, 2]) {
      applyEvent(store, id, { kind: 'placed', places: id === 1 ? places : [...places, ...places] }, 0)
      applyEvent(store, id, { kind: 'forget', hosts: places.map(({ host }) => host) }, 10_000)
    }
    expect(Object.fromEntries(store.accounting.usage(store.active(), 10_000))).toEqual({ ann: 10_000, bob: 20_000 })
    expect(store.accounting.usage(store.active(), 10_000 + day).get('ann')).toBe(5000)
    store.submit(submission({ user: 'eve' }), 0)
    applyEvent(store, 3, { kind: 'placed', places }, 20_000)
    expect(store.accounting.usage(store.active(), 21_000).get('eve')).toBe(1000)
    // One that waits in its engine holds nothing.
    store.submit(submission({ user: 'kim', spec: { ...spec, engine: 'slurm' } }), 0)
    applyEvent(store, 4, { kind: 'placed', places: [{ host: '@slurm', devices: [] }] }, 0)
    expect(store.accounting.usage(store.active(), 21_000).get('kim')).toBeUndefined()
    applyEvent(store, 4, { kind: 'stop', reason: 'cancelled' }, 20_000)
    applyEvent(
      store,
      4,
      { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'gone', reason: 'x' } } },
      21_000,
    )
    expect(store.accounting.usage(store.active(), 21_000).get('kim')).toBeUndefined()
  })

  test('says what to do on every call when the file was damaged later', () => {
    {
      using store = open()
      store.submit(submission({ variants: Array.from({ length: 2000 }, () => ({ X: 'x'.repeat(50) })) }), 0)
    }
    const file = join(directory, 'queue.db')
    const bytes = readFileSync(file)
    bytes.fill(0x5a, 12 * 4096, bytes.length - 4096)
    writeFileSync(file, bytes)
    const ask = () => {
      using store = open()
      store.list([], 5000)
    }
    expect(ask).toThrow(
      expect.objectContaining({ code: 'configuration', hint: expect.stringContaining('Move it and its -wal') }),
    )
  })

  test('finds a damaged page before a scheduler starts', () => {
    const file = join(directory, 'queue.db')
    {
      using store = open()
      store.submit(submission({ variants: Array.from({ length: 2000 }, () => ({ X: 'x'.repeat(50) })) }), 0)
      store.file.checkWhole()
    }
    const bytes = readFileSync(file)
    bytes.fill(0x5a, 12 * 4096, 13 * 4096)
    writeFileSync(file, bytes)
    using store = open()
    expect(() => store.file.checkWhole()).toThrow(
      expect.objectContaining({ code: 'configuration', hint: expect.stringContaining('Move it and its -wal') }),
    )
    expect(readFileSync(file)).toEqual(bytes)
  })

  test('reports a truncated file as damaged and leaves it alone', () => {
    const file = join(directory, 'queue.db')
    {
      using store = open()
      store.submit(submission({ variants: Array.from({ length: 500 }, () => ({ X: 'x'.repeat(50) })) }), 0)
    }
    const cut = readFileSync(file).subarray(0, 20_000)
    writeFileSync(file, cut)
    expect(() => open()).toThrow(expect.objectContaining({ hint: expect.stringContaining('Move it and its -wal') }))
    expect(readFileSync(file)).toEqual(cut)
  })

  test("leaves another program's database alone", () => {
    const file = join(directory, 'queue.db')
    const other = new DatabaseSync(file)
    other.exec('CREATE TABLE notes (text)')
    other.close()
    expect(() => open()).toThrow(/another program's database/)
    const again = new DatabaseSync(file)
    expect(again.prepare('SELECT name FROM sqlite_master').all()).toEqual([{ name: 'notes' }])
    again.close()
  })

  test('names the directory when it cannot be made', () => {
    writeFileSync(join(directory, 'file'), '')
    expect(() => open('file/queue.db')).toThrow(
      expect.objectContaining({ hint: expect.stringContaining('owner, mode and mount of its directory') }),
    )
  })

  test('reports a file that other programs keep locked', () => {
    using store = open()
    using impatient = new JobStore(join(directory, 'queue.db'), 20)
    store.together(() => {
      expect(() => impatient.submit(submission(), 0)).toThrow(
        expect.objectContaining({ hint: expect.stringContaining('Another program') }),
      )
      expect(impatient.list([], 10)).toEqual([])
      // To open and to read is possible all the same.
      using third = new JobStore(join(directory, 'queue.db'), 20)
      expect(third.counts().size).toBe(0)
    })
  })

  test('leaves other files and queues of newer versions alone', () => {
    writeFileSync(join(directory, 'queue.db'), 'This is no database, and long enough to be looked at. '.repeat(40))
    expect(() => open()).toThrow(/cannot be used/)
    expect(readFileSync(join(directory, 'queue.db'), 'utf8')).toContain('no database')
  })

  test('recovers to a moment between two calls when its log is cut at any byte', () => {
    using store = open()
    const sizes: number[] = []
    for (let count = 0; count < 6; count++) {
      store.submit(submission({ variants: [{}, {}, {}] }), count)
      sizes.push(readFileSync(join(directory, 'queue.db-wal')).length)
    }
    const log = readFileSync(join(directory, 'queue.db-wal'))
    for (let cut = sizes[0] as number; cut <= log.length; cut += 7919) {
      copyFileSync(join(directory, 'queue.db'), join(directory, 'cut.db'))
      writeFileSync(join(directory, 'cut.db-wal'), log.subarray(0, cut))
      const committed = sizes.filter((size) => size <= cut).length
      {
        using found = open('cut.db')
        expect(found.list([], 100)).toHaveLength(3 * committed)
        expect(found.submit(submission(), 9)).toEqual([3 * committed + 1])
      }
      for (const suffix of ['', '-wal', '-shm']) rmSync(join(directory, `cut.db${suffix}`), { force: true })
    }
  })
})
