/** The present arrangement as a scene for the compositor. */
import type { CellGrid } from '../../terminal/cells.ts'
import { dialogRect } from '../components/dialog-box.tsx'
import type { Rect, Scene } from '../compositor/scene.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { themes } from '../theme/theme.ts'
import { areaOf, layoutPanel } from '../work-views/panel.ts'
import type { ConsoleApp } from './console-app.ts'
import { paneView } from './pane-view.ts'

/** `drawn`: the state that the chrome shows, which may be a moment older than the console's. */
export function buildScene(app: ConsoleApp, chrome: CellGrid, drawn: ConsoleState): Scene {
  const { state } = app
  const theme = themes[state.themeName]
  const overlays: Rect[] =
    drawn.mode.kind === 'dialog' ? [dialogRect(drawn.mode.dialog, drawn.columns, drawn.rows)] : []
  const { columns, rows } = state
  if (app.page) {
    const panes = app.page.panes(areaOf(state), theme)
    return { columns, rows, chrome, panes, overlays, cursor: undefined }
  }
  const panes = app.arrangement.placed.map(({ hosts, rect }) => {
    const [lead = ''] = hosts
    return paneView({
      state,
      theme,
      hosts,
      rect,
      screen: app.views.screen(lead),
      highlights: [
        ...(state.showsDifferences ? app.comparison.highlights(lead, theme) : []),
        ...app.scroll.highlights(lead, theme),
      ],
    })
  })
  const focused = panes.find(
    (_, index) => state.focus !== undefined && app.arrangement.placed[index]?.hosts.includes(state.focus),
  )
  const isTyping = state.mode.kind === 'typing' && state.panel?.hasKeys !== true
  const cursor = isTyping && focused && state.receivers.size > 0 ? { pane: focused.host } : undefined
  const { panel: panelRect } = layoutPanel(state)
  const panel = panelRect && app.work.pane(panelRect, theme)
  return { columns, rows, chrome, panes: panel ? [...panes, panel] : panes, overlays, cursor }
}
