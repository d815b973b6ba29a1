import { tmpdir } from 'node:os'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { KEPT_BYTES, KeptOutput, type OutputText } from '../../../../src/ops/run/kept-output.ts'
import { OutputStore } from '../../../../src/ops/run/output-store.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const allLines = (text: OutputText): string[] =>
  Array.from({ length: text.lineCount }, (_, index) => text.line(index).text)

/** In pieces of any size. */
function pushInPieces(output: KeptOutput, host: string, bytes: Buffer, sizes: readonly number[]): void {
  let at = 0
  for (let turn = 0; at < bytes.length; turn += 1) {
    const size = sizes[turn % sizes.length] ?? bytes.length
    output.push(host, 'stdout', bytes.subarray(at, at + size))
    at += size
  }
}

describe('output that is shown', () => {
  it('has the lines that were printed, however the bytes were cut', () => {
    const line = fc.stringMatching(/^[ -~äß你🚀]{0,30}$/u)
    fc.assert(
      fc.property(
        fc.array(line, { maxLength: 600 }),
        fc.boolean(),
        fc.array(fc.integer({ min: 1, max: 5000 }), { minLength: 1, maxLength: 5 }),
        (lines, endsWithBreak, sizes) => {
          using output = new KeptOutput(tmpdir())
          const text = lines.join('\n') + (endsWithBreak ? '\n' : '')
          pushInPieces(output, 'm1', Buffer.from(text), sizes)
          const expected = text === '' ? [] : text.replace(/\n$/, '').split('\n')
          expect(allLines(output.text('m1'))).toEqual(expected)
        },
      ),
      { numRuns: randomRuns(60) },
    )
  })

  it('is cut where the disk takes no more, and says why', () => {
    const troubles: string[] = []
    using output = new KeptOutput('/proc/nonexistent', (reason) => troubles.push(reason))
    for (const host of ['m1', 'm2']) {
      output.push(host, 'stdout', Buffer.from('first\n'))
      output.push(host, 'stdout', Buffer.alloc(20_000, 'x'))
      output.push(host, 'stdout', Buffer.from('last\n'))
      expect(allLines(output.text(host))).toEqual([
        'first',
        '[… 20005 more bytes of stdout were not kept: no such file]',
      ])
    }
    expect(troubles).toEqual(['no such file'])
  })

  it('is searched line by line, also if it exceeds the memory limit by far', () => {
    using output = new KeptOutput(tmpdir())
    const count = 40_000
    const bytes = Buffer.from(Array.from({ length: count }, (_, index) => `line ${index}\n`).join(''))
    pushInPieces(output, 'm1', bytes, [32_768, 7, 4096])
    const text = output.text('m1')
    expect(text.lineCount).toBe(count)
    for (const index of [0, 127, 128, 12_345, count - 1]) expect(text.line(index).text).toBe(`line ${index}`)
  })

  it('grows while it is shown', () => {
    using output = new KeptOutput(tmpdir())
    output.push('m1', 'stdout', Buffer.from('one\ntw'))
    expect(allLines(output.text('m1'))).toEqual(['one', 'tw'])
    output.push('m1', 'stdout', Buffer.from('o\nthree\n'))
    expect(allLines(output.text('m1'))).toEqual(['one', 'two', 'three'])
  })

  it('shows stderr after stdout, marked as stderr', () => {
    using output = new KeptOutput(tmpdir())
    output.push('m1', 'stderr', Buffer.from('trouble\n'))
    output.push('m1', 'stdout', Buffer.from('fine\n'))
    const text = output.text('m1')
    expect([text.line(0), text.line(1)]).toEqual([
      { kind: 'stdout', text: 'fine' },
      { kind: 'stderr', text: 'trouble' },
    ])
  })

  it('does not act on the terminal, and has columns for tabs', () => {
    using output = new KeptOutput(tmpdir())
    output.push('m1', 'stdout', Buffer.from('\x1b]0;owned\x07\x1b[2J\r\na\tb\n\xff\x9b2J', 'latin1'))
    const lines = allLines(output.text('m1'))
    expect(lines.slice(0, 2)).toEqual(['\\x1b]0;owned\\x07\\x1b[2J', 'a       b'])
    expect(lines.join('')).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/)
  })

  it('is bounded, says what it dropped, and then equals no other output', () => {
    using output = new KeptOutput(tmpdir())
    const chunk = Buffer.alloc(2 ** 20, 'yes\n')
    for (let sent = 0; sent < KEPT_BYTES; sent += chunk.length) {
      for (const host of ['m1', 'm2']) output.push(host, 'stdout', chunk)
    }
    expect(output.digest('m1')).toBe(output.digest('m2'))
    output.push('m1', 'stdout', Buffer.from('more'))
    expect(output.digest('m1')).not.toBe(output.digest('m2'))
    const text = output.text('m1')
    expect(text.line(text.lineCount - 1)).toEqual({ kind: 'note', text: '[… 4 more bytes of stdout were not kept]' })
    expect(output.of('m1').stdout.sizeBytes).toBe(KEPT_BYTES)
  })

  it('starts again for a host that was forgotten', () => {
    using output = new KeptOutput(tmpdir())
    output.push('m1', 'stdout', Buffer.from('old\n'))
    output.forget('m1')
    output.push('m1', 'stdout', Buffer.from('new\n'))
    expect(allLines(output.text('m1'))).toEqual(['new'])
  })
})

describe('a part of a stream', () => {
  it('is the same as that part of all of it', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ maxLength: 50_000, size: 'max' }), { maxLength: 6 }),
        fc.nat(200_000),
        fc.nat(200_000),
        (chunks, start, length) => {
          using store = new OutputStore(tmpdir())
          const { stdout, stderr } = store.of('m1')
          for (const chunk of chunks) {
            stdout.push(chunk)
            // Between them, so that the file has more than one extent.
            stderr.push(Buffer.alloc(40_000))
          }
          expect(stdout.slice(start, length)).toEqual(Buffer.concat(chunks).subarray(start, start + length))
        },
      ),
      { numRuns: randomRuns(40) },
    )
  })
})
