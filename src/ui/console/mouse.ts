/** Routes the mouse: to the program under the pointer if it asked for the mouse, otherwise to panes, panels and pages. */
import type { Rect } from '../compositor/scene.ts'
import type { MouseEvent } from '../keys/decode-input.ts'
import { encodeMouse, encodeWheel } from '../keys/encode-for-pane.ts'
import { type Page, toggleReceivers } from '../state/console-state.ts'
import { layoutPanel } from '../work-views/panel.ts'
import type { ConsoleApp } from './console-app.ts'

const WHEEL_LINES = 3

export class MouseRouter {
  readonly #app: ConsoleApp
  /** The host whose program got a pressed button: it gets all mouse events until the button is released. */
  #dragged: string | undefined

  constructor(app: ConsoleApp) {
    this.#app = app
  }

  handle(event: MouseEvent): void {
    const app = this.#app
    if (event.action !== 'press') return this.#handleDrag(event)
    this.#dragged = undefined
    if (app.dialogs.current) return
    if (app.page) return scrollByWheel(app.page, event)
    const { panel } = layoutPanel(app.state)
    if (panel && isInside(event, panel)) {
      if (event.button === 'left') return app.work.takeKeys(true)
      return scrollByWheel(app.work, event)
    }
    const pane = app.arrangement.placed.find(({ rect }) => isInside(event, rect))
    if (!pane) return
    if (event.button === 'left') app.work.takeKeys(false)
    const [lead = ''] = pane.hosts
    const isWheel = event.button.startsWith('wheel')
    const screen = app.views.screen(lead)
    const { column, row } = insidePane(event, pane.rect)
    const isOnScreen = row >= 0 && column >= 0 && row < pane.rect.height - 2 && column < pane.rect.width - 2
    if (screen && isOnScreen && screen.viewOffset === 0 && screen.modes.mouse !== 'none') {
      if (!isWheel) this.#dragged = lead
      this.#sendMouse(lead, { ...event, column, row })
      if (event.button === 'left') app.change(() => ({ focus: lead }))
      return
    }
    if (event.button === 'wheel-up' || event.button === 'wheel-down') {
      const isForProgram = screen?.modes.isAlternateScreen && isOnScreen && app.state.mode.kind !== 'scroll'
      if (isForProgram) {
        const bytes = encodeWheel(event.button, WHEEL_LINES, screen.modes)
        return app.sendEach([{ hosts: [lead], bytes }])
      }
      return app.scroll.scrollBy(lead, event.button === 'wheel-up' ? WHEEL_LINES : -WHEEL_LINES)
    }
    if (event.button !== 'left') return
    app.change((state) => ({
      focus: lead,
      ...(event.row === pane.rect.row ? toggleReceivers(state, pane.hosts) : {}),
    }))
  }

  /** Also while a dialog is open: a program that never gets the release keeps dragging. */
  #handleDrag(event: MouseEvent): void {
    const host = this.#dragged
    if (host === undefined) return
    if (event.action === 'release') this.#dragged = undefined
    const pane = this.#app.arrangement.placed.find(({ hosts }) => hosts[0] === host)
    if (!pane) return
    const { column, row } = insidePane(event, pane.rect)
    const clamp = (at: number, size: number): number => Math.max(0, Math.min(size - 3, at))
    this.#sendMouse(host, {
      ...event,
      column: clamp(column, pane.rect.width),
      row: clamp(row, pane.rect.height),
    })
  }

  #sendMouse(host: string, event: MouseEvent): void {
    const screen = this.#app.views.screen(host)
    const bytes = screen && encodeMouse(event, screen.modes)
    if (bytes && bytes.length > 0) this.#app.sendEach([{ hosts: [host], bytes }])
  }
}

function scrollByWheel(rows: Pick<Page, 'scrollBy'>, { button }: MouseEvent): void {
  if (button === 'wheel-up' || button === 'wheel-down')
    rows.scrollBy(button === 'wheel-up' ? -WHEEL_LINES : WHEEL_LINES)
}

const isInside = ({ column, row }: MouseEvent, rect: Rect): boolean =>
  column >= rect.column && column < rect.column + rect.width && row >= rect.row && row < rect.row + rect.height

const insidePane = (event: MouseEvent, rect: Rect) => ({
  column: event.column - rect.column - 1,
  row: event.row - rect.row - 1,
})
