import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { Clock } from '../../../src/base/clock.ts'
import { type AsciicastOptions, AsciicastRecorder, fileStem } from '../../../src/terminal/asciicast.ts'
import { readAsciicast } from './read-asciicast.ts'

let directory: string
let time: number

const clock: Clock = {
  now: () => time,
  after: () => ({ [Symbol.dispose]() {} }),
}

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-cast-'))
  time = 1_700_000_000_000
})

afterEach(() => rmSync(directory, { recursive: true }))

function record(options: Partial<AsciicastOptions> = {}) {
  return new AsciicastRecorder({
    directory,
    host: 'm8',
    columns: 80,
    rows: 24,
    term: 'xterm-256color',
    clock,
    onError: (error) => {
      throw error
    },
    ...options,
  })
}

const read = (path: string) => readAsciicast(readFileSync(path, 'utf8'))

describe('a recording', () => {
  it('has the header of asciicast v2 and an event for each output and resize, with times from its start', () => {
    const recorder = record()
    recorder.output(Buffer.from('\x1b[31mred\r\n'))
    time += 1500
    recorder.resize(132, 50)
    recorder[Symbol.dispose]()
    expect(read(recorder.path)).toEqual({
      header: {
        version: 2,
        width: 80,
        height: 24,
        timestamp: 1_700_000_000,
        title: 'm8',
        env: { TERM: 'xterm-256color' },
      },
      events: [
        [0, 'o', '\x1b[31mred\r\n'],
        [1.5, 'r', '132x50'],
      ],
    })
  })

  it('has the same text however the bytes were split', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.array(fc.nat(40)), (text, cuts) => {
        const recorder = record()
        const bytes = Buffer.from(text.toWellFormed())
        let at = 0
        for (const cut of cuts) {
          recorder.output(bytes.subarray(at, at + cut))
          at = Math.min(bytes.length, at + cut)
        }
        recorder.output(bytes.subarray(at))
        recorder[Symbol.dispose]()
        const joined = read(recorder.path).events.map(([, , data]) => data)
        expect(joined.join('')).toBe(bytes.toString())
      }),
    )
  })

  it('does nothing but draw when it is played', () => {
    const recorder = record()
    recorder.output(Buffer.from('\x1b[1mone\x1b]52;c;UF'))
    recorder.output(Buffer.from('dO\x07\x1b[?1000h two\r\n'))
    recorder[Symbol.dispose]()
    const joined = read(recorder.path).events.map(([, , data]) => data)
    expect(joined.join('')).toBe('\x1b[1mone two\r\n')
  })

  it('replaces invalid bytes, also at its end', () => {
    const recorder = record()
    recorder.output(Uint8Array.of(0x61, 0xff, 0x62, 0xe6))
    recorder[Symbol.dispose]()
    const joined = read(recorder.path).events.map(([, , data]) => data)
    expect(joined.join('')).toBe('a\ufffdb\ufffd')
  })

  it('never goes back in time', () => {
    const recorder = record()
    time += 5000
    recorder.output(Buffer.from('a'))
    time -= 9000
    recorder.output(Buffer.from('b'))
    recorder[Symbol.dispose]()
    expect(read(recorder.path).events.map(([at]) => at)).toEqual([5, 5])
  })

  it('can be read only by its user', () => {
    const recorder = record()
    recorder[Symbol.dispose]()
    expect(statSync(recorder.path).mode & 0o777).toBe(0o600)
  })

  it('never overwrites a file or a link', () => {
    writeFileSync(join(directory, 'm8.cast'), 'kept')
    symlinkSync(join(directory, 'elsewhere'), join(directory, 'm8-2.cast'))
    const recorder = record()
    recorder[Symbol.dispose]()
    expect(recorder.path).toBe(join(directory, 'm8-3.cast'))
    expect(readFileSync(join(directory, 'm8.cast'), 'utf8')).toBe('kept')
    expect(readdirSync(directory)).not.toContain('elsewhere')
  })

  it.each([
    '../../etc/passwd',
    '..',
    '.',
    '',
    '/abs',
    'a/b',
    'a\0b',
    '-rf',
    'x'.repeat(5000),
    'höst',
    '\u202egnp',
  ])('stays in its directory for a host named %j', (host) => {
    expect(fileStem(host)).toMatch(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,99}$/)
    const recorder = record({ host })
    recorder[Symbol.dispose]()
    expect(dirname(recorder.path)).toBe(directory)
    expect(read(recorder.path).header.title).toBe(host)
  })

  it('holds a bounded amount for a disk that is too slow, and says how much is missing', async () => {
    const recorder = record()
    const chunk = Buffer.alloc(1024 * 1024, 'x')
    // All within one turn of the event loop: no write comes back in between.
    for (let megabyte = 0; megabyte < 20; megabyte++) recorder.output(chunk)
    const { promise, resolve } = Promise.withResolvers<void>()
    const poll = () => (statSync(recorder.path).size > 7 * 1024 * 1024 ? resolve() : setImmediate(poll))
    poll()
    await promise
    await new Promise((done) => setImmediate(done))
    recorder.output(Buffer.from('again'))
    recorder[Symbol.dispose]()
    const { events } = read(recorder.path)
    const kept = events.filter(([, kind]) => kind === 'o').reduce((sum, [, , data]) => sum + data.length, 0)
    const lost = events.filter(([, kind]) => kind === 'm').map(([, , data]) => Number.parseInt(data, 10))
    expect(kept).toBeLessThan(9 * 1024 * 1024)
    expect(lost.reduce((sum, bytes) => sum + bytes, 0) + kept).toBe(20 * 1024 * 1024 + 'again'.length)
  })

  it('throws when there is no such directory', () => {
    expect(() => record({ directory: join(directory, 'missing') })).toThrow(/ENOENT/)
  })

  it('ignores calls after its end', () => {
    const recorder = record()
    recorder[Symbol.dispose]()
    recorder.output(Buffer.from('late'))
    recorder.resize(1, 1)
    recorder[Symbol.dispose]()
    expect(read(recorder.path).events).toEqual([])
  })
})
