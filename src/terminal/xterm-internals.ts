/**
 * The one file that touches private parts of the emulator (@xterm/headless 6). They are checked when the first screen is
 * made: their shape, and that what they give is what the public interface gives. When they are not what we know,
 * `openInternals` returns undefined and screens take the public way (xterm-access.ts).
 */
import type { Terminal } from '@xterm/headless'
import type { SourceRow } from './cell-row.ts'
import { COUNTED_SEQUENCES, type XtermAccess } from './xterm-access.ts'

type RawLine = { _data: Uint32Array; _combined: { [column: number]: string | undefined }; length: number }
type RawParams = { length: number; params: Int32Array }
type CsiIdentifier = { prefix?: string; intermediates?: string; final: string }

type Core = {
  _inputHandler: { parse(data: Uint8Array): unknown; _parser: { currentState: number; reset(): void } }
  _bufferService: { buffer: { lines: { get(index: number): RawLine | undefined } } }
  coreService: {
    isCursorHidden: boolean
    decPrivateModes: { cursorStyle?: 'block' | 'underline' | 'bar' | undefined }
  }
  coreMouseService: { activeEncoding: string }
  registerCsiHandler(identifier: CsiIdentifier, callback: (params: RawParams) => boolean): unknown
}

/** States of the parser (its own numbering): SOS/PM/APC, OSC, and the five of DCS. */
const GROUND = 0
const STRING_STATES: readonly number[] = [7, 8, 9, 10, 11, 12, 13]
const CAN = Uint8Array.of(0x18)

let isTrusted: boolean | undefined

/** `makeProbe` gives a fresh small terminal for the self-test, which runs once a process. */
export function openInternals(terminal: Terminal, makeProbe: () => Terminal): XtermAccess | undefined {
  isTrusted ??= passesSelfTest(makeProbe)
  return isTrusted ? openCore(terminal) : undefined
}

function coreOf(terminal: Terminal): Core {
  return (terminal as unknown as { _core: Core })._core
}

function openCore(terminal: Terminal): XtermAccess {
  const core = coreOf(terminal)
  const input = core._inputHandler
  const parser = input._parser
  for (const identifier of COUNTED_SEQUENCES) {
    core.registerCsiHandler(identifier, (params) => {
      const count = params.params[0]
      const most = Math.max(terminal.cols, terminal.rows) // more has no effect
      if (params.length > 0 && count !== undefined && count > most) params.params[0] = most
      return false // the emulator's own handler does the rest
    })
  }
  return {
    isSynchronous: true,
    get isCursorVisible() {
      return !core.coreService.isCursorHidden
    },
    get cursorStyle() {
      return core.coreService.decPrivateModes.cursorStyle ?? 'block'
    },
    get mouseEncoding() {
      return core.coreMouseService.activeEncoding.startsWith('SGR') ? 'sgr' : 'default'
    },
    get isInString() {
      return STRING_STATES.includes(parser.currentState)
    },
    parse(bytes) {
      try {
        input.parse(bytes)
      } catch {
        // No input is known that gets here; should one exist, it costs its host the rest of this slice and nobody else anything.
        parser.reset()
      }
    },
    row(line): SourceRow | undefined {
      const raw = core._bufferService.buffer.lines.get(line)
      return raw && { words: raw._data, combined: raw._combined, length: raw.length }
    },
  }
}

function passesSelfTest(makeProbe: () => Terminal): boolean {
  const terminal = makeProbe()
  try {
    const core = coreOf(terminal)
    if (!hasKnownShape(core)) return false
    const access = openCore(terminal)
    const stateAfter = (text: string) => {
      access.parse(Buffer.from(text))
      return core._inputHandler._parser.currentState
    }
    for (const opener of ['\x1b]0;a', '\x1bP$q', '\x1b_a', '\x1b^a', '\x1bXa']) {
      if (!STRING_STATES.includes(stateAfter(opener))) return false
      access.parse(CAN)
      if (core._inputHandler._parser.currentState !== GROUND) return false
    }
    access.parse(Buffer.from('\x1b[?25l\x1b[?1006h\x1b[5 q\x1b[2;1H\x1b[1;38;5;9;48;2;1;2;3ma漢e\u0301\x1b[m'))
    if (access.isCursorVisible || access.mouseEncoding !== 'sgr' || access.cursorStyle !== 'bar') return false
    return agreesWithPublicCells(terminal, access.row(1))
  } catch {
    return false
  } finally {
    terminal.dispose()
  }
}

function hasKnownShape(core: Partial<Core> | undefined): boolean {
  return (
    typeof core?._inputHandler?.parse === 'function' &&
    typeof core._inputHandler._parser?.currentState === 'number' &&
    typeof core._inputHandler._parser.reset === 'function' &&
    typeof core._bufferService?.buffer?.lines?.get === 'function' &&
    core._bufferService.buffer.lines.get(0)?._data instanceof Uint32Array &&
    typeof core.coreService?.isCursorHidden === 'boolean' &&
    typeof core.coreMouseService?.activeEncoding === 'string' &&
    typeof core.registerCsiHandler === 'function'
  )
}

/** The probe's second row begins with `a`, a wide character and a combined one, bold, palette 9 on RGB 1, 2, 3. */
function agreesWithPublicCells(terminal: Terminal, row: SourceRow | undefined): boolean {
  const line = terminal.buffer.active.getLine(1)
  if (!row || !line || line.translateToString(true) !== 'a漢e\u0301') return false
  const expected = [
    [0x40_0000 | 0x61, 0x0a00_0009, 0x0301_0203],
    [0x80_0000 | 0x6f22, 0x0a00_0009, 0x0301_0203],
    [0, 0x0a00_0009, 0x0301_0203],
    [0x40_0000 | 0x20_0000, 0x0a00_0009, 0x0301_0203],
  ]
  return (
    row.combined[3] === 'e\u0301' &&
    expected.flat().every((word, index) => {
      // Palette colours may carry stale bits of an earlier RGB colour.
      const mask =
        index % 3 === 1
          ? 0xff00_00ff
          : index % 3 === 0
            ? (word & 0x20_0000) !== 0
              ? 0xe0_0000
              : 0xff_ffff
            : 0xffff_ffff
      return ((row.words[index] ?? 0) & mask) >>> 0 === (word & mask) >>> 0
    })
  )
}
