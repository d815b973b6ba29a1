import { describe, expect, test } from 'vitest'
import { QueueFile, unusable } from '../../../../src/scheduler/jobs/queue-file.ts'

/** SQLITE_CORRUPT and SQLITE_NOTADB; all others leave the file as it is. */
const DAMAGED = new Set([11, 26])
const ofSqlite = (errcode: number) => Object.assign(new Error('a sentence of SQLite'), { errcode })

describe('what to do when a call to the queue fails', () => {
  test('tells people to move only a damaged file away', () => {
    for (let code = 1; code <= 28; code++)
      for (const errcode of [code, code | (1 << 8), code | (5 << 8)]) {
        const { hint } = unusable(ofSqlite(errcode), 'the queue q.db')
        expect([errcode, hint?.includes('files away')]).toEqual([errcode, DAMAGED.has(code)])
      }
  })

  test('reports a broken constraint as a bug of Muster and keeps using the file', () => {
    using file = new QueueFile(':memory:')
    const insert = () => file.transaction(() => file.run('INSERT INTO meta VALUES (?, NULL)', 'name'))
    expect(insert).toThrow(
      expect.objectContaining({
        code: 'internal',
        message: expect.stringContaining('NOT NULL constraint failed: meta.value'),
        hint: expect.stringContaining('not damaged; leave it where it is'),
      }),
    )
    file.run("INSERT INTO meta VALUES ('name', 'text')")
    expect(file.one("SELECT value FROM meta WHERE name = 'name'")).toEqual({ value: 'text' })
  })

  test('reports a value that cannot be stored and a wrong statement as bugs too', () => {
    using file = new QueueFile(':memory:')
    const values = [undefined as unknown as string]
    expect(() => file.all('SELECT ?', ...values)).toThrow(expect.objectContaining({ code: 'internal' }))
    expect(() => file.all('SELEKT')).toThrow(expect.objectContaining({ code: 'internal' }))
  })
})
