import { tmpdir } from 'node:os'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { formatResult } from '../../../../src/ops/run/json-result.ts'
import { LinePrefixer } from '../../../../src/ops/run/line-prefixer.ts'
import { foldHosts, formatSummary, summarize } from '../../../../src/ops/run/outcome.ts'
import { OutputStore } from '../../../../src/ops/run/output-store.ts'
import { diffLines, unifiedDiff } from '../../../../src/ops/run/unified-diff.ts'

const chunks = fc.array(fc.uint8Array({ maxLength: 300 }), { maxLength: 8 })

describe('the store of outputs', () => {
  it('returns every byte, from memory and disk', () => {
    using store = new OutputStore(tmpdir())
    const { stdout } = store.of('m1')
    const other = store.of('m2').stdout
    const sent: Buffer[] = []
    for (let index = 0; index < 50; index += 1) {
      const chunk = Buffer.alloc(7_001, index)
      sent.push(chunk)
      stdout.push(chunk)
      other.push(Buffer.alloc(5_003, 255 - index))
    }
    expect(Buffer.concat([...stdout.read()])).toEqual(Buffer.concat(sent))
    expect(stdout.head(10)).toEqual(Buffer.alloc(10, 0))
  })

  it('recognises equal outputs by their digest, however they arrived', () => {
    fc.assert(
      fc.property(chunks, (pieces) => {
        using store = new OutputStore(tmpdir())
        const { stdout, stderr } = store.of('m1')
        for (const piece of pieces) stdout.push(piece)
        stderr.push(Buffer.concat(pieces))
        expect(stdout.digest()).toBe(stderr.digest())
      }),
    )
  })
})

describe('a result as JSON', () => {
  it('contains any bytes of stdout and stderr', () => {
    fc.assert(
      fc.property(chunks, fc.string({ unit: 'grapheme' }), (pieces, text) => {
        using store = new OutputStore(tmpdir())
        const output = store.of('m1')
        for (const piece of pieces) output.stdout.push(piece)
        for (const byte of Buffer.from(text)) output.stderr.push(Uint8Array.of(byte))
        const line = [...formatResult({ host: 'm1' }, output, 12)].join('')
        const result = JSON.parse(line)
        const stdout =
          result.stdoutBase64 === undefined ? Buffer.from(result.stdout) : Buffer.from(result.stdoutBase64, 'base64')
        expect(stdout).toEqual(Buffer.concat(pieces))
        expect(result.stderr).toBe(text)
      }),
    )
  })

  it('has no character that acts on a terminal, and the same text', () => {
    using store = new OutputStore(tmpdir())
    const text = 'a\u009d52;c;RVZJTA==\u009cb\u202ec\x7f\x1b[2J\u2028 \u00e9\n'
    store.of('m1').stdout.push(Buffer.from(text))
    const line = [...formatResult({ host: 'm1', message: text }, store.of('m1'), 1)].join('')
    expect(line).not.toMatch(/[\x7f-\x9f\u202e\u2028]/)
    expect(JSON.parse(line)).toMatchObject({ stdout: text, message: text })
  })

  it('has the fields of the contract in their order', () => {
    using store = new OutputStore(tmpdir())
    const line = [...formatResult({ type: 'result', host: 'm8', outcome: 'exit', code: 0 }, store.of('m8'), 12.4)].join(
      '',
    )
    expect(line).toBe(
      '{"type":"result","host":"m8","outcome":"exit","code":0,"stdout":"","stderr":"","durationMs":12}\n',
    )
  })
})

describe('lines of a host', () => {
  const lines = (isCut: boolean, ...pieces: readonly (string | Uint8Array)[]) => {
    const prefixer = new LinePrefixer({ prefix: 'm8: ', isCut })
    const parts = pieces.map((piece) => prefixer.push(Buffer.from(piece as string)))
    return Buffer.concat([...parts, prefixer.flush()].filter((part) => part !== undefined)).toString()
  }

  it('carry its name, and are printed whole', () => {
    expect(lines(false, 'a\nb', 'c\n', '\nd')).toBe('m8: a\nm8: bc\nm8: \nm8: d\n')
  })

  it('cannot act on a terminal, also if they reach it through a pipe', () => {
    for (const isCut of [false, true]) {
      expect(lines(isCut, 'plain\n\x1b]0;x\x07a\tb\r\n')).toBe('m8: plain\nm8: \\x1b]0;x\\x07a\tb\n')
      expect(lines(isCut, 'ok\rm1: failed\n')).toBe('m8: ok\\x0dm1: failed\n')
      expect(lines(isCut, '\u009b2J\u202eabc\n')).toBe('m8: \\x9b2J\\u202eabc\n')
      expect(lines(isCut, Buffer.from([0x9b, 0x32, 0x4a, 10]))).toBe('m8: \ufffd2J\n')
      expect(lines(isCut, 'é\t東京\n')).toBe('m8: é\t東京\n')
    }
  })

  it('are the same in a pipe as on a terminal, however they are cut into pieces', () => {
    const text = fc.array(
      fc.constantFrom('a', 'é', '東', '👩‍💻', '\t', '\n', '\n', '\r', '\x1b[31m', '\u0085', '\x7f', '\ud800'),
    )
    fc.assert(
      fc.property(text, fc.nat(), (parts, at) => {
        const bytes = Buffer.from(parts.join(''))
        const cut = at % (bytes.length + 1)
        const pieces = [bytes.subarray(0, cut), bytes.subarray(cut)]
        expect(lines(false, ...pieces)).toBe(lines(true, ...pieces))
      }),
    )
  })

  it('are not cut in a pipe', () => {
    for (const end of ['', '\x1b']) {
      const text = 'x'.repeat(70_000)
      expect(lines(false, `${text}${end}\n`)).toBe(`m8: ${text}${end === '' ? '' : '\\x1b'}\n`)
    }
  })

  it.each([1, 3])('are cut on a terminal if they are too long, and say so (in %i pieces)', (count) => {
    const text = 'x'.repeat(70_000)
    const size = Math.ceil(text.length / count)
    const pieces = Array.from({ length: count }, (_, index) => text.slice(index * size, (index + 1) * size))
    const shown = lines(true, ...pieces, '\nnext\n')
    expect(shown).toBe(`m8: ${'x'.repeat(65_536)} [… 4464 bytes more]\nm8: next\n`)
  })
})

describe('folding', () => {
  const ok = { kind: 'exit', code: 0 } as const

  it('groups hosts with equal output and equal end, the largest group first', () => {
    const groups = foldHosts([
      { host: 'a', outcome: ok, digest: 'x' },
      { host: 'b', outcome: ok, digest: 'y' },
      { host: 'c', outcome: ok, digest: 'y' },
      { host: 'd', outcome: { kind: 'exit', code: 1 }, digest: 'y' },
    ])
    expect(groups.map(({ hosts }) => hosts)).toEqual([['b', 'c'], ['a'], ['d']])
  })
})

describe('the summary', () => {
  it('counts every host once', () => {
    const summary = summarize([
      { kind: 'exit', code: 0 },
      { kind: 'exit', code: 2 },
      { kind: 'signal', signal: 'SIGKILL' },
      { kind: 'timeout' },
      { kind: 'refused', reason: 'x' },
      { kind: 'unreachable', reason: 'y' },
    ])
    expect(summary).toEqual({ hosts: 6, exit0: 1, failed: 2, timeout: 1, cancelled: 0, unreachable: 1, refused: 1 })
    expect(formatSummary(summary)).toBe('6 hosts: 1 ok, 2 failed, 1 timed out, 1 unreachable, 1 refused')
  })
})

describe('the difference of two outputs', () => {
  const text = fc.array(fc.constantFrom('a', 'b', 'c', 'd'), { maxLength: 30 })

  it('turns one into the other, with the fewest possible changes', () => {
    fc.assert(
      fc.property(text, text, (before, after) => {
        const lines = diffLines(before, after)
        expect(lines.filter(({ kind }) => kind !== '+').map((line) => line.text)).toEqual(before)
        expect(lines.filter(({ kind }) => kind !== '-').map((line) => line.text)).toEqual(after)
        const changes = lines.filter(({ kind }) => kind !== ' ').length
        expect(changes).toBe(before.length + after.length - 2 * commonLength(before, after))
      }),
    )
  })

  it('is shown as diff -u shows it', () => {
    const before = ['1', '2', '3', '4', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14']
    const after = ['1', '2', '3', 'four', '5', '6', '7', '8', '9', '10', '11', '12', '13', '14', '15']
    expect(unifiedDiff(before, after)).toEqual([
      '@@ -1,7 +1,7 @@',
      ...[' 1', ' 2', ' 3', '-4', '+four', ' 5', ' 6', ' 7'],
      '@@ -12,3 +12,4 @@',
      ...[' 12', ' 13', ' 14', '+15'],
    ])
    expect(unifiedDiff([], ['x'])).toEqual(['@@ -0,0 +1 @@', '+x'])
    expect(unifiedDiff(before, before)).toEqual([])
  })
})

/** Of the longest common subsequence, by the textbook's table. */
function commonLength(a: readonly string[], b: readonly string[]): number {
  let row = new Array<number>(b.length + 1).fill(0)
  for (const left of a) {
    const next = [0]
    b.forEach((right, index) => {
      next.push(left === right ? (row[index] ?? 0) + 1 : Math.max(row[index + 1] ?? 0, next[index] ?? 0))
    })
    row = next
  }
  return row.at(-1) ?? 0
}
