/** Text that the user marks in a pane, by dragging the mouse or in scroll mode. Only this can be copied. */
import { INVERSE } from '../../terminal/cells.ts'
import type { LineMark, Screen, ScreenPlace } from '../../terminal/headless-screen.ts'
import { type PaneView, styleOf, type Theme } from '../compositor/scene.ts'

export type SelectionUnit = 'cell' | 'word' | 'line'

/** An end of the marked text. It follows its line while output scrolls. */
type End = {
  readonly mark: LineMark | undefined
  readonly place: ScreenPlace
  /** Rows from the mark to the place: of whole lines the first row is marked, which stays when they are wrapped again. */
  readonly rows: number
}

type Marked = {
  readonly host: string
  readonly screen: Screen
  readonly unit: SelectionUnit
  /** The lines are wrapped again when the width of the pane changes: then only whole lines stay marked. */
  readonly columns: number
  readonly anchor: End
  readonly end: End
}

export class TextSelection implements Disposable {
  #marked: Marked | undefined

  get host(): string | undefined {
    return this.#marked?.host
  }

  /** The line at the moving end, while whole lines of this host are marked. */
  lineOf(host: string): number | undefined {
    const marked = this.#marked
    if (marked?.host !== host || marked.unit !== 'line') return undefined
    const rows = marked.columns === marked.screen.columns ? marked.end.rows : 0
    return (placeOf(marked.end)?.line ?? 0) + rows
  }

  start(host: string, screen: Screen, place: ScreenPlace, unit: SelectionUnit): void {
    this.clear()
    const { columns } = screen
    const [anchor, end] = [endAt(screen, place, unit), endAt(screen, place, unit)]
    this.#marked = { host, screen, unit, columns, anchor, end }
  }

  extendTo(place: ScreenPlace): void {
    if (this.#marked === undefined) return
    const { screen, end, unit } = this.#marked
    end.mark?.[Symbol.dispose]()
    const columns = unit === 'line' ? screen.columns : this.#marked.columns
    this.#marked = { ...this.#marked, columns, end: endAt(screen, place, unit) }
  }

  /** False: there was none. */
  clear(): boolean {
    const marked = this.#marked
    this.#marked = undefined
    marked?.anchor.mark?.[Symbol.dispose]()
    marked?.end.mark?.[Symbol.dispose]()
    return marked !== undefined
  }

  /** Undefined: nothing is marked, or it has scrolled out of the history. */
  text(): string | undefined {
    const range = this.#range()
    return range && this.#marked?.screen.textBetween(range.from, range.to)
  }

  highlights(host: string, theme: Theme): PaneView['highlights'] {
    const range = this.#marked?.host === host ? this.#range() : undefined
    const screen = this.#marked?.screen
    if (range === undefined || screen === undefined) return []
    const { from, to } = range
    const top = screen.historyLines - screen.viewOffset
    const style =
      theme.name === 'none' ? styleOf(undefined, undefined, INVERSE) : styleOf(theme.receivingText, theme.accent)
    const rows: PaneView['highlights'][number][] = []
    for (let line = Math.max(top, from.line); line <= Math.min(to.line, top + screen.rows - 1); line++) {
      const column = line === from.line ? from.column : 0
      const end = line === to.line ? to.column : screen.columns - 1
      rows.push({ row: line - top, column, length: end - column + 1, style })
    }
    return rows
  }

  [Symbol.dispose](): void {
    this.clear()
  }

  /** Whole words or lines where these are marked; both ends included. */
  #range(): { readonly from: ScreenPlace; readonly to: ScreenPlace } | undefined {
    const marked = this.#marked
    if (marked === undefined || (marked.unit !== 'line' && marked.columns !== marked.screen.columns)) return undefined
    const ends = [placeOf(marked.anchor), placeOf(marked.end)].filter((place) => place !== undefined)
    const [from, to] = ends.toSorted((one, other) => one.line - other.line || one.column - other.column)
    if (from === undefined || to === undefined) return undefined
    const { screen, unit } = marked
    if (unit === 'cell') return { from, to }
    if (unit === 'line') {
      const [[first], [, last]] = [screen.lineAround(from.line), screen.lineAround(to.line)]
      return { from: { line: first, column: 0 }, to: { line: last, column: screen.columns - 1 } }
    }
    return { from: screen.wordAt(from)[0], to: screen.wordAt(to)[1] }
  }
}

function endAt(screen: Screen, place: ScreenPlace, unit: SelectionUnit): End {
  const [line] = unit === 'line' ? screen.lineAround(place.line) : [place.line]
  return { mark: screen.mark(line), place: { ...place, line }, rows: place.line - line }
}

function placeOf({ mark, place }: End): ScreenPlace | undefined {
  if (mark === undefined) return place
  return mark.line < 0 ? undefined : { ...place, line: mark.line }
}
