/** The one file that touches private parts of the emulator (its version is pinned and bundled): rows as numbers, parsing at once. */
import type { Terminal } from '@xterm/headless'
import { defined } from '../base/defined.ts'
import { penOf, type SourceRow } from './cell-row.ts'

type RawLine = { _data: Uint32Array; _combined: { [column: number]: string | undefined }; length: number }
type CsiIdentifier = { prefix?: string; intermediates?: string; final: string }
type CsiParams = { length: number; params: Int32Array }

type RawPen = { readonly fg: number; readonly bg: number }

type Core = {
  _inputHandler: {
    _curAttrData: RawPen
    parse(data: Uint8Array): unknown
    eraseInDisplay(params: CsiParams, respectsProtection: boolean): boolean
    _parser: { currentState: number; reset(): void }
    onRequestRefreshRows(callback: (rows: { start: number; end: number } | undefined) => void): unknown
    onRequestReset(callback: () => void): unknown
  }
  _bufferService: {
    buffer: {
      lines: { get(index: number): RawLine | undefined; splice(first: number, count: number): void }
      savedCurAttrData: RawPen
      tabs: { readonly [column: number]: boolean }
      scrollTop: number
      scrollBottom: number
      ybase: number
      ydisp: number
    }
  }
  coreService: {
    isCursorHidden: boolean
    decPrivateModes: { cursorStyle?: 'block' | 'underline' | 'bar' | undefined }
  }
  _charsetService: {
    readonly charset: object | undefined
    readonly glevel: number
    readonly _charsets: readonly (object | undefined)[]
  }
  coreMouseService: { activeEncoding: string }
  registerCsiHandler(identifier: CsiIdentifier, callback: (params: CsiParams) => boolean): unknown
}

const TAB_COLUMNS = 8

/** States of the parser (its own numbering): SOS/PM/APC, OSC, and the five of DCS. */
const STRING_STATES: readonly number[] = [7, 8, 9, 10, 11, 12, 13]

/** Sequences that the emulator carries out as often as their first parameter says, up to 2³¹ times. */
const COUNTED_SEQUENCES: readonly CsiIdentifier[] = [
  ...['@', 'I', 'L', 'M', 'P', 'S', 'T', 'X', 'Z', 'b'].map((final) => ({ final })),
  { final: '@', intermediates: ' ' },
  { final: 'A', intermediates: ' ' },
  { final: '}', intermediates: "'" },
  { final: '~', intermediates: "'" },
]

export type XtermInternals = ReturnType<typeof openInternals>

export function openInternals(terminal: Terminal) {
  const core = (terminal as unknown as { _core: Core })._core
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
  /** Visible rows that changed, from the first to the last. */
  let firstChanged = Number.POSITIVE_INFINITY
  let lastChanged = -1
  const noteRows = (first: number, last: number): void => {
    firstChanged = Math.min(firstChanged, first)
    lastChanged = Math.max(lastChanged, last)
  }
  const noteAll = (): void => noteRows(0, terminal.rows - 1)
  input.onRequestRefreshRows((rows) => (rows === undefined ? noteAll() : noteRows(rows.start, rows.end)))
  input.onRequestReset(noteAll)
  return {
    get isCursorVisible() {
      return !core.coreService.isCursorHidden
    },
    get cursorStyle() {
      return core.coreService.decPrivateModes.cursorStyle ?? ('block' as const)
    },
    /** `saved`: what comes back with the saved cursor. */
    get pen() {
      return { now: penOf(input._curAttrData), saved: penOf(core._bufferService.buffer.savedCurAttrData) }
    },
    get isMouseSgr() {
      return core.coreMouseService.activeEncoding.startsWith('SGR')
    },
    /** The parser is inside a string (OSC, DCS, APC, PM, SOS) and so swallows what comes. */
    get isInString() {
      return STRING_STATES.includes(parser.currentState)
    },
    /** Not in the middle of a sequence: parsing starts at the beginning of what comes next. */
    get isAtGround() {
      return parser.currentState === 0
    },
    /** A line feed on the last row scrolls the whole screen. */
    get scrollsWhole() {
      const { scrollTop, scrollBottom } = core._bufferService.buffer
      return scrollTop === 0 && scrollBottom === terminal.rows - 1
    },
    /**
     * Characters are shown as they are printed. `cat` of a binary file often leaves the shift to a second character set behind; that
     * changes nothing as long as no program has chosen such a set.
     */
    get isAscii() {
      const { charset, glevel, _charsets } = core._charsetService
      return charset === undefined && (glevel === 0 || _charsets[0] === undefined)
    },
    /** Tab stops are those of a new terminal. */
    get hasPlainTabs() {
      // A narrower terminal keeps the tab stops beyond its last column, where they do nothing.
      const tabs = Object.keys(core._bufferService.buffer.tabs)
        .map(Number)
        .filter((at) => at < terminal.cols)
      return tabs.length === Math.ceil(terminal.cols / TAB_COLUMNS) && tabs.every((at) => at % TAB_COLUMNS === 0)
    },
    /** Valid UTF-8. Never throws. */
    parse(bytes: Uint8Array) {
      try {
        input.parse(bytes)
      } catch {
        noteAll()
        // No known input gets here. If one does, its host loses the rest of this slice, and no other host is affected.
        parser.reset()
      }
    },
    /** The visible rows that parsing has changed since the last call, if the view neither scrolled nor is scrolled back. */
    takeChangedRows(): { readonly first: number; readonly last: number } {
      const rows = { first: firstChanged, last: lastChanged }
      firstChanged = Number.POSITIVE_INFINITY
      lastChanged = -1
      return rows
    },
    /** Calls back after a program has erased a part of the screen, which disposes of the markers on its rows; `mode` is ED's. */
    onErase(callback: (mode: number) => void) {
      for (const prefix of [undefined, '?'])
        core.registerCsiHandler({ final: 'J', ...defined({ prefix }) }, (params) => {
          const isHandled = input.eraseInDisplay(params, prefix !== undefined)
          callback(params.params[0] ?? 0)
          return isHandled
        })
    },
    /** Lines are gone as if they had never been printed: the screen moves up, and ends where it ended. At most as many as are above it. */
    removeLines(first: number, count: number) {
      const { buffer } = core._bufferService
      buffer.lines.splice(first, count)
      buffer.ybase -= count
      buffer.ydisp = buffer.ybase
      noteAll()
    },
    /** A row of the active buffer, counted from the oldest kept line. Valid until the next call. */
    row(line: number): SourceRow | undefined {
      const raw = core._bufferService.buffer.lines.get(line)
      return raw && { words: raw._data, combined: raw._combined, length: raw.length }
    },
  }
}
