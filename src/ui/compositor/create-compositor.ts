/**
 * The compositor: composes what changed into the back buffer and writes the difference, on a clock of its own; echoes of
 * keys go out at once, without moving that clock.
 */
import type { Clock } from '../../base/clock.ts'
import { type CellGrid, createCellGrid } from '../../terminal/cells.ts'
import { copyRect, drawContent, drawFrame, innerRect, UNKNOWN } from './canvas.ts'
import { type ColourDepth, createColourMap } from './colours.ts'
import type { Compositor, PaneView, Rect, Scene } from './compositor.ts'
import { FrameEncoder } from './frame-encoder.ts'

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
  readonly framesPerSecond?: number
  readonly colourDepth: ColourDepth
  readonly isUtf8: boolean
  /** Runs soon, after the input that is already there was read; injected by tests. */
  readonly soon?: (callback: () => void) => void
  /** Milliseconds with fractions, from any beginning; injected by tests. */
  readonly preciseNow?: () => number
}

const BEGIN = '\x1b[?2026h'
const END = '\x1b[?2026l'
/** Echoes wait so many times as long as the last ones took to draw (at most `URGENT_MOST_MS`), and are drawn together. */
const URGENT_PAUSE = 2
const URGENT_MOST_MS = 2
/** A slow terminal gets half as many frames, until so many in a row were taken in time. */
const FRAMES_IN_TIME = 30
const SHAPES = { block: 2, underline: 4, bar: 6 } as const

export function createCompositor(options: CompositorOptions): Compositor {
  const { writer, clock } = options
  const soon = options.soon ?? ((callback) => void setImmediate(callback))
  const preciseNow = options.preciseNow ?? (() => performance.now())
  const frameMs = 1000 / (options.framesPerSecond ?? 30)
  const encoder = new FrameEncoder(createColourMap(options.colourDepth), options.isUtf8)

  let scene: Scene | undefined
  /** What the back buffer shows: the scene as it was when it was last composed. */
  let composed: Scene | undefined
  let back = createCellGrid(0, 0)
  let front = createCellGrid(0, 0)
  /** Of `scene`, and of `composed`. */
  let panes: ReadonlyMap<string, PaneView> = new Map()
  let composedPanes = panes
  const dirty = new Set<string>()
  const urgent = new Set<string>()
  let isSceneDirty = false
  let shownCursor = ''
  let shownShape = 0
  let lastFrameMs = Number.NEGATIVE_INFINITY
  let lastWriteMs = Number.NEGATIVE_INFINITY
  let urgentNotBeforeMs = Number.NEGATIVE_INFINITY
  let frameTimer: Disposable | undefined
  let isUrgentPlanned = false
  let slowness = 1
  let framesInTime = 0
  let framesWritten = 0
  let isDisposed = false

  const resizeBuffers = (columns: number, rows: number): void => {
    if (back.columns === columns && back.rows === rows) return
    back = createCellGrid(columns, rows)
    front = createCellGrid(columns, rows)
    forget()
  }

  const forget = (): void => {
    front.words.fill(UNKNOWN)
    shownCursor = ''
    shownShape = 0
  }

  const composeAll = (from: Scene): void => {
    resizeBuffers(from.columns, from.rows)
    copyChrome(from.chrome, { column: 0, row: 0, width: from.columns, height: from.rows })
    for (const pane of from.panes) {
      drawFrame(back, pane, options.isUtf8)
      drawContent(back, pane)
    }
    for (const overlay of from.overlays) copyChrome(from.chrome, overlay)
    composed = from
    composedPanes = panes
  }

  /** The chrome may still have the size of a moment ago. */
  const copyChrome = (chrome: CellGrid, rect: Rect): void => {
    if (chrome.columns === back.columns && chrome.rows === back.rows) copyRect(chrome, back, rect)
  }

  const composePane = (from: Scene, pane: PaneView): void => {
    drawContent(back, pane)
    for (const overlay of from.overlays) if (touches(overlay, pane.rect)) copyChrome(from.chrome, overlay)
  }

  /** Writes the difference inside the rectangles, and puts the cursor where it belongs. */
  const emit = (from: Scene, rects: readonly Rect[]): void => {
    encoder.begin()
    encoder.ascii(BEGIN)
    const isCursorShown = shownCursor !== '' && shownCursor !== 'hidden'
    if (isCursorShown) encoder.ascii('\x1b[?25l')
    const before = encoder.length
    for (const rect of rects) encoder.difference(front, back, rect)
    const hasCells = encoder.length > before
    const cursor = cursorOf(from)
    const key = cursor ? `${cursor.column},${cursor.row},${cursor.style}` : 'hidden'
    if (!hasCells && key === shownCursor) return
    if (cursor) {
      encoder.moveTo(cursor.column, cursor.row)
      const shape = SHAPES[cursor.style]
      if (shape !== shownShape) encoder.ascii(`\x1b[${shape} q`)
      shownShape = shape
      encoder.ascii('\x1b[?25h')
    } else if (!isCursorShown) encoder.ascii('\x1b[?25l')
    encoder.ascii(END)
    shownCursor = key
    framesWritten++
    lastWriteMs = clock.now()
    if (writer.write(encoder.finish())) noteTaken()
  }

  /** The terminal has taken a frame. */
  const noteTaken = (): void => {
    const isLate = clock.now() - lastWriteMs > frameMs
    framesInTime = isLate ? 0 : framesInTime + 1
    if (isLate) slowness = 2
    else if (framesInTime >= FRAMES_IN_TIME) slowness = 1
  }

  const cursorOf = (from: Scene) => {
    const { cursor } = from
    if (!cursor || (!('pane' in cursor) && !cursor.isVisible)) return undefined
    if (!('pane' in cursor)) return cursor
    const pane = composedPanes.get(cursor.pane)
    if (pane?.screen !== panes.get(cursor.pane)?.screen) return undefined
    const state = pane?.screen?.cursor
    if (!pane || !state?.isVisible) return undefined
    const inner = innerRect(pane.rect)
    if (state.column >= inner.width || state.row >= inner.height || state.row < 0) return undefined
    const place = { column: inner.column + state.column, row: inner.row + state.row, style: state.style }
    const isCovered = from.overlays.some((overlay) => contains(overlay, place.column, place.row))
    return isCovered ? undefined : place
  }

  const drawFrameNow = (): void => {
    if (!scene || isDisposed || writer.isDraining) return
    lastFrameMs = clock.now()
    const from = scene
    let rects: Rect[]
    if (isSceneDirty) {
      composeAll(from)
      rects = [{ column: 0, row: 0, width: from.columns, height: from.rows }]
    } else {
      for (const host of urgent) dirty.add(host)
      rects = composePanes(from, dirty)
    }
    isSceneDirty = false
    dirty.clear()
    urgent.clear()
    emit(from, rects)
  }

  /** Gives where something may have changed. */
  const composePanes = (from: Scene, hosts: ReadonlySet<string>): Rect[] => {
    const rects: Rect[] = []
    for (const host of hosts) {
      const pane = composedPanes.get(host)
      if (!pane || pane.screen !== panes.get(host)?.screen) continue
      composePane(from, pane)
      rects.push(innerRect(pane.rect))
    }
    return rects
  }

  /** Over the scene that is on the terminal, so that a new one, which waits for its frame, holds up no echo. */
  const drawUrgentNow = (): void => {
    if (isDisposed || urgent.size === 0) {
      isUrgentPlanned = false
      return
    }
    const startMs = preciseNow()
    if (startMs < urgentNotBeforeMs) {
      soon(drawUrgentNow)
      return
    }
    isUrgentPlanned = false
    if (!composed || writer.isDraining || composed.columns !== scene?.columns || composed.rows !== scene.rows) {
      for (const host of urgent) dirty.add(host)
      urgent.clear()
      planFrame()
      return
    }
    const rects = composePanes(composed, urgent)
    for (const host of urgent) dirty.delete(host)
    urgent.clear()
    emit(composed, rects)
    const endMs = preciseNow()
    urgentNotBeforeMs = endMs + Math.min(URGENT_MOST_MS, URGENT_PAUSE * (endMs - startMs))
  }

  const hasWork = (): boolean => isSceneDirty || dirty.size > 0

  const planFrame = (): void => {
    if (frameTimer || isDisposed || !hasWork() || writer.isDraining) return
    const waitMs = Math.max(0, lastFrameMs + frameMs * slowness - clock.now())
    frameTimer = clock.after(waitMs, () => {
      frameTimer = undefined
      drawFrameNow()
      planFrame()
    })
  }

  const planUrgent = (): void => {
    if (isUrgentPlanned || isDisposed) return
    isUrgentPlanned = true
    soon(drawUrgentNow)
  }

  const drains = writer.onDrain(() => {
    noteTaken()
    if (urgent.size > 0) planUrgent()
    planFrame()
  })

  return {
    setScene(next) {
      scene = next
      panes = new Map(next.panes.map((pane) => [pane.host, pane]))
      isSceneDirty = true
      planFrame()
    },
    invalidate(host) {
      if (!panes.has(host)) return
      dirty.add(host)
      planFrame()
    },
    invalidateNow(hosts) {
      for (const host of hosts) if (panes.has(host)) urgent.add(host)
      if (urgent.size > 0) planUrgent()
    },
    invalidateChrome() {
      isSceneDirty = true
      planFrame()
    },
    redraw() {
      forget()
      isSceneDirty = true
      planFrame()
    },
    get isIdle() {
      return !hasWork() && urgent.size === 0 && !writer.isDraining
    },
    get framesWritten() {
      return framesWritten
    },
    [Symbol.dispose]() {
      isDisposed = true
      frameTimer?.[Symbol.dispose]()
      drains[Symbol.dispose]()
    },
  }
}

const touches = (a: Rect, b: Rect): boolean =>
  a.column < b.column + b.width && b.column < a.column + a.width && a.row < b.row + b.height && b.row < a.row + a.height

const contains = (rect: Rect, column: number, row: number): boolean =>
  column >= rect.column && column < rect.column + rect.width && row >= rect.row && row < rect.row + rect.height
