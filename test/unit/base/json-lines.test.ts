import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { Lines, parseJson } from '../../../src/base/json-lines.ts'

function linesOf(pieces: readonly string[], mostLength: number) {
  const lines: string[] = []
  let tooLong = 0
  const reader = new Lines(
    (line) => lines.push(line),
    () => {
      tooLong++
    },
    mostLength,
  )
  for (const piece of pieces) reader.push(piece)
  return { lines, tooLong }
}

describe('lines of a program on a head', () => {
  it('are the same however the text is cut, without those that are too long', () => {
    const text = fc.array(fc.constantFrom('a', 'bc', 'defgh', '\n'), { maxLength: 60 })
    fc.assert(
      fc.property(text, (pieces) => {
        const whole = pieces.join('').split('\n')
        const ended = whole.slice(0, -1)
        expect(linesOf(pieces, 8)).toEqual({
          lines: ended.filter((line) => line.length <= 8),
          tooLong: whole.filter((line) => line.length > 8).length,
        })
      }),
    )
  })
})

describe('JSON of a host', () => {
  it('is refused where its values would fill the memory, not where it is long', () => {
    expect(parseJson(`[${'{},'.repeat(2_000_000)}{}]`)).toBeUndefined()
    expect(parseJson(JSON.stringify(['x'.repeat(4_000_000)]))).toHaveLength(1)
  })

  it('is refused where its values are deeper than any answer', () => {
    const nested = (depth: number) => '['.repeat(depth) + ']'.repeat(depth)
    expect(parseJson(nested(200))).toHaveLength(1)
    expect(parseJson(nested(201))).toBeUndefined()
    expect(parseJson(`{"a":${nested(200)}}`)).toBeUndefined()
    expect(parseJson(`[${'[[]],'.repeat(1000)}0]`)).toHaveLength(1001)
  })

  it('is not refused for what its strings say', () => {
    const said = ['[{,'.repeat(1_000_000), '\\', '"', '\\"[', '[{'.repeat(500)]
    expect(parseJson(JSON.stringify(said))).toEqual(said)
    const hidden = `["\\\\",${'[],'.repeat(2_000_000)}""]`
    expect(parseJson(hidden)).toBeUndefined()
  })

  it('is what JSON.parse makes of it', () => {
    fc.assert(
      fc.property(fc.json(), (text) => {
        expect(parseJson(text)).toEqual(JSON.parse(text))
      }),
    )
  })
})
