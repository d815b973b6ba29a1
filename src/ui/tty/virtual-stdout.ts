/**
 * The terminal that Ink draws the chrome on: an emulated one, of the size of the real one, whose cells are a layer of the
 * screen. To be rendered with `{ interactive: true, patchConsole: false, exitOnCtrlC: false, maxFps: 60 }`.
 */
import { Writable } from 'node:stream'
import { type CellGrid, createCellGrid } from '../../terminal/cells.ts'
import type { CreateScreen, Screen } from '../../terminal/screen.ts'

export type VirtualStdoutOptions = {
  readonly columns: number
  readonly rows: number
  readonly createScreen: CreateScreen
  /** The grid has new cells: once a frame of Ink. */
  onDraw(): void
}

export interface VirtualStdout extends Disposable {
  /** What Ink writes to. */
  readonly stream: NodeJS.WriteStream
  /** The chrome layer. Changed in place with every frame; another one, still empty or cut, after `resize`. */
  readonly grid: CellGrid
  /**
   * Ink is told a turn of the event loop later, when the components have taken up the new size: else it would first draw
   * the old tree on the new screen. It draws within that turn.
   */
  resize(columns: number, rows: number): void
}

/**
 * The alternate screen is cut and extended at a resize instead of being wrapped anew, which Ink's relative movements need;
 * a line feed also returns the carriage (Ink writes bare ones); a line that turns out too wide is cut and moves no others.
 */
const PREPARE = Buffer.from('\x1b[?1049h\x1b[20h\x1b[?7l\x1b[?25l\x1b[H')
const END_OF_FRAME = Buffer.from('\x1b[?2026l')

class VirtualStream extends Writable {
  readonly isTTY = true
  columns: number
  rows: number
  readonly #onBytes: (bytes: Buffer) => void

  constructor(columns: number, rows: number, onBytes: (bytes: Buffer) => void) {
    super()
    this.columns = columns
    this.rows = rows
    this.#onBytes = onBytes
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: () => void): void {
    this.#onBytes(chunk)
    done()
  }
}

export function createVirtualStdout(options: VirtualStdoutOptions): VirtualStdout {
  const columns = Math.max(1, options.columns)
  const rows = Math.max(1, options.rows)
  const screen: Screen = options.createScreen({
    columns,
    rows,
    historyLines: 0,
    handlers: { onReply: () => {}, onChanged: () => markStale() },
  })
  let grid = createCellGrid(columns, rows)
  let isStale = false
  let isDisposed = false

  const draw = (): void => {
    if (!isStale || isDisposed) return
    isStale = false
    screen.copyInto(grid, 0, 0, grid.columns, grid.rows)
    options.onDraw()
  }

  /** Ink writes a frame in several pieces within one turn. */
  const markStale = (): void => {
    if (isStale) return
    isStale = true
    queueMicrotask(draw)
  }

  const stream = new VirtualStream(columns, rows, (bytes) => {
    if (isDisposed || bytes.length === 0) return
    screen.parse(bytes)
    markStale()
    if (bytes.subarray(-END_OF_FRAME.length).equals(END_OF_FRAME)) draw()
  })
  screen.parse(PREPARE)

  return {
    stream: stream as unknown as NodeJS.WriteStream,
    get grid() {
      return grid
    },
    resize(newColumns, newRows) {
      const width = Math.max(1, newColumns)
      const height = Math.max(1, newRows)
      if (isDisposed || (width === stream.columns && height === stream.rows)) return
      stream.columns = width
      stream.rows = height
      screen.resize(width, height)
      grid = createCellGrid(width, height)
      screen.copyInto(grid, 0, 0, width, height)
      setImmediate(() => {
        if (isDisposed || stream.columns !== width || stream.rows !== height) return
        stream.emit('resize')
      })
    },
    [Symbol.dispose]() {
      if (isDisposed) return
      isDisposed = true
      screen[Symbol.dispose]()
    },
  }
}
