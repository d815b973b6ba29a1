import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { HarmlessOutput } from '../../../src/terminal/harmless-output.ts'
import { randomRuns } from '../../support/random-runs.ts'

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
      { numRuns: randomRuns(2000) },
    )
  })

  it('is not held back by a sequence that does not end', () => {
    const output = new HarmlessOutput()
    for (let count = 0; count < 1000; count++) output.push(count === 0 ? '\x1b[' : '0;'.repeat(100))
    output.push('m')
    expect(output.push('text')).toBe('text')
  })
})

const interactive = () => new HarmlessOutput({ isInteractive: true })

describe('output of a program that reads from the terminal', () => {
  it.each([
    ['modes of mouse, focus, paste and keys', '\x1b[?1000h\x1b[?1002;1006h\x1b[?1004h\x1b[?2004h\x1b[?1h\x1b=\x1b>'],
    ['questions that are answered with numbers', '\x1b[c\x1b[0c\x1b[5n\x1b[6n'],
    ['what draws', '\x1b[?1049h\x1b[31m\x1b(0lqk\x1b(B\x1b[2;20r\x1b[4 q'],
  ])('keeps %s', (_, text) => {
    expect(interactive().push(text)).toBe(text)
  })

  it.each([
    [
      'strings',
      '\x1b]52;c;UFdO\x07\x1b]0;t\x1b\\\x1bkt\x1b\\\x1bP$qm\x1b\\\x1b_G\x1b\\\x1b^x\x1b\\\x1bXx\x1b\\\x9d0;t\x9c',
    ],
    [
      'reports of the window and other answers',
      '\x1b[18t\x1b[21t\x9b7t\x1b[>c\x1b[=c\x1b[>q\x1b[?2026$p\x1b[x\x1bZ\x05\x9a',
    ],
    ['other modes', '\x1b[?3h\x1b[?1001h\x1b[?1007h\x1b[>4;2m\x1b[>1u\x1b[?1000s\x1b[?1000r'],
    ['other tabulators', '\x1b[3g\x1b[g\x1bH\x88'],
  ])('drops %s', (_, text) => {
    expect(interactive().push(`before${text}after`)).toBe('beforeafter')
  })

  it.each([
    ['nothing', 'text\r\n\x1b[2J\x1b[H\x1b[6n', ''],
    ['modes that are on, and none that are off again', '\x1b[?1002;1006;2004h\x1b[?2004l', '\x1b[?1002l\x1b[?1006l'],
    ['what was on at first', '\x1b[?25l\x1b[?7l\x1b[?7h', '\x1b[?25h'],
    ['the keypad, colours, the cursor and insertion', '\x1b=\x1b[31m\x1b[4 q\x1b[4h', '\x1b>\x1b[0m\x1b[0 q\x1b[4l'],
    [
      'the alternate screen before colours, after an update',
      '\x1b[1m\x1b[?1049h\x1b[?2026h',
      '\x1b[?2026l\x1b[?1049l\x1b[0m',
    ],
    ['margins without moving the cursor', '\x1b[2;20r', '\x1b7\x1b[r\x1b8'],
    ['character sets', '\x1b)0\x0e', '\x0f\x1b(B'],
    ['nothing of what was left out', '\x1b[?1001h\x1b]0;[?1000h', ''],
  ])('restores %s', (_, text, restored) => {
    const output = interactive()
    output.push(text)
    expect(output.restore()).toBe(restored)
    expect(output.restore()).toBe('')
  })

  it('undoes what is on instead of a full reset', () => {
    const output = interactive()
    expect(output.push('\x1b[?1000h\x1bc')).toBe('\x1b[?1000h\x1b[?1000l\x1b[!p\x1b[H\x1b[2J')
    expect(output.restore()).toBe('')
  })

  it('is the same wherever it was cut, and restores every mode', () => {
    const begin = fc.constantFrom('\x1b', '\x1b[', '\x1b[?', '\x9b?', '\x1b]52;', '\x1bP', '\x1bk', '\x88')
    const more = fc.constantFrom(
      '1',
      '1000',
      '2004',
      '25',
      '7',
      '1049',
      '6',
      ';',
      'h',
      'l',
      'n',
      'c',
      'm',
      'r',
      '=',
      '(0',
      '\x0e',
      '\x07',
      '\x1b\\',
      'x',
    )
    fc.assert(
      fc.property(fc.array(fc.oneof(begin, more), { maxLength: 40 }), (pieces) => {
        const [one, other] = [interactive(), interactive()]
        const whole = one.push(pieces.join(''))
        expect(pieces.map((each) => other.push(each)).join('')).toBe(whole)
        expect(other.questions).toBe(one.questions)
        const restored = one.restore()
        expect(other.restore()).toBe(restored)
        const modes = new Map([
          ['7', 'h'],
          ['25', 'h'],
        ])
        for (const [, given = '', final = ''] of (whole + restored).matchAll(/\x1b\[\?([\d;]+)([hl])/g))
          for (const mode of given.split(';')) modes.set(mode, final)
        const isOn = (mode: string, final: string) => final === (mode === '7' || mode === '25' ? 'l' : 'h')
        expect([...modes].filter(([mode, final]) => isOn(mode, final))).toEqual([])
      }),
      { numRuns: randomRuns(2000) },
    )
  })
})
