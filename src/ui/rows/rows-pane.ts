/** Rows in a frame with a title, as a pane that no host stands behind. Pure. */
import { BOLD } from '../../terminal/cells.ts'
import type { PaneView, Rect } from '../compositor/scene.ts'
import { labelStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { clipRow, documentRows, firstRow, type Row, type RowDocument, type ScrollPlace } from './row-document.ts'

export type RowsPaneInput = {
  /** Among the panes of the screen; no host has it for its name: it is empty, or begins with a blank. */
  readonly id: string
  readonly title: string
  /** Its frame shows that keys go here. */
  readonly hasKeys: boolean
  /** Something in it is still going on. */
  readonly isBusy: boolean
  readonly document: RowDocument
  readonly place: ScrollPlace
  readonly rect: Rect
  readonly theme: Theme
}

export function rowsPane({ id, title, hasKeys, isBusy, document, place, rect, theme }: RowsPaneInput): PaneView {
  const rows = documentRows(rect.height, document)
  const first = firstRow(place, document, rows)
  const count = Math.max(0, Math.min(rows, document.length - first))
  const shown = [...document.head, ...Array.from({ length: count }, (_, index) => document.row(first + index))]
  const blank: Row[] = Array.from({ length: Math.max(0, rect.height - 2 - shown.length) }, () => [])
  const range = ` ${first + 1}–${first + count} of ${document.length} `
  return {
    host: id,
    rect,
    screen: undefined,
    lines: hasKeys ? 'double' : 'light',
    frameStyle: styleOf(hasKeys ? theme.accent : theme.frame, undefined, hasKeys ? BOLD : 0),
    title: [{ text: ` ${title} `, style: titleStyle(theme, hasKeys) }],
    badges: [
      ...(document.length > count ? [{ text: range, style: mutedStyle(theme) }] : []),
      ...(isBusy ? [{ text: ' … ', style: styleOf(theme.warning, undefined, BOLD) }] : []),
    ],
    notice: [...shown, ...blank].slice(0, Math.max(0, rect.height - 2)).map((row) => clipRow(row, rect.width - 2)),
    isDimmed: false,
    highlights: [],
  }
}

const titleStyle = (theme: Theme, hasKeys: boolean) =>
  hasKeys
    ? labelStyle(theme, theme.name === 'light' ? '#ffffff' : theme.receivingText, theme.accent)
    : mutedStyle(theme)
