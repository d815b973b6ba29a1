import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InputDecoder, type InputEvent } from '../../../../src/ui/keys/decode-input.ts'
import { encodeKey, encodeMouse, encodePaste } from '../../../../src/ui/keys/encode-for-pane.ts'
import { keyLabel } from '../../../../src/ui/keys/key-table.ts'
import { randomRuns } from '../../../support/random-runs.ts'

const decode = (text: string | Buffer): InputEvent[] => {
  const decoder = new InputDecoder()
  return [...decoder.push(Buffer.from(text as string)), ...decoder.flush()]
}
const labels = (text: string): string[] =>
  decode(text).map((event) => (event.type === 'key' ? keyLabel(event.key) : event.type))

describe('keys', () => {
  test.each([
    ['a', 'a'],
    ['R', 'R'],
    [' ', 'Space'],
    ['\x1d', 'Ctrl-]'],
    ['\x0c', 'Ctrl-l'],
    ['\r', 'Enter'],
    ['\t', 'Tab'],
    ['\x1b[Z', 'Shift-Tab'],
    ['\x1b', 'Esc'],
    ['\x1bn', 'Alt-n'],
    ['\x1b]', 'Alt-]'],
    ['\x1b[A', 'Up'],
    ['\x1bOA', 'Up'],
    ['\x1b[1;5C', 'Ctrl-Right'],
    ['\x1b[5~', 'PageUp'],
    ['\x1b[15~', 'F5'],
    ['\x1b[[A', 'F1'],
    ['\x1b[3~', 'Delete'],
    ['\x7f', 'Backspace'],
    ['ä', 'ä'],
    ['😀', '😀'],
    ['\x1b[93;5u', 'Ctrl-]'],
    ['\x1b[27;5;93~', 'Ctrl-]'],
    ['\x1b[97;3u', 'Alt-a'],
  ])('%j is %s', (bytes, label) => {
    expect(labels(bytes)).toEqual([label])
  })

  test('decode Esc only when nothing follows it in time', () => {
    const decoder = new InputDecoder()
    expect(decoder.push(Buffer.from('\x1b'))).toEqual([])
    expect(decoder.isWaiting).toBe(true)
    expect(decoder.flush()).toMatchObject([{ type: 'key', key: { name: 'escape' } }])
    expect(decoder.isWaiting).toBe(false)
  })

  test.each([
    ['\x1b', '[A', 'up'],
    ['\x1b', 'OA', 'up'],
    ['\x1b[', 'A', 'up'],
    ['\x1bO', 'A', 'up'],
    ['\x1b', '[5~', 'pageup'],
    ['\x1b', '[1;5C', 'right'],
    ['\x1b', '[<64;20;6M', 'wheel-up'],
  ])('are late if what begins them was taken as it was: %j, %j', (first, second, name) => {
    const decoder = new InputDecoder()
    decoder.push(Buffer.from(first))
    expect(decoder.flush()).toHaveLength(1)
    expect(decoder.hasCut).toBe(true)
    const [event, ...others] = decoder.push(Buffer.from(`${second}x`))
    expect(event).toMatchObject({ isLate: true, raw: Buffer.from(second) })
    expect(event).toMatchObject(event?.type === 'mouse' ? { button: name } : { key: { name } })
    expect(others).toMatchObject([{ type: 'key', key: { text: 'x' } }])
    expect(others[0]).not.toHaveProperty('isLate')
  })

  test('are late in any number of pieces, and what is typed after Esc is not', () => {
    const decoder = new InputDecoder()
    const type = (text: string) => {
      const pushed = decoder.push(Buffer.from(text))
      return [...pushed, ...(decoder.isWaiting ? decoder.flush() : [])].map((event) =>
        event.type === 'key' ? `${keyLabel(event.key)}${event.isLate === true ? ' late' : ''}` : event.type,
      )
    }
    expect(type('\x1b')).toEqual(['Esc'])
    expect(decoder.push(Buffer.from('['))).toEqual([])
    expect(type('A')).toEqual(['Up late'])
    for (const pieces of ['[ A', 'O A', '[ 5 ~', '[ 1 ;5 C', '[5 ~']) {
      expect(type('\x1b')).toEqual(['Esc'])
      for (const piece of pieces.split(' ')) for (const label of type(piece)) expect(label).toMatch(/ late$/)
      expect(decoder.hasCut).toBe(false)
    }
    // As in vi: whatever may be the rest of a key is there as it was typed.
    for (const text of ['O', '[', 'x', 'ok', '\x1b', ':w\r', '[ x', '[ < x', '[ [', 'O k']) {
      expect(type('\x1b')).toEqual(['Esc'])
      const typed = text.split(' ').flatMap((piece) => {
        const pushed = decoder.push(Buffer.from(piece))
        return [...pushed, ...(decoder.isWaiting ? decoder.flush() : [])]
      })
      expect(typed.every(({ type: own }) => own === 'key')).toBe(true)
      expect(Buffer.concat(typed.map(({ raw }) => raw)).toString()).toBe(text.replaceAll(' ', ''))
      decoder.forgetCut()
    }
    expect(type('\x1b')).toEqual(['Esc'])
    decoder.forgetCut()
    expect(type('[A')).toEqual(['[', 'A'])
  })

  test('with a parameter wait for their end, however late it is', () => {
    const decoder = new InputDecoder()
    expect(decoder.push(Buffer.from('\x1b[1;5'))).toEqual([])
    expect(decoder.flush()).toEqual([])
    expect(decoder.push(Buffer.from('C'))).toMatchObject([{ key: { name: 'right', ctrl: true } }])
  })

  test('stay separate if they arrive together', () => {
    expect(labels('\x1dz\x1b[Bls\r')).toEqual(['Ctrl-]', 'z', 'Down', 'l', 's', 'Enter'])
  })
})

describe('pastes', () => {
  test('begin even if their beginning comes in pieces', () => {
    const decoder = new InputDecoder()
    decoder.push(Buffer.from('\x1b'))
    decoder.flush()
    expect(decoder.push(Buffer.from('[200~rm foo\rrm bar\r'))).toEqual([])
    expect(decoder.isPasting).toBe(true)
    expect(decoder.push(Buffer.from('\x1b[201~'))).toMatchObject([{ type: 'paste', text: 'rm foo\rrm bar\r' }])
  })

  test('are one event, whatever they contain', () => {
    expect(decode('\x1b[200~echo 1\x1b[31m\n\x1d\x1b[201~x')).toMatchObject([
      { type: 'paste', text: 'echo 1\x1b[31m\n\x1d' },
      { type: 'key' },
    ])
  })

  test('without an end are not typed', () => {
    const decoder = new InputDecoder()
    expect([...decoder.push(Buffer.from('\x1b[200~rm -rf\n')), ...decoder.flush()]).toEqual([])
    expect(decoder.push(Buffer.from(' x\x1b[201~'))).toMatchObject([{ type: 'paste', text: 'rm -rf\n x' }])
  })

  test('whose end is lost can be ended, and keys work again', () => {
    const decoder = new InputDecoder()
    decoder.push(Buffer.from('\x1b[200~half a pas\x1b[2'))
    expect(decoder.isPasting).toBe(true)
    expect(decoder.endPaste()).toMatchObject([{ type: 'paste', text: 'half a pas\x1b[2' }])
    expect(decoder.push(Buffer.from('x'))).toMatchObject([{ type: 'key', key: { name: 'x' } }])
  })

  test('cannot break out of their brackets', () => {
    expect(Buffer.from(encodePaste('a\x1b[201~b\nc\x03', { isBracketedPaste: true })).toString()).toBe(
      '\x1b[200~a[201~b\rc\x1b[201~',
    )
  })

  test('of 16 MB go through in pieces', () => {
    const decoder = new InputDecoder()
    const piece = Buffer.alloc(64 * 1024, 'x')
    decoder.push(Buffer.from('\x1b[200~'))
    for (let index = 0; index < 256; index++) decoder.push(piece)
    const [event] = decoder.push(Buffer.from('\x1b[201~'))
    expect(event?.type === 'paste' && event.text.length).toBe(16 * 1024 * 1024)
  })
})

describe('the terminal', () => {
  test.each([
    '\x1b[?62;22c',
    '\x1b]11;rgb:0000/0000/0000\x1b\\',
    '\x1b]11;rgb:ffff/ffff/ffff\x07',
    '\x1bP>|xterm(390)\x1b\\',
    '\x1b[?2026;2$y',
    '\x1b[?0u',
  ])('its answer %j is a report and no key', (bytes) => {
    expect(labels(bytes)).toEqual(['report'])
  })

  test.each([
    ['\x1b]11;rgb:00', '00/0000/0000\x1b\\'],
    ['\x1b[?62', ';22c'],
    ['\x1b[<0;1', ';5M'],
  ])('does not type a late part of %j', (begin, rest) => {
    const decoder = new InputDecoder()
    expect([...decoder.push(Buffer.from(begin)), ...decoder.flush()]).toEqual([])
    expect(decoder.push(Buffer.from(rest)).map(({ type }) => type)).not.toContain('key')
  })

  test.each(['\x03', '\r', '\x1b[A'])('an answer without an end holds up the keyboard until %j', (bytes) => {
    const decoder = new InputDecoder()
    decoder.push(Buffer.from('\x1b]11;rgb:00'))
    decoder.flush()
    const events = decoder.push(Buffer.from(bytes))
    expect(events.map(({ type }) => type)).toEqual(['report', 'key'])
  })

  test('reports mouse events with button, position and modifiers', () => {
    expect(decode('\x1b[<16;3;2M\x1b[<0;3;2m\x1b[<64;1;1M\x1b[<32;5;6M')).toMatchObject([
      { type: 'mouse', action: 'press', button: 'left', ctrl: true, column: 2, row: 1 },
      { type: 'mouse', action: 'release', button: 'left' },
      { type: 'mouse', button: 'wheel-up' },
      { type: 'mouse', action: 'move', button: 'left' },
    ])
  })
})

const pieces = fc.oneof(
  fc.constantFrom(
    '\x1b[A',
    '\x1bOP',
    '\x1b[<0;1;1M',
    '\x1b[200~a\nb\x1b[201~',
    '\x1b',
    'ü',
    '漢',
    '😀',
    '\x1d',
    '\x1b]11;x\x07',
    '\x1b[1;5D',
    '\x1b[M !!',
  ),
  fc.string({ maxLength: 3 }),
)

test('gives the same events for any split of the bytes', () => {
  fc.assert(
    fc.property(
      fc.array(pieces, { maxLength: 12 }),
      fc.array(fc.nat(8), { minLength: 1, maxLength: 40 }),
      (parts, cuts) => {
        const bytes = Buffer.from(parts.join(''))
        const whole = decode(bytes)
        const decoder = new InputDecoder()
        const split: InputEvent[] = []
        let at = 0
        for (let index = 0; at < bytes.length; index++) {
          const size = 1 + (cuts[index % cuts.length] ?? 0)
          split.push(...decoder.push(bytes.subarray(at, at + size)))
          at += size
        }
        split.push(...decoder.flush())
        expect(split.map((event) => ({ ...event, raw: Buffer.from(event.raw).toString('hex') }))).toEqual(
          whole.map((event) => ({ ...event, raw: Buffer.from(event.raw).toString('hex') })),
        )
      },
    ),
  )
})

test('neither loses nor invents anything in random bytes', () => {
  const bytes = fc.oneof(
    fc.uint8Array({ maxLength: 200 }),
    fc
      .array(fc.constantFrom(...Buffer.from('\x1b[]OPM<>?0;1~mAu\x07\\\x7fa\r\xc3', 'latin1')), { maxLength: 60 })
      .map((list) => Uint8Array.from(list)),
  )
  fc.assert(
    fc.property(bytes, (input) => {
      fc.pre(!Buffer.from(input).includes('\x1b[200~'))
      const raw = Buffer.concat(decode(Buffer.from(input)).map((event) => event.raw))
      expect(raw.equals(input.subarray(0, raw.length))).toBe(true)
      // Only an answer of the terminal, and a key with parameters, may still wait for its end.
      expect(Buffer.from(input.subarray(raw.length)).toString('latin1')).toMatch(/^(\u001b(\]\d+;|\[[ -?])[\s\S]*)?$/)
    }),
    { numRuns: randomRuns(500) },
  )
})

describe('a host', () => {
  const key = (bytes: string) => {
    const [event] = decode(bytes)
    if (event?.type !== 'key') throw new Error('no key')
    return event
  }
  const encoded = (bytes: string, isApplicationCursor = false): string =>
    Buffer.from(encodeKey(key(bytes), { isApplicationCursor })).toString()

  test('gets an arrow key in the form that it requested', () => {
    expect(encoded('\x1b[A')).toBe('\x1b[A')
    expect(encoded('\x1b[A', true)).toBe('\x1bOA')
    expect(encoded('\x1bOA')).toBe('\x1b[A')
    expect(encoded('\x1b[1;5A', true)).toBe('\x1b[1;5A')
  })

  test('gets extended keys in their plain form', () => {
    expect(encoded('\x1b[99;5u')).toBe('\x03')
    expect(encoded('\x1b[97;3u')).toBe('\x1ba')
    expect(encoded('\x1b[13;2u')).toBe('\r')
  })

  test('gets the exact bytes of every other key', () => {
    const event = key('ü')
    expect(encodeKey(event, { isApplicationCursor: true })).toBe(event.raw)
  })

  test('gets only the mouse events that the program requested', () => {
    const [press, , , drag] = decode('\x1b[<0;3;2M\x1b[<0;3;2m\x1b[<64;1;1M\x1b[<32;5;6M')
    if (press?.type !== 'mouse' || drag?.type !== 'mouse') throw new Error('no mouse')
    expect(encodeMouse(press, { mouse: 'none', isMouseSgr: true })).toBeUndefined()
    expect(encodeMouse(drag, { mouse: 'vt200', isMouseSgr: true })).toBeUndefined()
    expect(Buffer.from(encodeMouse(drag, { mouse: 'drag', isMouseSgr: true }) ?? []).toString()).toBe('\x1b[<32;5;6M')
    expect([...(encodeMouse(press, { mouse: 'vt200', isMouseSgr: false }) ?? [])]).toEqual([
      0x1b, 0x5b, 0x4d, 32, 35, 34,
    ])
  })
})
