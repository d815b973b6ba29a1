/**
 * Routes the mouse: to the program under the pointer if it asked for the mouse, otherwise to dialogs, bars, panes and
 * pages. Where things are comes from what was drawn.
 */
import { partsWidth, textWidth } from '../../base/text-width.ts'
import { barPartAt, dialogSpot, partAt } from '../components/layout-dialog.ts'
import { type Rect, themes } from '../compositor/scene.ts'
import type { MouseEvent } from '../keys/decode-input.ts'
import { encodeMouse, encodeWheel } from '../keys/encode-for-pane.ts'
import { type KeyGrid, keyGrid } from '../keys/key-grid.ts'
import type { ActionId } from '../keys/registry.ts'
import { type ConsoleState, type Page, toggleReceivers, toggleSolo } from '../state/console-state.ts'
import { layoutPanel } from '../work-views/panel.ts'
import type { ConsoleApp } from './console-app.ts'
import { footerBars, headerBars } from './header.ts'
import { sortByTitle } from './table-keys.ts'
import type { SelectionUnit } from './text-selection.ts'

const WHEEL_LINES = 3
/** Two clicks on one place within this time are a double click. */
const DOUBLE_MS = 400
const UNITS: readonly SelectionUnit[] = ['cell', 'word', 'line']

export type MouseTarget = {
  /** A click on a key that is shown. It types into no host. */
  press(label: string): void
  run(id: ActionId): void
}

type Press = { readonly host: string; readonly column: number; readonly row: number }
type Pane = { readonly hosts: readonly string[]; readonly rect: Rect }

export class MouseRouter {
  readonly #app: ConsoleApp
  readonly #target: MouseTarget
  /** The host whose program got a pressed button: it gets all mouse events until the button is released. */
  #dragged: string | undefined
  /** Where the left button was pressed in a shell, until it is released. */
  #pressed: Press | undefined
  #clicks = { count: 0, column: -1, row: -1, atMs: Number.NEGATIVE_INFINITY }
  /** Before the first click on a title toggled its pane; undefined: that click was on a button in the title. */
  #before: Pick<ConsoleState, 'receivers' | 'receiversBeforeSolo'> | undefined

  constructor(app: ConsoleApp, target: MouseTarget) {
    this.#app = app
    this.#target = target
  }

  handle(event: MouseEvent): void {
    const app = this.#app
    if (event.action !== 'press') return this.#handleDrag(event)
    this.#dragged = undefined
    this.#pressed = undefined
    if (event.button === 'left') {
      this.#countClick(event)
      app.clearSelection()
    }
    if (app.dialogs.current) return this.#handleDialog(event)
    const grid = keyGrid(app.state)
    if (grid && isInside(event, grid.rect)) return this.#handleGrid(grid, event)
    if (event.row === 0 || event.row === app.state.rows - 1) return this.#handleBar(event)
    if (app.page) return this.#handlePage(app.page, event, (label) => this.#target.press(label))
    const { panel } = layoutPanel(app.state)
    if (panel && isInside(event, panel)) {
      if (event.button === 'left') app.work.takeKeys(true)
      return this.#handlePage(app.work, event, (label) => app.work.handleKey(label))
    }
    const pane = app.arrangement.placed.find(({ rect }) => isInside(event, rect))
    if (!pane) return
    if (event.button === 'left') app.work.takeKeys(false)
    this.#handleShell(pane, event)
  }

  #handleDialog(event: MouseEvent): void {
    const { dialogs, state } = this.#app
    const dialog = dialogs.current
    if (state.mode.kind !== 'dialog' || dialog === undefined) return
    const view = state.mode.dialog
    const lines = wheelLines(event)
    if (lines !== 0) {
      if (dialog.wheel) return dialog.wheel(lines)
      // In a line of input alone, Up and Down mean something else.
      if (!view.lines.some(({ isSelected }) => isSelected)) return
      for (let line = 0; line < WHEEL_LINES; line++) this.#target.press(lines < 0 ? 'Up' : 'Down')
      return
    }
    const spot = event.button === 'left' && dialogs.takesClicks ? dialogSpot(view, state, event) : undefined
    if (spot === undefined) return
    if ('press' in spot) this.#target.press(spot.press)
    else dialog.pick?.(spot.line)
  }

  #handleGrid({ rows, rect }: KeyGrid, event: MouseEvent): void {
    const { column, row } = insidePane(event, rect)
    let end = 1
    const cell = rows[row]?.find(({ key, text }) => {
      end += textWidth(key + text)
      return column < end
    })
    if (event.button === 'left' && cell?.action !== undefined) this.#target.run(cell.action)
  }

  #handleBar(event: MouseEvent): void {
    if (event.button !== 'left') return
    const { state, arrangement } = this.#app
    const theme = themes[state.themeName]
    const bars = event.row === 0 ? headerBars(state, theme, arrangement) : footerBars(state, theme)
    const part = barPartAt(bars, state.columns, event.column)
    if (part?.action !== undefined) this.#target.run(part.action)
    else if (part?.press !== undefined) this.#target.press(part.press)
  }

  #handlePage(page: Pick<Page, 'scrollBy'>, event: MouseEvent, press: (label: string) => void): void {
    const pane = this.#app.drawn.find(({ rect }) => isInside(event, rect))
    const rows = wheelLines(event)
    if (rows !== 0) return pane?.mouse?.scroll ? pane.mouse.scroll(rows) : page.scrollBy(rows)
    if (event.button !== 'left' || pane === undefined) return
    const { column, row } = insidePane(event, pane.rect)
    const button = partAt(pane.notice[row - (pane.rect.height - 2 - pane.notice.length)] ?? [], column)?.press
    if (button !== undefined) return typeof button === 'string' ? press(button) : button()
    const { mouse } = pane
    if (row >= 0 && row < (mouse?.headRows ?? 0))
      return sortByTitle(this.#app, pane.host, pane.notice[row] ?? [], column)
    if (mouse?.list === undefined || row < mouse.headRows || row >= pane.rect.height - 2) return
    const at = mouse.firstRow + row - mouse.headRows
    if (at >= mouse.length) return
    // The first click has selected the row, and may have moved it.
    if (this.#clicks.count === 2) return press('Enter')
    mouse.list.select(at, column)
  }

  #handleShell(pane: Pane, event: MouseEvent): void {
    const app = this.#app
    const [lead = ''] = pane.hosts
    const isWheel = event.button.startsWith('wheel')
    const isScrolling = app.state.mode.kind === 'scroll'
    const screen = app.views.screen(lead)
    const { column, row } = insidePane(event, pane.rect)
    const isOnScreen = row >= 0 && column >= 0 && row < pane.rect.height - 2 && column < pane.rect.width - 2
    if (screen && isOnScreen && !isScrolling && screen.viewOffset === 0 && screen.modes.mouse !== 'none') {
      if (!isWheel) this.#dragged = lead
      this.#sendMouse(lead, { ...event, column, row })
      if (event.button === 'left') app.change(() => ({ focus: lead }))
      return
    }
    if (event.button === 'wheel-up' || event.button === 'wheel-down') {
      if (screen?.modes.isAlternateScreen && isOnScreen && !isScrolling) {
        const bytes = encodeWheel(event.button, WHEEL_LINES, screen.modes)
        return app.sendEach([{ hosts: [lead], bytes }])
      }
      return app.scroll.scrollBy(lead, event.button === 'wheel-up' ? WHEEL_LINES : -WHEEL_LINES)
    }
    if (event.button !== 'left') return
    if (event.row === pane.rect.row) return this.#clickFrame(pane, event.column)
    app.change(() => ({ focus: lead }))
    if (!isOnScreen || !screen || !app.canCopy) return
    this.#pressed = { host: lead, column, row }
    const unit = UNITS[this.#clicks.count - 1]
    if (unit !== undefined && unit !== 'cell') app.selection.start(lead, screen, this.#placeAt(lead, column, row), unit)
    app.options.onFramesChange()
  }

  #clickFrame(pane: Pane, column: number): void {
    const { badges = [] } = this.#app.drawn.find(({ host }) => host === pane.hosts[0]) ?? {}
    // They end two columns before the corner.
    const from = pane.rect.column + pane.rect.width - 2 - partsWidth(badges)
    const press = column < from ? undefined : partAt(badges, column - from)?.press
    if (typeof press !== 'string') return this.#clickTitle(pane)
    this.#before = undefined
    this.#app.change(() => ({ focus: pane.hosts[0] }))
    this.#target.press(press)
  }

  /** One click toggles the pane as a receiver; two select it alone, or restore the receivers. */
  #clickTitle({ hosts }: Pane): void {
    const app = this.#app
    const isDouble = this.#clicks.count === 2
    // The button has done it, and is gone.
    if (this.#clicks.count > 1 && this.#before === undefined) return
    const { receivers, receiversBeforeSolo } = app.state
    if (!isDouble) this.#before = { receivers, receiversBeforeSolo }
    app.change((state) => ({
      focus: hosts[0],
      ...(isDouble ? toggleSolo({ ...state, ...this.#before }, hosts) : toggleReceivers(state, hosts)),
    }))
  }

  /** Also while a dialog is open: a program that never gets the release keeps dragging. */
  #handleDrag(event: MouseEvent): void {
    if (this.#pressed !== undefined) return this.#select(this.#pressed, event)
    const host = this.#dragged
    if (host === undefined) return
    if (event.action === 'release') this.#dragged = undefined
    const pane = this.#paneOf(host)
    if (!pane) return
    const { column, row } = insidePane(event, pane.rect)
    this.#sendMouse(host, { ...event, column: clamp(column, pane.rect.width), row: clamp(row, pane.rect.height) })
  }

  #select(pressed: Press, event: MouseEvent): void {
    const app = this.#app
    const { host } = pressed
    const [pane, screen] = [this.#paneOf(host), app.views.screen(host)]
    if (event.action === 'release') this.#pressed = undefined
    if (!pane || !screen || app.dialogs.current) return
    if (event.action === 'release') {
      const text = app.selection.host === host ? app.selection.text() : undefined
      if (text) app.copyText(text, `from ${host}`)
      return
    }
    const inside = insidePane(event, pane.rect)
    // Beyond the edge the view follows, a line for each movement.
    if (inside.row < 0) app.scroll.scrollBy(host, 1)
    else if (inside.row >= pane.rect.height - 2) app.scroll.scrollBy(host, -1)
    const [column, row] = [clamp(inside.column, pane.rect.width), clamp(inside.row, pane.rect.height)]
    if (app.selection.host === undefined) {
      if (column === pressed.column && row === pressed.row) return
      app.selection.start(host, screen, this.#placeAt(host, pressed.column, pressed.row), 'cell')
    }
    app.selection.extendTo(this.#placeAt(host, column, row))
    app.options.onFramesChange()
  }

  #placeAt(host: string, column: number, row: number) {
    const screen = this.#app.views.screen(host)
    return { line: (screen ? screen.historyLines - screen.viewOffset : 0) + row, column }
  }

  #paneOf(host: string): Pane | undefined {
    return this.#app.arrangement.placed.find(({ hosts }) => hosts[0] === host)
  }

  #countClick({ column, row }: MouseEvent): void {
    const atMs = this.#app.clock.now()
    const { count, ...last } = this.#clicks
    const isAgain = last.column === column && last.row === row && atMs - last.atMs <= DOUBLE_MS && count < UNITS.length
    this.#clicks = { count: isAgain ? count + 1 : 1, column, row, atMs }
  }

  #sendMouse(host: string, event: MouseEvent): void {
    const screen = this.#app.views.screen(host)
    const bytes = screen && encodeMouse(event, screen.modes)
    if (bytes && bytes.length > 0) this.#app.sendEach([{ hosts: [host], bytes }])
  }
}

/** Down if positive; 0: it is no wheel. */
const wheelLines = ({ button }: MouseEvent): number =>
  button === 'wheel-up' ? -WHEEL_LINES : button === 'wheel-down' ? WHEEL_LINES : 0

/** Inside a frame of this size. */
const clamp = (at: number, size: number): number => Math.max(0, Math.min(size - 3, at))

const isInside = ({ column, row }: MouseEvent, rect: Rect): boolean =>
  column >= rect.column && column < rect.column + rect.width && row >= rect.row && row < rect.row + rect.height

const insidePane = (event: MouseEvent, rect: Rect) => ({
  column: event.column - rect.column - 1,
  row: event.row - rect.row - 1,
})
