/** The panel's look: its frame, title and rows, as a pane that no host stands behind. Pure. */
import { BOLD } from '../../terminal/cells.ts'
import type { PaneView, Rect, Span } from '../compositor/compositor.ts'
import { labelStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { isBusy, type Panel, panelName } from './panel.ts'
import { clipRow, documentRows, firstRow, type PanelDocument, type PanelRow } from './panel-document.ts'

/** No host is named so. */
const PANEL_HOST = ''

export type PanelPaneInput = {
  readonly panel: Panel
  readonly document: PanelDocument
  readonly rect: Rect
  readonly theme: Theme
}

export function panelPane({ panel, document, rect, theme }: PanelPaneInput): PaneView {
  const { hasKeys } = panel
  const rows = documentRows(rect.height, document)
  const first = firstRow(panel, document, rows)
  const count = Math.max(0, Math.min(rows, document.length - first))
  const shown = [...document.head, ...Array.from({ length: count }, (_, index) => document.row(first + index))]
  const blank: PanelRow[] = Array.from({ length: Math.max(0, rect.height - 2 - shown.length) }, () => [])
  return {
    host: PANEL_HOST,
    rect,
    screen: undefined,
    lines: hasKeys ? 'double' : 'light',
    frameStyle: styleOf(hasKeys ? theme.accent : theme.frame, undefined, hasKeys ? BOLD : 0),
    title: [{ text: ` ${panelName(panel)} `, style: titleStyle(theme, hasKeys) }],
    badges: badges(panel, theme, first, count, document.length),
    notice: [...shown, ...blank].slice(0, Math.max(0, rect.height - 2)).map((row) => clipRow(row, rect.width - 2)),
    isDimmed: false,
    highlights: [],
  }
}

const titleStyle = (theme: Theme, hasKeys: boolean) =>
  hasKeys
    ? labelStyle(theme, theme.name === 'light' ? '#ffffff' : theme.receivingText, theme.accent)
    : mutedStyle(theme)

function badges(panel: Panel, theme: Theme, first: number, count: number, length: number): Span[] {
  const spans: Span[] = []
  if (length > count) spans.push({ text: ` ${first + 1}–${first + count} of ${length} `, style: mutedStyle(theme) })
  if (isBusy(panel)) spans.push({ text: ' … ', style: styleOf(theme.warning, undefined, BOLD) })
  return spans
}
