import fc from 'fast-check'
import { expect, test } from 'vitest'
import { LateSegmenter } from '../../../scripts/late-segmenter.ts'

const segmenter = new Intl.Segmenter()
const texts = fc.string({ unit: fc.constantFrom('a', ' ', '─', '…', 'é', '漢', '👍', '\u200d', '\u0301', '\r', '\n') })

test('splits as Intl.Segmenter does', () => {
  const parts = (from: Pick<Intl.Segmenter, 'segment'>, text: string) => [...from.segment(text)]
  fc.assert(
    fc.property(texts, (text) => {
      expect(parts(new LateSegmenter(), text)).toEqual(parts(segmenter, text))
    }),
  )
})

test('finds the grapheme at a place as Intl.Segmenter does', () => {
  fc.assert(
    fc.property(texts, fc.integer({ min: -1, max: 12 }), (text, at) => {
      expect(new LateSegmenter().segment(text).containing(at)).toEqual(segmenter.segment(text).containing(at))
    }),
  )
  expect(new LateSegmenter().segment('abc').containing()).toEqual(segmenter.segment('abc').containing())
})
