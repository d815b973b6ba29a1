import headless, { type IBufferCell, type Terminal } from '@xterm/headless'
import { describe, expect, it } from 'vitest'
import { openInternals } from '../../../src/terminal/xterm-internals.ts'
import { CAPTURES, capture } from './corpus.ts'

const createTerminal = (columns = 80, rows = 24): Terminal =>
  new headless.Terminal({ cols: columns, rows, allowProposedApi: true, logLevel: 'off' })

/** The three words of a cell, by the public interface. Colours count only where their mode has some. */
function publicWords(cell: IBufferCell): unknown {
  const text = cell.getChars()
  const flags = (...all: readonly number[]) => all.map((each) => each !== 0)
  return {
    text,
    width: cell.getWidth(),
    foreground: cell.isFgDefault() ? 'default' : [cell.isFgRGB(), cell.getFgColor()],
    background: cell.isBgDefault() ? 'default' : [cell.isBgRGB(), cell.getBgColor()],
    upper: flags(cell.isInverse(), cell.isBold(), cell.isUnderline(), cell.isBlink(), cell.isInvisible()),
    lower: flags(cell.isItalic(), cell.isDim()),
  }
}

function internalWords(words: Uint32Array, at: number, combined: string | undefined): unknown {
  const [content = 0, foreground = 0, background = 0] = words.subarray(at, at + 3)
  const code = content & 0x1f_ffff
  const colour = (word: number) => {
    const mode = (word >>> 24) & 3
    return mode === 0 ? 'default' : [mode === 3, word & (mode === 3 ? 0xff_ffff : 0xff)]
  }
  const bits = (word: number, ...all: readonly number[]) => all.map((bit) => ((word >>> bit) & 1) !== 0)
  return {
    text: content & 0x20_0000 ? combined : code === 0 ? '' : String.fromCodePoint(code),
    width: content >>> 22,
    foreground: colour(foreground),
    background: colour(background),
    upper: bits(foreground, 26, 27, 28, 29, 30),
    lower: bits(background, 26, 27),
  }
}

describe('the internals of the emulator', () => {
  const looks = Buffer.from(
    '\x1b[1;2;3;4;5;7;8;9;53mall\x1b[m \x1b[38;5;200;48;2;1;2;3mcolours\x1b[m e\u0301 漢\x1b[31;44m \x1b[m',
  )

  it.each([
    ['all looks', looks],
    ...CAPTURES.map((name) => [name, capture(name)] as const),
  ] as const)('have the cells that the public interface shows: %s', (_, bytes) => {
    const terminal = createTerminal()
    const internals = openInternals(terminal)
    internals.parse(bytes)
    const buffer = terminal.buffer.active
    for (let line = 0; line < buffer.length; line++) {
      const row = internals.row(line)
      const shown = buffer.getLine(line)
      for (let column = 0; column < 80; column++) {
        const cell = shown?.getCell(column)
        if (row === undefined || cell === undefined) expect.unreachable(`no cell ${line}, ${column}`)
        else expect(internalWords(row.words, column * 3, row.combined[column])).toEqual(publicWords(cell))
      }
    }
  })

  it('tell of strings, of the cursor and of the encoding of the mouse', () => {
    const internals = openInternals(createTerminal())
    for (const opener of ['\x1b]0;a', '\x1bP$q', '\x1b_a', '\x1b^a', '\x1bXa']) {
      internals.parse(Buffer.from(opener))
      expect(internals.isInString).toBe(true)
      internals.parse(Buffer.from('\x18'))
      expect(internals.isInString).toBe(false)
    }
    expect(internals).toMatchObject({ isCursorVisible: true, cursorStyle: 'block', isMouseSgr: false })
    internals.parse(Buffer.from('\x1b[?25l\x1b[?1000;1006h\x1b[5 q'))
    expect(internals).toMatchObject({ isCursorVisible: false, cursorStyle: 'bar', isMouseSgr: true })
  })

  it('do not hang on counts without end', () => {
    const terminal = createTerminal(20, 5)
    openInternals(terminal).parse(Buffer.from('a\x1b[2147483647b\x1b[99999999S\x1b[99999999L\x1b[Hb'))
    expect(terminal.buffer.active.getLine(terminal.buffer.active.baseY)?.translateToString(true)).toBe('b')
  })
})
