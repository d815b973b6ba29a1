import { describe, expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import { styleOf } from '../../../../src/ui/compositor/scene.ts'
import { clipRow, skipColumns } from '../../../../src/ui/rows/rows-pane.ts'
import { layoutPanel, openPanel, type Panel } from '../../../../src/ui/work-views/panel.ts'
import { startRun } from '../../../../src/ui/work-views/run-view.ts'

const panel: Panel = openPanel(startRun('uptime', ['m1']))

const layout = (columns: number, rows: number, change: Partial<Panel> = {}, tab = 'shells') =>
  layoutPanel({ columns, rows, tab, panel: { ...panel, ...change } })

describe('the panel', () => {
  it('is beside the shells, which keep the other columns', () => {
    const { shells, panel: rect, areShellsShown } = layout(121, 40)
    expect(areShellsShown).toBe(true)
    expect(shells).toEqual({ column: 0, row: 1, width: 61, height: 38 })
    expect(rect).toEqual({ column: 61, row: 1, width: 60, height: 38 })
  })

  it('is below the shells on a narrow, high terminal', () => {
    expect(layout(80, 60)).toMatchObject({ shells: { row: 1, height: 29 }, panel: { row: 30, height: 29, width: 80 } })
  })

  it('replaces the shells on a small terminal while it has the keys, without resizing them', () => {
    const full = { column: 0, row: 1, width: 80, height: 22 }
    expect(layout(80, 24)).toEqual({ shells: full, areShellsShown: false, panel: full })
    expect(layout(80, 24, { hasKeys: false })).toEqual({ shells: full, areShellsShown: true, panel: undefined })
  })

  it('fills a large terminal while it is zoomed, and the shells keep their size', () => {
    const wide = layout(200, 50, { isWide: true })
    expect(wide.panel?.width).toBe(200)
    expect(wide.areShellsShown).toBe(false)
    expect(wide.shells).toEqual(layout(200, 50).shells)
    expect(layout(200, 50, { isWide: true, hasKeys: false }).areShellsShown).toBe(true)
  })

  it('is hidden while the log is shown', () => {
    expect(layout(200, 50, {}, 'log').panel).toBeUndefined()
  })

  it.each([
    [1, 1],
    [2, 2],
    [20, 5],
    [100, 3],
  ])('fits on a terminal of %i×%i', (columns, rows) => {
    const { shells, panel: rect } = layout(columns, rows)
    for (const area of [shells, rect]) expect(Math.min(area?.width ?? 1, area?.height ?? 1)).toBeGreaterThanOrEqual(1)
  })
})

describe('rows that are too wide', () => {
  const style = styleOf(undefined)
  const row = (...texts: string[]) => texts.map((text) => ({ text, style }))

  it.each([
    [row('abcdef'), 6, 'abcdef'],
    [row('abcdef'), 5, 'abcd…'],
    [row('abc', 'def'), 5, 'abcd…'],
    [row('abc', 'def'), 3, 'ab…'],
    [row('你好吗', 'x'), 6, '你好…'],
    [row('abc', '', 'def', 'ghi'), 4, 'abc…'],
  ])('are cut and marked (%#)', (spans, columns, expected) => {
    const text = clipRow(spans, columns)
      .map((span) => span.text)
      .join('')
    expect(text).toBe(expected)
    expect(textWidth(text)).toBeLessThanOrEqual(columns)
  })

  it('lose their first columns, also half of a wide character', () => {
    expect(skipColumns('abcdef', 2)).toBe('cdef')
    expect(skipColumns('你好', 1)).toBe(' 好')
    expect(skipColumns('你好', 9)).toBe('')
  })
})
