import fc from 'fast-check'
import { expect, test } from 'vitest'
import { clip, textWidth, wrapText } from '../../../src/ui/text-width.ts'

test('a text that is too wide is cut and marked', () => {
  expect(clip('abcdef', 4)).toBe('abc…')
  expect(clip('漢字漢字', 5)).toBe('漢字…')
  expect(clip('abc', 3)).toBe('abc')
})

test('words go on in the next line, behind the indent', () => {
  expect(wrapText('one two three', 8)).toEqual(['one two', 'three'])
  expect(wrapText('key   does this and that', 14, '      ')).toEqual(['key   does', '      this and', '      that'])
})

test('a word that is longer than a line is cut into pieces', () => {
  expect(wrapText('SHA256:abcdefghij', 8)).toEqual(['SHA256:a', 'bcdefghi', 'j'])
})

test('no line is too wide and nothing is lost', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom('a', 'word', 'longer-than-a-line', '漢字', 'x'), { minLength: 1, maxLength: 12 }),
      fc.integer({ min: 4, max: 30 }),
      (words, columns) => {
        const lines = wrapText(words.join(' '), columns)
        for (const line of lines) expect(textWidth(line)).toBeLessThanOrEqual(columns)
        expect(lines.join('').replaceAll(' ', '')).toBe(words.join(''))
      },
    ),
  )
})
