/** Lines of output as a terminal would show them. */
import { stripVTControlCharacters } from 'node:util'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { shownLine, withoutSequences } from '../../../src/base/drawn-line.ts'

it.each([
  ['\x1b[31mred\x1b[0m \x1b[1;38;5;3mx\x1b[K', 'red x'],
  ['\x1b]0;title\x07a\x1b]8;;http://x/\x1b\\link\x1b]8;;\x1b\\', 'alink'],
  ['\x1b(Bplain\x1b=\x1b7 \x1b8end', 'plain end'],
  ['\x1bPq#0\x1b\\after', 'after'],
  ['\x1b]0;no end', '0;no end'],
  ['cut \x1b', 'cut '],
  ['cut \x1b[', 'cut '],
  ['10%\r\x1b[K20%', '20%'],
  ['a\tb', 'a       b'],
])('%j is shown as %j', (line, shown) => {
  expect(shownLine(line)).toBe(shown)
})

it('leaves no sequence, and text without any as it is', () => {
  fc.assert(
    fc.property(fc.string({ unit: fc.constantFrom(...'\x1b[]()0;7mPx\\\x07 é') }), (text) => {
      expect(withoutSequences(text)).not.toContain('\x1b')
      if (!text.includes('\x1b')) expect(withoutSequences(text)).toBe(text)
    }),
  )
  expect(withoutSequences('\x1b[1mx\x1b[22m')).toBe(stripVTControlCharacters('\x1b[1mx\x1b[22m'))
})

it('looks at each character a few times, whatever a program wrote', () => {
  for (const part of ['\x1b];a', '\x1b]a\x07', '\x1b]a\x1b\\', '\x1b[', '\x1b[1', '\x1b', '\t', '\x1b]']) {
    const line = part.repeat(100_000)
    expect(withoutSequences(line).length).toBeLessThan(line.length + 1)
  }
})
