/** Whole lines of a text that comes in pieces. */
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { LineReader } from '../../../src/base/line-reader.ts'

it('reads the same lines, however the text is cut', () => {
  const text = fc.string({ unit: fc.constantFrom('a', 'b', '\n') })
  fc.assert(
    fc.property(fc.array(text), (pieces) => {
      const reader = new LineReader(1000)
      const read = pieces.flatMap((piece) => reader.push(piece))
      const all = pieces.join('').split('\n')
      expect(reader.heldLength).toBe(all.pop()?.length)
      expect(read).toEqual(all)
    }),
  )
})

it('keeps the end of a line without end, and no more of it', () => {
  const reader = new LineReader(10)
  for (let index = 0; index < 1000; index += 1) reader.push(`${index % 10}`)
  expect(reader.heldLength).toBeLessThanOrEqual(20)
  expect(reader.push('!\n')[0]).toMatch(/^\d+456789!$/)
})

it('takes millions of single bytes', () => {
  const reader = new LineReader(2 ** 20)
  for (let index = 0; index < 3_000_000; index += 1) reader.push('x')
  expect(reader.heldLength).toBeGreaterThanOrEqual(2 ** 20)
})
