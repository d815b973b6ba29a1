/**
 * The terminal that Ink draws the chrome on: an emulated one, of the size of the real one, whose cells are a layer of the
 * screen, and which gets no keys. Render with `{ interactive: true, patchConsole: false, exitOnCtrlC: false, maxFps: 60 }`.
 */
import { Readable, Writable } from 'node:stream'
import { type CellGrid, createCellGrid } from '../../terminal/cells.ts'
import { createScreen, type Screen } from '../../terminal/headless-screen.ts'

export function createVirtualStdin(): NodeJS.ReadStream {
  const stdin = Object.assign(new Readable({ read() {} }), {
    isTTY: true,
    fd: -1,
    isRaw: false,
    setRawMode(isRaw: boolean) {
      stdin.isRaw = isRaw
      return stdin
    },
    ref: () => stdin,
    unref: () => stdin,
  })
  // Ink asks for the type of process.stdin and uses the part that is here.
  return stdin as unknown as NodeJS.ReadStream
}

export type VirtualStdoutOptions = {
  readonly columns: number
  readonly rows: number
  /** The grid has new cells: once a frame of Ink. */
  onDraw(): void
}

/**
 * The alternate screen is cut and extended at a resize instead of being wrapped again, which Ink's relative movements need;
 * a line feed also returns the carriage (Ink writes bare ones); a line that turns out too wide is cut and moves no others.
 */
const PREPARE = Buffer.from('\x1b[?1049h\x1b[20h\x1b[?7l\x1b[?25l\x1b[H')
const END_OF_FRAME = Buffer.from('\x1b[?2026l')

export class VirtualStdout implements Disposable {
  /** What Ink writes to. */
  readonly stream: NodeJS.WriteStream
  readonly #screen: Screen
  readonly #onDraw: () => void
  #grid: CellGrid
  #isStale = false
  #isDisposed = false

  constructor(options: VirtualStdoutOptions) {
    const columns = Math.max(1, options.columns)
    const rows = Math.max(1, options.rows)
    this.#onDraw = options.onDraw
    this.#screen = createScreen({ columns, rows, historyLines: 0, handlers: { onReply: () => {} } })
    this.#grid = createCellGrid(columns, rows)
    const write = (bytes: Buffer, _: BufferEncoding, done: () => void): void => {
      this.#take(bytes)
      done()
    }
    this.stream = Object.assign(new Writable({ write }), {
      isTTY: true,
      columns,
      rows,
    }) as unknown as NodeJS.WriteStream
    this.#screen.parse(PREPARE)
  }

  /** The chrome layer. Changed in place with every frame; another one, still empty or cut, after `resize`. */
  get grid(): CellGrid {
    return this.#grid
  }

  /**
   * Ink is notified one turn of the event loop later, when the components have the new size: otherwise it would first draw
   * the old tree on the new screen. It draws within that turn.
   */
  resize(newColumns: number, newRows: number): void {
    const columns = Math.max(1, newColumns)
    const rows = Math.max(1, newRows)
    const { stream } = this
    if (this.#isDisposed || (columns === stream.columns && rows === stream.rows)) return
    Object.assign(stream, { columns, rows })
    this.#screen.resize(columns, rows)
    this.#grid = createCellGrid(columns, rows)
    this.#screen.copyInto(this.#grid, 0, 0, columns, rows)
    setImmediate(() => {
      if (!this.#isDisposed && stream.columns === columns && stream.rows === rows) stream.emit('resize')
    })
  }

  [Symbol.dispose](): void {
    if (this.#isDisposed) return
    this.#isDisposed = true
    this.#screen[Symbol.dispose]()
  }

  #take(bytes: Buffer): void {
    if (this.#isDisposed || bytes.length === 0) return
    this.#screen.parse(bytes)
    this.#markStale()
    if (bytes.subarray(-END_OF_FRAME.length).equals(END_OF_FRAME)) this.#draw()
  }

  /** Ink writes a frame in several pieces within one turn. */
  #markStale(): void {
    if (this.#isStale) return
    this.#isStale = true
    queueMicrotask(() => this.#draw())
  }

  #draw(): void {
    if (!this.#isStale || this.#isDisposed) return
    this.#isStale = false
    this.#screen.copyInto(this.#grid, 0, 0, this.#grid.columns, this.#grid.rows)
    this.#onDraw()
  }
}
