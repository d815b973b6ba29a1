import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LateSegmenter } from '../../../scripts/late-segmenter.ts'

test('splits as Intl.Segmenter does', () => {
  const segmenter = new Intl.Segmenter()
  const parts = (from: LateSegmenter, text: string) =>
    Array.from(from.segment(text), ({ segment, index }) => [segment, index])
  fc.assert(
    fc.property(
      fc.string({ unit: fc.constantFrom('a', ' ', '─', '…', 'é', '漢', '👍', '\u200d', '\u0301', '\r', '\n') }),
      (text) => {
        expect(parts(new LateSegmenter(), text)).toEqual(parts(segmenter, text))
      },
    ),
  )
})
