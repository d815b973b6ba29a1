/** Rows in a frame with a title: a pane without a host. Pure. */
import { BOLD } from '../../terminal/cells.ts'
import type { PaneView, Rect, Span } from '../compositor/scene.ts'
import { boldStyle, labelStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { clipRow, documentRows, firstRow, type RowDocument, type ScrollPlace } from './row-document.ts'

export type RowsPaneInput = {
  /** Among the panes of the screen: empty or with a leading space, as no host name is. */
  readonly id: string
  readonly title: string
  /** The frame shows that keys go here. */
  readonly hasKeys: boolean
  /** Something in it is still running. */
  readonly isBusy?: boolean
  readonly badges?: readonly Span[]
  readonly document: RowDocument
  /** From the first row on, unless given. */
  readonly place?: ScrollPlace
  readonly rect: Rect
  readonly theme: Theme
}

const TOP: ScrollPlace = { offset: 0, isFollowing: false }

export function rowsPane({
  id,
  title,
  hasKeys,
  isBusy,
  badges,
  document,
  place,
  rect,
  theme,
}: RowsPaneInput): PaneView {
  const rows = documentRows(rect.height, document)
  const first = firstRow(place ?? TOP, document, rows)
  const count = Math.max(0, Math.min(rows, document.length - first))
  const shown = [...document.head, ...Array.from({ length: count }, (_, index) => document.row(first + index))]
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
      ...(badges ?? []),
      ...(isBusy === true ? [{ text: ' … ', style: boldStyle(theme.warning) }] : []),
    ],
    notice: Array.from({ length: Math.max(0, rect.height - 2) }, (_, at) => clipRow(shown[at] ?? [], rect.width - 2)),
    isDimmed: false,
    highlights: [],
  }
}

const titleStyle = (theme: Theme, hasKeys: boolean) =>
  hasKeys
    ? labelStyle(theme, theme.name === 'light' ? '#ffffff' : theme.receivingText, theme.accent)
    : mutedStyle(theme)
