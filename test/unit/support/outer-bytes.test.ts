/** The grammar of what may reach the user's terminal is itself tried on what must not. */
import { describe, expect, it } from 'vitest'
import { findForeignBytes } from '../../support/outer-bytes.ts'

const find = (text: string): string | undefined => findForeignBytes(Buffer.from(text))

describe('the grammar of outgoing bytes', () => {
  it('accepts frames, text and the sequences that enter the terminal', () => {
    expect(
      find(
        '\x1b[?1049h\x1b[0m\x1b[H\x1b[2J\x1b[?2026h\x1b[12;3H\x1b[0;1;38;2;1;2;3mcafé 日本 👩‍💻\x1b[4X\x1b[2 q\x1b[?2026l',
      ),
    ).toBe(undefined)
  })

  it.each([
    ['a title', '\x1b]0;x\x07'],
    ['the clipboard', '\x1b]52;c;?\x07'],
    ['a link', '\x1b]8;;http://x\x1b\\'],
    ['a device string', '\x1bPq~\x1b\\'],
    ['a query', 'text\x1b[6n'],
    ['a reset', '\x1bc'],
    ['a bell', 'text\x07'],
    ['a line feed', 'text\n'],
    ['a C1 control', '\u009b31m'],
    ['text that is turned', 'a\u202eb'],
    ['a repeat', 'a\x1b[2147483647b'],
    ['a private mode of a program', '\x1b[?1003h'],
    ['a cut sequence', 'text\x1b[3'],
  ])('finds %s', (_, text) => {
    expect(find(text)).toBeTypeOf('string')
  })

  it('finds bytes that are not UTF-8', () => {
    expect(findForeignBytes(Uint8Array.of(0x61, 0xc0, 0xaf))).toBeTypeOf('string')
  })
})
