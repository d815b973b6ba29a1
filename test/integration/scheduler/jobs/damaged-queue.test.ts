/** Queues that a crash or a person has damaged: refused with what to do, and left as they are. */
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import type { StudySpec } from '../../../../src/scheduler/study/study.ts'
import { worldSpec } from '../../../support/queue-world.ts'

let directory: string
let path: string
let log: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-damaged-'))
  path = join(directory, 'queue.db')
  log = `${path}-wal`
})
afterEach(() => rmSync(directory, { recursive: true }))

const SUBMISSION = {
  ...{ spec: worldSpec({ runS: 1 }), user: 'ann', priority: 0, isHeld: false, after: [] },
  variants: Array.from({ length: 300 }, () => ({ X: 'x'.repeat(50) })),
}

/** A queue as a scheduler that was killed leaves it: all of its jobs are in the log, or `isCopied` in the database. */
function leaveQueue(isCopied = false): void {
  const other = join(directory, 'other.db')
  if (isCopied) {
    using first = new JobStore(other)
    first.submit(SUBMISSION, 0)
  }
  using store = new JobStore(other)
  store.submit(SUBMISSION, 1)
  for (const end of ['', '-wal']) copyFileSync(`${other}${end}`, `${path}${end}`)
}

const filesOf = (): ReadonlyMap<string, Buffer> =>
  new Map(readdirSync(directory).map((name) => [name, readFileSync(join(directory, name))]))

/** Opens the queue, which is refused, and expects all files as they were. */
function refused(message: string, hint: string): void {
  const before = filesOf()
  expect(() => new JobStore(path)).toThrow(
    expect.objectContaining({
      code: 'configuration',
      message: expect.stringContaining(message),
      hint: expect.stringContaining(hint),
    }),
  )
  expect(filesOf()).toEqual(before)
}

describe('the files of a queue', () => {
  test('are left alone where only the log has the jobs', () => {
    leaveQueue()
    writeFileSync(path, '')
    refused('it is empty, but its log queue.db-wal (', 'If the database was moved, move it back beside its log.')
    rmSync(path)
    refused('it is missing, but its log queue.db-wal (', 'move the log and its -shm file away')
  })

  test('begin a queue where there are none, or where they are empty', () => {
    for (const files of [[], [path], [path, log]]) {
      for (const file of files) writeFileSync(file, '')
      {
        using store = new JobStore(path)
        expect(store.submit({ ...SUBMISSION, variants: [{}] }, 0)).toEqual([1])
      }
      rmSync(path)
    }
  })

  test('are left alone where the database was cut off, with the log or without it', () => {
    leaveQueue(true)
    const whole = readFileSync(path)
    const cut = (bytes: number) => {
      writeFileSync(path, whole.subarray(0, bytes))
      refused('it is damaged: ', 'Move it and its -wal and -shm files away')
    }
    for (const bytes of [1, 99, 100, 4095, 4096, 20_000]) cut(bytes)
    rmSync(log)
    for (const bytes of [1, 99, 100, 4095, 4096, 20_000, whole.length - 1]) cut(bytes)
  })

  test('are left alone where the beginning of the database was overwritten', () => {
    leaveQueue(true)
    const bytes = readFileSync(path)
    for (const [at, length] of [
      [0, 16],
      [16, 2],
    ] as const) {
      writeFileSync(path, Buffer.from(bytes).fill(0x5a, at, at + length))
      refused('it is damaged: ', 'Move it and its -wal and -shm files away')
    }
  })

  test.each([
    [100, 200_000],
    [13 * 4096, 14 * 4096],
  ])('keep their log where bytes %i to %i turn out to be damaged', (from, to) => {
    leaveQueue(true)
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.fill(0x5a, from, Math.min(to, bytes.length)))
    const before = [path, log].map((file) => readFileSync(file))
    expect(() => {
      using store = new JobStore(path)
      store.file.checkWhole()
    }).toThrow(expect.objectContaining({ hint: expect.stringContaining('Move it and its -wal') }))
    expect([path, log].map((file) => readFileSync(file))).toEqual(before)
  })

  test('are used where a program was killed while it copied the log into the database', () => {
    leaveQueue()
    const [database, frames] = [readFileSync(path), readFileSync(log)]
    expect(database).toHaveLength(4096)
    // The first page comes first, and says how many there are.
    for (let at = 32; at < frames.length; at += 24 + 4096)
      if (frames.readUInt32BE(at) === 1) frames.copy(database, 0, at + 24, at + 24 + 4096)
    expect(database.readUInt32BE(28)).toBeGreaterThan(10)
    writeFileSync(path, database)
    symlinkSync(path, join(directory, 'link.db'))
    using store = new JobStore(join(directory, 'link.db'))
    expect(store.list([], 1000)).toHaveLength(300)
  })

  test('stay locked while they are open here, also when they are opened a second time', () => {
    using store = new JobStore(path)
    store.submit(SUBMISSION, 0)
    new JobStore(path)[Symbol.dispose]()
    const program = `const { DatabaseSync } = require('node:sqlite'); const file = new DatabaseSync(${JSON.stringify(path)});
      console.log(file.prepare('SELECT count(*) AS count FROM jobs').get().count); file.close()`
    expect(spawnSync(process.execPath, ['-e', program], { encoding: 'utf8' }).stdout).toBe('300\n')
    // The last program that closes a queue deletes its log.
    expect(existsSync(log)).toBe(true)
  })
})

const STUDY: StudySpec = {
  ...{ parameters: ['lr=int:1:9'], method: 'random', seed: 1, metrics: [{ name: 'loss' }], repeat: 1, failures: 10 },
}

/** Jobs 1 to 4, of which 4 is the trial 0 of the study wf; then the change, as another program. */
function damagedBy(sql: string): void {
  {
    using store = new JobStore(path)
    for (let count = 0; count < 3; count += 1) store.submit({ ...SUBMISSION, variants: [{ X: '1' }] }, 1)
    const id = store.studies.create({ name: 'wf', user: 'ann', priority: 0, spec: STUDY, job: SUBMISSION.spec }, 1)
    const study = store.studies.get(id)
    if (study !== undefined) store.addTrial(study, { point: { lr: '1' }, repetition: 0 }, 1)
  }
  const file = new DatabaseSync(path)
  file.exec(sql)
  file.close()
}

/** All that commands read. */
function readAll(store: JobStore): void {
  store.list([], 10)
  store.active()
  for (const line of store.waiting(1e9)) for (let at = 0; line.at(at) !== undefined; at += 1);
  for (const study of store.studies.list(10)) {
    store.studies.trials(study.id)
    store.studies.jobOf(study)
    store.studies.unfinished()
  }
  for (const id of [1, 2, 3, 4]) store.results.of(id)
}

const IN_JOB_2: readonly string[] = [
  ...['[]', '42', 'null', '"queued"', '{}', '{"kind":"flying"}', '{"kind":"done","endedMs":1}', '{]'].map(
    (text) => `UPDATE jobs SET state = '${text}' WHERE id = 2`,
  ),
  ...[
    '{"kind":"running"}',
    '{"kind":"running","places":[],"bundles":{},"startedMs":1}',
    '{"kind":"running","places":[7],"bundles":[],"startedMs":1}',
    '{"kind":"running","places":[],"bundles":[{"kind":"ended"}],"startedMs":1}',
    '{"kind":"running","places":[],"bundles":[],"startedMs":1,"failedMs":"now"}',
  ].map((text) => `UPDATE jobs SET kind = 'running', state = '${text}' WHERE id = 2`),
  ...['{"kind":"failed","endedMs":"now"}', '{"kind":"failed","endedMs":1,"failedMs":"now"}'].map(
    (text) => `UPDATE jobs SET kind = 'failed', state = '${text}', ended_ms = 1 WHERE id = 2`,
  ),
  `UPDATE jobs SET environment = '[]' WHERE id = 2`,
  `UPDATE jobs SET environment = '{"A":1}' WHERE id = 2`,
  `UPDATE jobs SET after = '{"a":1}' WHERE id = 2`,
  `UPDATE jobs SET after = '[' WHERE id = 2`,
]
const DAMAGES: readonly (readonly [sql: string, title: string])[] = [
  ...IN_JOB_2.map((sql) => [sql, 'job 2'] as const),
  ...['{}', 'x', '{"name":"a","command":"b"}'].map(
    (text) => [`UPDATE specs SET spec = '${text}' WHERE id = 3`, 'the specification of job 3'] as const,
  ),
  [`UPDATE specs SET spec = '[' WHERE id = 4`, 'the specification of study wf'],
  ...['{}', '7', '[', '{"parameters":"lr"}'].map((text) => [`UPDATE study SET spec = '${text}'`, 'study wf'] as const),
  [`UPDATE study SET spec = json_set(spec, '$.parameters[0]', 'lr')`, 'study wf'],
  ...['{}', 'null', '{'].map((text) => [`UPDATE study SET state = '${text}'`, 'study wf'] as const),
  ...['[]', '{', '{"end":7}'].map((text) => [`UPDATE trial SET more = '${text}'`, 'trial 0 of study wf'] as const),
  ...['{}', '[["lr"]]', '['].map((text) => [`UPDATE trial SET point = '${text}'`, 'trial 0 of study wf'] as const),
  [`INSERT INTO results VALUES (1, 1, 0, '{"loss":1}')`, 'the metrics of job 1'],
]

describe('a damaged row', () => {
  test.each(DAMAGES)('is named, and can be taken out: %s', (sql, title) => {
    damagedBy(sql)
    let hint = ''
    {
      using store = new JobStore(path)
      try {
        readAll(store)
      } catch (error) {
        expect(error).toMatchObject({
          code: 'configuration',
          message: expect.stringContaining(`${title} in the queue ${path} is damaged: its `),
        })
        hint = (error as { hint: string }).hint
      }
    }
    const remedy = /sqlite3 (\S+) "(.*)"$/.exec(hint)
    expect(remedy?.[1]).toBe(path)
    const file = new DatabaseSync(path, { enableForeignKeyConstraints: false })
    file.exec(remedy?.[2] ?? '')
    file.close()
    using store = new JobStore(path)
    readAll(store)
    expect(store.list([], 10).length).toBeGreaterThanOrEqual(3)
  })

  test('does not keep the others from being listed', () => {
    damagedBy(`UPDATE jobs SET state = '[]' WHERE id = 2`)
    using store = new JobStore(path)
    const { found, damage } = store.listWhole([], 10)
    expect(found.map(({ id }) => id)).toEqual([4, 3, 1])
    expect(damage?.message).toContain('job 2')
    expect(store.get(1)?.id).toBe(1)
  })

  test('is named also by statements of SQLite that look into it', () => {
    damagedBy(`UPDATE jobs SET state = '{]' WHERE id = 2`)
    using store = new JobStore(path)
    for (const read of [() => store.waiting(1000), () => store.get(2)])
      expect(read).toThrow(`job 2 in the queue ${path} is damaged: its state is not JSON`)
  })

  test('of what the scheduler reported is as good as none', () => {
    for (const text of ['{', '[]', '{"hosts":7}']) {
      damagedBy(`INSERT OR REPLACE INTO meta VALUES ('view', '${text}')`)
      {
        using store = new JobStore(path)
        expect(store.report()).toBeUndefined()
      }
      rmSync(path)
    }
  })
})

test('a queue that lost the row of its lease, as when it was recovered, gets another one', () => {
  {
    using store = new JobStore(path)
    store.submit(SUBMISSION, 0)
  }
  {
    using file = new DatabaseSync(path)
    file.exec('DELETE FROM lease')
  }
  using store = new JobStore(path)
  const lease = store.lease.take('one', 0, 1000)
  expect(() => store.lease.check(lease!)).not.toThrow()
  expect(store.lease.take('other', 1, 1000)).toBeUndefined()
  store.lease.give(lease!)
  expect(store.lease.take('other', 2, 1000)).toEqual({ token: 2 })
})

test('nobody goes on with a file that was moved away', () => {
  using store = new JobStore(path)
  expect(() => store.file.requireInPlace()).not.toThrow()
  renameSync(path, join(directory, 'moved.db'))
  expect(() => store.file.requireInPlace()).toThrow('was moved or deleted while it was in use')
  expect(() => store.submit(SUBMISSION, 0)).toThrow('was moved or deleted while it was in use')
  renameSync(join(directory, 'moved.db'), path)
  expect(() => store.file.requireInPlace()).not.toThrow()
})

describe('an older copy that is put back in the same file', () => {
  const copy = () => join(directory, 'copy.db')

  async function putBack(from: string): Promise<void> {
    using source = new DatabaseSync(from)
    await backup(source, path)
  }

  const REPLACED = 'was replaced by an older copy or another queue while in use'

  test('is not taken for what other programs wrote', async () => {
    using store = new JobStore(path)
    store.submit({ ...SUBMISSION, variants: [{}] }, 1)
    {
      using source = new DatabaseSync(path)
      await backup(source, copy())
    }
    const lease = store.lease.take('one', 0, 1000)
    const [id = 0] = store.submit({ ...SUBMISSION, variants: [{}] }, 2)
    expect(store.get(id)?.id).toBe(2)
    expect(store.file.isAway).toBe(false)
    await putBack(copy())
    {
      // Another program gives the number out again.
      using other = new JobStore(path)
      expect(other.submit({ ...SUBMISSION, user: 'bob', variants: [{}] }, 3)).toEqual([id])
    }
    expect(() => store.submit(SUBMISSION, 4)).toThrow(REPLACED)
    expect(() => store.lease.renew(lease!, 4, 1000)).toThrow(REPLACED)
    expect(() => store.get(id)).toThrow(REPLACED)
    expect(() => store.file.requireInPlace()).toThrow(REPLACED)
    expect(store.file.isAway).toBe(true)
    using again = new JobStore(path)
    expect(again.file.isAway).toBe(false)
    expect(again.list([], 9).map(({ id, user }) => `${id} ${user}`)).toEqual(['2 bob', '1 ann'])
  })

  test('is noticed where it is copied over the file, whose log then belongs to another database', async () => {
    const one = { ...SUBMISSION, variants: [{}] }
    {
      using store = new JobStore(path)
      store.submit(one, 1)
    }
    copyFileSync(path, copy())
    {
      using store = new JobStore(path)
      store.submit(one, 2)
    }
    const stale = `${path}-stale`
    {
      using store = new JobStore(path)
      const [id = 0] = store.submit({ ...one, user: 'bob' }, 3)
      copyFileSync(log, stale)
      writeFileSync(path, readFileSync(copy()))
      const OVERWRITTEN = 'was overwritten with a copy while it was in use'
      expect(() => store.get(id)).toThrow(OVERWRITTEN)
      expect(() => store.submit(one, 4)).toThrow(OVERWRITTEN)
      expect(() => store.file.requireInPlace()).toThrow(OVERWRITTEN)
    }
    // Nothing of the log is moved into the copy.
    expect(readFileSync(path)).toEqual(readFileSync(copy()))
    expect(readFileSync(log)).toEqual(readFileSync(stale))
    for (const end of ['-wal', '-shm']) rmSync(`${path}${end}`)
    using again = new JobStore(path)
    expect(again.list([], 9)).toHaveLength(1)
  })

  test('does no harm where it has all that the database had', async () => {
    const one = { ...SUBMISSION, variants: [{}] }
    {
      using store = new JobStore(path)
      store.submit(one, 1)
    }
    using store = new JobStore(path)
    store.submit(one, 2)
    {
      using source = new DatabaseSync(path)
      await backup(source, copy())
    }
    store.submit(one, 3)
    writeFileSync(path, readFileSync(copy()))
    store.submit(one, 4)
    store.file.checkWhole()
    expect(store.list([], 9).map(({ submittedMs }) => submittedMs)).toEqual([4, 3, 2, 1])
  })

  test('is another queue, with other numbers on hosts, if it was made by itself', async () => {
    using store = new JobStore(path)
    {
      using other = new JobStore(copy())
      other.submit(SUBMISSION, 1)
      other.submit(SUBMISSION, 2)
    }
    await putBack(copy())
    expect(store.file.isAway).toBe(true)
    expect(() => store.active()).toThrow(REPLACED)
  })

  test('what other programs write, and transactions that write nothing or fail, are no sign of it', () => {
    using store = new JobStore(path)
    using other = new JobStore(path)
    for (const one of [store, other, other, store]) {
      one.submit({ ...SUBMISSION, variants: [{}] }, 1)
      expect(() =>
        one.file.transaction(() => {
          one.file.run("INSERT INTO meta VALUES ('x', 'y')")
          throw new Error('no')
        }),
      ).toThrow('no')
    }
    const version = other.file.version()
    store.file.transaction(() => store.list([], 1))
    expect(other.file.version()).toBe(version)
    expect([store, other].map(({ file }) => file.isAway)).toEqual([false, false])
    expect(other.list([], 9)).toHaveLength(4)
  })
})
