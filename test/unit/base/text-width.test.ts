import fc from 'fast-check'
import stringWidth from 'string-width'
import { expect, test } from 'vitest'
import { NARROW } from '../../../src/base/narrow-text.ts'
import { clip, clipName, textWidth, wrapText } from '../../../src/base/text-width.ts'

test('measures narrow texts as Ink does', () => {
  const narrow = Array.from({ length: 2 ** 16 }, (_, code) => String.fromCharCode(code)).filter((each) =>
    NARROW.test(each),
  )
  expect(narrow.length).toBeGreaterThan(200)
  expect(narrow.filter((each) => stringWidth(each) !== 1)).toEqual([])
})

test('cuts and marks a text that is too wide', () => {
  expect(clip('abcdef', 4)).toBe('abc…')
  expect(clip('漢字漢字', 5)).toBe('漢字…')
  expect(clip('abc', 3)).toBe('abc')
})

test('cuts the domain of a name that is too wide, then its middle, because names differ at their ends', () => {
  expect(clipName('gpu-node-01.cluster.example.org', 40)).toBe('gpu-node-01.cluster.example.org')
  expect(clipName('gpu-node-01.cluster.example.org', 20)).toBe('gpu-node-01…')
  expect(clipName('a-machine-in-rack-seventeen-03.example.org', 20)).toBe('a-machine-i…nteen-03')
  expect(clipName('192.168.100.101', 12)).toBe('192.16…0.101')
  expect(clipName('root@127.0.0.1:33325', 16)).toBe('root@127…1:33325')
  expect(clipName('主机主机主机主机01', 9)).toBe('主机…机01')
})

test('never makes names wider than their space', () => {
  fc.assert(
    fc.property(fc.stringMatching(/^[a-z主é.0-9-]{1,60}$/), fc.integer({ min: 3, max: 40 }), (name, columns) => {
      expect(textWidth(clipName(name, columns))).toBeLessThanOrEqual(columns)
    }),
  )
})

test('continues words in the next line, behind the indent', () => {
  expect(wrapText('one two three', 8)).toEqual(['one two', 'three'])
  expect(wrapText('key   does this and that', 14, '      ')).toEqual(['key   does', '      this and', '      that'])
})

test('splits a word that is longer than a line', () => {
  expect(wrapText('SHA256:abcdefghij', 8)).toEqual(['SHA256:a', 'bcdefghi', 'j'])
})

test('makes no line too wide, and loses nothing', () => {
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
