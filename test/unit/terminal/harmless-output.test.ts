import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HarmlessOutput } from '../../../src/terminal/harmless-output.ts'

const harmless = (text: string) => new HarmlessOutput().push(text)

describe('output that is played on another terminal', () => {
  it.each([
    ['text in any script', 'a漢 é\r\n\tb\b\x07'],
    ['colours and attributes', '\x1b[1;38:2::1:2:3;48;5;9mred\x1b[0m'],
    [
      'moves, erasing, insertion and margins',
      '\x1b[2J\x1b[H\x1b[3;4H\x1b[2K\x1b[5L\x1b[2;20r\x1b[4h\x1b[?25l\x1b[s\x1b[u',
    ],
    ['the alternate screen', '\x1b[?1049h\x1b[?2026h\x1b[?2026l\x1b[?1049l'],
    ['character sets and a saved cursor', '\x1b(0lqk\x1b(B\x1b7\x1b8\x1bM\x1b#8'],
    ['the shape of the cursor and a soft reset', '\x1b[4 q\x1b[!p'],
  ])('has %s', (_, text) => {
    expect(harmless(text)).toBe(text)
  })

  it.each([
    ['the clipboard', '\x1b]52;c;UFdO\x07'],
    ['a title', '\x1b]0;title\x1b\\'],
    ['a title of screen(1)', '\x1bktitle\x1b\\'],
    ['a link', '\x1b]8;;http://example.org\x07\x1b]8;;\x07'.replaceAll('\x07', '\x9c')],
    ['other strings', '\x1bP+q544e\x1b\\\x1b_Gi=1;AAAA\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\'],
    ['strings that begin with one character', '\x9d52;c;UFdO\x07\x90$qm\x9c'],
    [
      'modes of mouse, focus, paste and keys',
      '\x1b[?1000h\x1b[?1002;1006h\x1b[?1004h\x1b[?2004h\x1b[?1h\x1b=\x1b[>1u\x1b[>4;2m',
    ],
    ['questions', '\x1b[c\x1b[>c\x1b[6n\x1b[?6n\x1b[18t\x1b[?2026$p\x1b[>q\x1b[x\x1bZ\x05\x9a'],
    ['what erases the history of the terminal', '\x1b[3J\x1b[?3J'],
    ['a locked keyboard', '\x1b[2h\x1b[12l\x1b[20h'],
    ['another size, printing and locked memory', '\x1b[8;1;1t\x1b[5i\x1bl\x1b%@'],
  ])('has nothing of %s', (_, text) => {
    expect(harmless(`before${text}after`)).toBe('beforeafter')
  })

  it('has the modes that draw out of several', () => {
    expect(harmless('\x1b[?1049;1000;25h')).toBe('\x1b[?1049;25h')
  })

  it('is the same however it was cut, and never more than what draws', () => {
    const piece = fc.constantFrom(
      '\x1b',
      '\x9b',
      '\x9d',
      '[',
      ']',
      '?',
      '52;c;',
      '1000',
      '25',
      ';',
      'h',
      'l',
      'm',
      'c',
      'P',
    )
    const other = fc.constantFrom('\x07', '\x1b\\', '\x9c', '\x18', 'text', '漢', '\n', 'k', ' ', '$', '\x05', '\x00')
    fc.assert(
      fc.property(fc.array(fc.oneof(piece, other), { maxLength: 30 }), (pieces) => {
        const whole = harmless(pieces.join(''))
        const output = new HarmlessOutput()
        expect(pieces.map((each) => output.push(each)).join('')).toBe(whole)
        const rest = whole
          .replace(/\x1b\[(?:[\d;]*[@A-MPSTXZ`abd-gmrsuhl]|[\d;]* q|!p|\?[\d;]*[JK]|\?(?:25;?)+[hl])/g, '')
          .replace(/\x1b(?:[78DEHMNOno|}~]|[()*+./-][0-~]|#[34568])/g, '')
        expect(rest).not.toMatch(/[\x00-\x06\x10-\x1f\x7f-\x9f]/)
      }),
      { numRuns: 2000 },
    )
  })

  it('is not held back by a sequence that does not end', () => {
    const output = new HarmlessOutput()
    for (let count = 0; count < 1000; count++) output.push(count === 0 ? '\x1b[' : '0;'.repeat(100))
    output.push('m')
    expect(output.push('text')).toBe('text')
  })
})
