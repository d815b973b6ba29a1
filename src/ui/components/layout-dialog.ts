/** Where bars and dialogs have their parts. Without Ink, which is loaded after the first screen. */
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { clip, clipStart, partsWidth, segmenter, textWidth, wrapText } from '../../base/text-width.ts'
import type { Rect, Theme, ThemeColour } from '../compositor/scene.ts'
import type { DialogLine, DialogView } from '../dialogs/dialog.ts'
import { type KeyHint, keyRows } from '../dialogs/key-hints.ts'
import type { ActionId } from '../keys/registry.ts'

export type BarPart = {
  readonly colour?: ThemeColour
  readonly fill?: ThemeColour
  readonly isFilled?: boolean
  readonly isBold?: boolean
  readonly text: string
  /** What a click does: an action, or the key that it presses (after the leader, if written so). */
  readonly action?: ActionId
  readonly press?: string
}

export type BarProps = {
  readonly theme: Theme
  readonly columns: number
  readonly left: readonly BarPart[]
  readonly right: readonly BarPart[]
}

/** The part that is drawn in a column. */
export function barPartAt({ left, right }: Pick<BarProps, 'left' | 'right'>, columns: number, column: number) {
  const gap = Math.max(0, columns - partsWidth(left) - partsWidth(right))
  return partAt<BarPart>([...left, { text: ' '.repeat(gap) }, ...right], column)
}

/** Of texts that are drawn one after the other, the one in a column. */
export function partAt<P extends { readonly text: string }>(parts: readonly P[], column: number): P | undefined {
  let end = 0
  return parts.find(({ text }) => {
    end += textWidth(text)
    return column < end
  })
}

const ERROR_ROWS = 3

/** `at`: its index in the view, since one line may be wrapped into several. */
type BodyLine = DialogLine & { readonly at: number }

type Layout = {
  readonly rect: Rect
  readonly hasBlanks: boolean
  readonly hasTitle: boolean
  readonly errors: string[]
  /** Those that fit. */
  readonly body: readonly BodyLine[]
  /** The rows of keys below the body. */
  readonly keys: readonly (readonly KeyHint[])[]
}

const WIDTH = 72
/** Of a dialog whose lines change while one types. */
const STEADY_WIDTH = 100

/**
 * On a low screen a dialog loses first its blank lines, then its title, then the lines far from the selection. A steady one
 * has a width of its own and is at the top, so that what is typed stays in its place when the lines below it change.
 */
export function layoutDialog(view: DialogView, columns: number, rows: number): Layout {
  const isSteady = view.isSteady ?? view.input !== undefined
  const wanted = view.width ?? (isSteady ? STEADY_WIDTH : WIDTH)
  const widest = Math.max(
    0,
    ...view.lines.map((line) => textWidth(line.text) + (line.right ? textWidth(line.right) + 3 : 0)),
  )
  const needs = isSteady ? wanted : Math.max(wanted, Math.min(widest + 6, 120))
  const width = Math.max(2, Math.min(columns < 40 ? columns : columns - 2, needs))
  const errors = view.input?.error ? wrapText(view.input.error, width - 6).slice(0, ERROR_ROWS) : []
  const input = view.input ? 1 : 0
  const lines = wrappedLines(
    view.lines.map((line, at) => ({ ...line, at })),
    width - 6,
  )
  const keys = keyRows(view, width - 2)
  const needed = input + errors.length + Math.max(1, lines.length) + keys.length
  // The frame, the title, and the blank lines: under the title, under the input, over the keys.
  const full = needed + 3 + 2 + input
  const room = rows < 12 ? rows : rows - 2
  const hasBlanks = full <= room || room >= 16
  const hasTitle = hasBlanks || input + errors.length + 1 + keys.length + 3 <= room
  const height = Math.max(2, Math.min(room, hasBlanks ? full : needed + 2 + (hasTitle ? 1 : 0)))
  const top = rows < 12 ? 0 : 1
  const rect = {
    column: Math.floor((columns - width) / 2),
    row: isSteady ? top : Math.max(top, Math.floor((rows - height) / 3)),
    width,
    height,
  }
  const blanks = hasBlanks ? 2 + input : 0
  const body = linesInView(lines, height - 2 - keys.length - blanks - (hasTitle ? 1 : 0) - input - errors.length)
  return { rect, hasBlanks, hasTitle, errors, body, keys }
}

/** Text to read is wrapped; items of a list stay on one line. */
function wrappedLines(lines: readonly BodyLine[], width: number): readonly BodyLine[] {
  if (lines.some((line) => line.isSelected)) return lines
  return lines.flatMap((line) =>
    line.right !== undefined || textWidth(line.text) <= width + 2
      ? [line]
      : wrapText(line.text, width).map((text) => ({ ...line, text })),
  )
}

/** The dialog's place: in the middle, never larger than the screen. */
export function dialogRect(view: DialogView, columns: number, rows: number): Rect {
  return layoutDialog(printableView(view), columns, rows).rect
}

/** As many lines as fit, including the selected one. A text that is cut off ends in `…`. */
function linesInView(lines: readonly BodyLine[], height: number): readonly BodyLine[] {
  if (lines.length <= height) return lines
  const selected = lines.findIndex((line) => line.isSelected)
  if (selected < 0)
    return lines
      .slice(0, Math.max(0, height))
      .map((line, index) => (index === height - 1 ? { ...line, text: `${line.text} …` } : line))
  const start = Math.min(Math.max(0, selected - height + 1), lines.length - height)
  return lines.slice(start, start + Math.max(0, height))
}

/** Titles, prompts and errors may come from servers: characters that could act are shown instead. */
export function printableView(view: DialogView): DialogView {
  const { input } = view
  return {
    ...view,
    title: printable(view.title),
    lines: view.lines.map((line) => ({
      ...line,
      text: printable(line.text),
      ...defined({ right: line.right && printable(line.right) }),
    })),
    ...defined({
      input: input && {
        ...input,
        label: printable(input.label),
        ...defined({ error: input.error && printable(input.error) }),
      },
    }),
  }
}

/** The input line: the part of the text around the cursor, which is on `at`. Together these are `width` columns wide. */
export function shownInput({ label, text, cursor, placeholder = '' }: NonNullable<DialogView['input']>, width: number) {
  const shownLabel = clip(`  ${label} `, Math.max(Math.floor(width / 2), width - MIN_INPUT))
  const shown = text === '' ? placeholder : text
  let room = width - textWidth(shownLabel)
  const [first] = segmenter.segment(shown.slice(cursor))
  const at = clip(first?.segment ?? ' ', room)
  // The last column stays empty.
  room = Math.max(0, room - textWidth(at) - 1)
  const before = clipStart(shown.slice(0, cursor), room)
  const after = clip(shown.slice(cursor + (first?.segment.length ?? 0)), room - textWidth(before))
  const used = textWidth(shownLabel) + textWidth(before) + textWidth(at) + textWidth(after)
  return { label: shownLabel, before, at, after: after + ' '.repeat(Math.max(0, width - used)) }
}

/** Columns for the typed text. */
const MIN_INPUT = 5

/** What a dialog shows at a place of the screen: the index of a line, or the key of a button. */
export function dialogSpot(
  given: DialogView,
  { columns, rows }: { readonly columns: number; readonly rows: number },
  place: { readonly column: number; readonly row: number },
): { readonly line: number } | { readonly press: string } | undefined {
  const view = printableView(given)
  const { rect, hasBlanks, hasTitle, errors, body, keys } = layoutDialog(view, columns, rows)
  const [column, row] = [place.column - rect.column - 1, place.row - rect.row - 1]
  if (column < 0 || column >= rect.width - 2) return undefined
  const blank = hasBlanks ? 1 : 0
  const top = (hasTitle ? 1 : 0) + blank + (view.input ? 1 + blank : 0) + errors.length
  const line = row < top ? undefined : body[row - top]
  if (line !== undefined) return { line: line.at }
  const hints = keys[row - top - body.length - blank]
  const press = hints && partAt(hints, column)?.press
  return press === undefined ? undefined : { press }
}
