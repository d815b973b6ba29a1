/**
 * The one owner of the user's terminal. It copies the cells of the panes' screens and of the chrome into a back buffer,
 * draws frames and titles, and writes the cells that changed since the last frame inside a synchronized update. Frames
 * follow its own clock; echoes of keys go out at once, without moving that clock.
 */
import { type Clock, remainingMs } from '../../base/clock.ts'
import { type CellGrid, createCellGrid } from '../../terminal/cells.ts'
import { copyRect, drawContent, drawFrame, innerRect, UNKNOWN } from './canvas.ts'
import { type ColourDepth, createColourMap } from './colours.ts'
import { FrameEncoder } from './frame-encoder.ts'
import type { PaneView, Rect, Scene } from './scene.ts'

/** The terminal as the compositor needs it. */
export interface FrameWriter {
  /** False: it has not taken all of it yet; nothing more is written before `onDrain`. */
  write(bytes: Uint8Array): boolean
  readonly isDraining: boolean
  onDrain(callback: () => void): Disposable
}

export type CompositorOptions = {
  readonly writer: FrameWriter
  readonly clock: Clock
  readonly colourDepth: ColourDepth
  readonly isUtf8: boolean
  /** Runs soon, after the input that is already there was read; injected by tests. */
  readonly soon?: (callback: () => void) => void
  /** Milliseconds with fractions, from any beginning; injected by tests. */
  readonly preciseNow?: () => number
}

const BEGIN = '\x1b[?2026h'
const END = '\x1b[?2026l'
/** Echoes wait for this multiple of the time that the last ones took to draw (at most `URGENT_MOST_MS`), and are drawn together. */
const URGENT_PAUSE = 2
const URGENT_MOST_MS = 2
/** The first echo of a key waits this long for those of the other hosts, and no longer. */
const ECHOES_TOGETHER_MS = 4
const FRAME_MS = 1000 / 30
/** A slow terminal gets half as many frames, until this many in a row were taken in time. */
const FRAMES_IN_TIME = 30
const SHAPES = { block: 2, underline: 4, bar: 6 } as const

export class Compositor implements Disposable {
  readonly #writer: FrameWriter
  readonly #clock: Clock
  #isUtf8: boolean
  readonly #soon: (callback: () => void) => void
  readonly #preciseNow: () => number
  #encoder: FrameEncoder
  readonly #drains: Disposable
  #scene: Scene | undefined
  /** What the back buffer shows: the scene as it was when it was last composed. */
  #composed: Scene | undefined
  #back = createCellGrid(0, 0)
  #front = createCellGrid(0, 0)
  /** Of the scene, and of the one that was composed last. */
  #panes: ReadonlyMap<string, PaneView> = new Map()
  #composedPanes = this.#panes
  /** By host: the revision of the screen that the back buffer shows. */
  readonly #revisions = new Map<string, number>()
  readonly #dirty = new Set<string>()
  readonly #urgent = new Set<string>()
  /** Panes that have not echoed the last key yet. */
  readonly #due = new Set<string>()
  #dueTimer: Disposable | undefined
  #isSceneDirty = false
  /** The terminal may show anything. */
  #isForgotten = false
  #shownCursor = ''
  #shownShape = 0
  #lastFrameMs = Number.NEGATIVE_INFINITY
  #lastWriteMs = Number.NEGATIVE_INFINITY
  #urgentNotBeforeMs = Number.NEGATIVE_INFINITY
  #frameTimer: Disposable | undefined
  #isUrgentPlanned = false
  #slowness = 1
  #framesInTime = 0
  #framesWritten = 0
  #isDisposed = false

  constructor(options: CompositorOptions) {
    this.#writer = options.writer
    this.#clock = options.clock
    this.#isUtf8 = options.isUtf8
    this.#soon = options.soon ?? ((callback) => void setImmediate(callback))
    this.#preciseNow = options.preciseNow ?? (() => performance.now())
    this.#encoder = new FrameEncoder(createColourMap(options.colourDepth), options.isUtf8)
    this.#drains = this.#writer.onDrain(() => {
      this.#noteTaken()
      if (this.#urgent.size > 0) this.#planUrgent()
      this.#planFrame()
    })
  }

  /** Nothing is waiting to be drawn or written. */
  get isIdle(): boolean {
    return !this.#hasWork && this.#urgent.size === 0 && !this.#writer.isDraining
  }

  get framesWritten(): number {
    return this.#framesWritten
  }

  /** A new arrangement: drawn whole with the next frame. */
  setScene(scene: Scene): void {
    this.#scene = scene
    this.#panes = new Map(scene.panes.map((pane) => [pane.host, pane]))
    this.#isSceneDirty = true
    this.#planFrame()
  }

  /** The pane's cells changed: drawn with the next frame of the clock. */
  invalidate(host: string): void {
    if (!this.#panes.has(host)) return
    this.#dirty.add(host)
    if (this.#due.delete(host) && this.#due.size === 0 && this.#urgent.size > 0) this.#planUrgent()
    this.#planFrame()
  }

  /**
   * A key went to these hosts, whose echoes are drawn together: each frame takes time from hosts that still have to answer.
   * A host whose other output waits to be drawn is not waited for: in a flood, no echo can be told.
   */
  awaitEchoes(hosts: readonly string[]): void {
    this.#due.clear()
    for (const host of hosts) if (this.#panes.has(host) && !this.#dirty.has(host)) this.#due.add(host)
  }

  /** The echo of a key: drawn within a few milliseconds, without delaying the clock's frames. */
  invalidateNow(hosts: readonly string[]): void {
    for (const host of hosts) {
      this.#due.delete(host)
      if (this.#panes.has(host)) this.#urgent.add(host)
    }
    if (this.#urgent.size === 0) return
    if (this.#due.size === 0) return this.#planUrgent()
    this.#dueTimer ??= this.#clock.after(ECHOES_TOGETHER_MS, () => {
      this.#due.clear()
      this.#planUrgent()
    })
  }

  /** The writer has another terminal: draws everything again with its colours and characters. */
  setTerminal(colourDepth: ColourDepth, isUtf8: boolean): void {
    this.#isUtf8 = isUtf8
    this.#encoder = new FrameEncoder(createColourMap(colourDepth), isUtf8)
    this.redraw()
  }

  /** Forgets what the terminal shows and writes everything (after a resize, Ctrl-L, or a program that wrote over us). */
  redraw(): void {
    this.#forget()
    this.#isSceneDirty = true
    this.#planFrame()
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#frameTimer?.[Symbol.dispose]()
    this.#dueTimer?.[Symbol.dispose]()
    this.#drains[Symbol.dispose]()
  }

  get #hasWork(): boolean {
    return this.#isSceneDirty || this.#dirty.size > 0
  }

  #forget(): void {
    this.#front.words.fill(UNKNOWN)
    this.#isForgotten = true
    this.#shownCursor = ''
    this.#shownShape = 0
  }

  #composeAll(from: Scene): void {
    if (this.#back.columns !== from.columns || this.#back.rows !== from.rows) {
      this.#back = createCellGrid(from.columns, from.rows)
      this.#front = createCellGrid(from.columns, from.rows)
      this.#forget()
    }
    this.#revisions.clear()
    this.#copyChrome(from.chrome, { column: 0, row: 0, width: from.columns, height: from.rows })
    for (const pane of from.panes) {
      drawFrame(this.#back, pane, this.#isUtf8)
      this.#drawContent(pane)
    }
    for (const overlay of from.overlays) this.#copyChrome(from.chrome, overlay)
    this.#composed = from
    this.#composedPanes = this.#panes
  }

  /** The chrome may still have the size of a moment ago. */
  #copyChrome(chrome: CellGrid, rect: Rect): void {
    if (chrome.columns === this.#back.columns && chrome.rows === this.#back.rows) copyRect(chrome, this.#back, rect)
  }

  /** Gives where something may have changed. */
  #composePanes(from: Scene, hosts: ReadonlySet<string>): Rect[] {
    const rects: Rect[] = []
    for (const host of hosts) {
      const pane = this.#composedPanes.get(host)
      if (!pane || pane.screen !== this.#panes.get(host)?.screen) continue
      const changed = this.#drawContent(pane)
      for (const overlay of from.overlays) if (touches(overlay, pane.rect)) this.#copyChrome(from.chrome, overlay)
      rects.push(changed)
    }
    return rects
  }

  #drawContent(pane: PaneView): Rect {
    const changed = drawContent(this.#back, pane, this.#revisions.get(pane.host))
    if (pane.screen) this.#revisions.set(pane.host, pane.screen.revision)
    return changed
  }

  /** Writes the difference inside the rectangles, and puts the cursor where it belongs. */
  #emit(from: Scene, rects: readonly Rect[], isErased = false): void {
    const encoder = this.#encoder
    encoder.begin()
    encoder.ascii(BEGIN)
    const isCursorShown = this.#shownCursor !== '' && this.#shownCursor !== 'hidden'
    if (isCursorShown) encoder.ascii('\x1b[?25l')
    const before = encoder.length
    if (isErased) encoder.eraseRows(from.columns, from.rows)
    for (const rect of rects) encoder.difference(this.#front, this.#back, rect)
    const hasCells = encoder.length > before
    const cursor = this.#cursorOf(from)
    const key = cursor ? `${cursor.column},${cursor.row},${cursor.style}` : 'hidden'
    if (!hasCells && key === this.#shownCursor) return
    if (cursor) {
      encoder.moveTo(cursor.column, cursor.row)
      const shape = SHAPES[cursor.style]
      if (shape !== this.#shownShape) encoder.ascii(`\x1b[${shape} q`)
      this.#shownShape = shape
      encoder.ascii('\x1b[?25h')
    } else if (!isCursorShown) encoder.ascii('\x1b[?25l')
    encoder.ascii(END)
    this.#shownCursor = key
    this.#framesWritten++
    this.#lastWriteMs = this.#clock.now()
    if (this.#writer.write(encoder.finish())) this.#noteTaken()
  }

  /** The terminal has taken a frame. */
  #noteTaken(): void {
    const isLate = this.#clock.now() - this.#lastWriteMs > FRAME_MS
    this.#framesInTime = isLate ? 0 : this.#framesInTime + 1
    if (isLate) this.#slowness = 2
    else if (this.#framesInTime >= FRAMES_IN_TIME) this.#slowness = 1
  }

  #cursorOf(from: Scene) {
    const { cursor } = from
    if (cursor === undefined) return undefined
    const pane = this.#composedPanes.get(cursor.pane)
    if (pane?.screen !== this.#panes.get(cursor.pane)?.screen) return undefined
    const state = pane?.screen?.cursor
    if (!pane || !state?.isVisible) return undefined
    const inner = innerRect(pane.rect)
    if (state.column >= inner.width || state.row >= inner.height || state.row < 0) return undefined
    const place = { column: inner.column + state.column, row: inner.row + state.row, style: state.style }
    const isCovered = from.overlays.some((overlay) => contains(overlay, place.column, place.row))
    return isCovered ? undefined : place
  }

  #drawFrame(): void {
    const from = this.#scene
    if (!from || this.#isDisposed || this.#writer.isDraining) return
    this.#lastFrameMs = this.#clock.now()
    let rects: Rect[]
    if (this.#isSceneDirty) {
      this.#composeAll(from)
      rects = [{ column: 0, row: 0, width: from.columns, height: from.rows }]
    } else {
      for (const host of this.#urgent) this.#dirty.add(host)
      rects = this.#composePanes(from, this.#dirty)
    }
    // In a screen that was made narrower and wider again, tmux keeps halves of wide characters, which would spoil the cells beside them.
    const isErased = this.#isSceneDirty && this.#isForgotten
    if (isErased) {
      this.#front = createCellGrid(from.columns, from.rows)
      this.#isForgotten = false
    }
    this.#isSceneDirty = false
    this.#dirty.clear()
    this.#urgent.clear()
    this.#emit(from, rects, isErased)
  }

  /** Over the scene that is on the terminal, so that a new one, which waits for its frame, holds up no echo. */
  readonly #drawUrgent = (): void => {
    if (this.#isDisposed || this.#urgent.size === 0) {
      this.#isUrgentPlanned = false
      return
    }
    const startMs = this.#preciseNow()
    if (startMs < this.#urgentNotBeforeMs) return this.#soon(this.#drawUrgent)
    this.#isUrgentPlanned = false
    const composed = this.#composed
    const hasSize = composed && composed.columns === this.#scene?.columns && composed.rows === this.#scene.rows
    if (!hasSize || this.#writer.isDraining) {
      for (const host of this.#urgent) this.#dirty.add(host)
      this.#urgent.clear()
      return this.#planFrame()
    }
    const rects = this.#composePanes(composed, this.#urgent)
    for (const host of this.#urgent) this.#dirty.delete(host)
    this.#urgent.clear()
    this.#emit(composed, rects)
    const endMs = this.#preciseNow()
    this.#urgentNotBeforeMs = endMs + Math.min(URGENT_MOST_MS, URGENT_PAUSE * (endMs - startMs))
  }

  #planFrame(): void {
    if (this.#frameTimer || this.#isDisposed || !this.#hasWork || this.#writer.isDraining) return
    const waitMs = remainingMs(this.#lastFrameMs, FRAME_MS * this.#slowness, this.#clock.now())
    this.#frameTimer = this.#clock.after(waitMs, () => {
      this.#frameTimer = undefined
      this.#drawFrame()
      this.#planFrame()
    })
  }

  #planUrgent(): void {
    this.#dueTimer?.[Symbol.dispose]()
    this.#dueTimer = undefined
    if (this.#isUrgentPlanned || this.#isDisposed) return
    this.#isUrgentPlanned = true
    this.#soon(this.#drawUrgent)
  }
}

const touches = (a: Rect, b: Rect): boolean =>
  a.column < b.column + b.width && b.column < a.column + a.width && a.row < b.row + b.height && b.row < a.row + a.height

const contains = (rect: Rect, column: number, row: number): boolean =>
  column >= rect.column && column < rect.column + rect.width && row >= rect.row && row < rect.row + rect.height
