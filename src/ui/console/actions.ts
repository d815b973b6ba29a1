/** What each action of the registry does. */
import type { ActionId } from '../keys/registry.ts'
import {
  allReceive,
  differentReceive,
  invertReceivers,
  noneReceive,
  toggleReceivers,
  toggleSolo,
} from '../state/console-state.ts'
import { TABS, type Tab } from '../tabs/tabs.ts'
import type { ConsoleApp } from './console-app.ts'
import { openMacros } from './macros.ts'
import * as dialogs from './open-dialogs.ts'

type Effect = (app: ConsoleApp) => void

/** After these actions arrows and Space keep choosing panes. */
export const CHOOSING: ReadonlySet<ActionId> = new Set([
  'receive-toggle',
  'focus-left',
  'focus-right',
  'focus-up',
  'focus-down',
  'focus-next',
  'focus-previous',
  'page-next',
  'page-previous',
])

const PANE_STEP = { columns: 8, rows: 2 }

const tabActions = Object.fromEntries(
  TABS.map(({ id }) => [`tab-${id}`, (app: ConsoleApp) => app.showTab(id)]),
) as Readonly<Record<`tab-${Tab}`, Effect>>

export const actions: Readonly<Record<ActionId, Effect>> = {
  ...tabActions,
  'receive-toggle': (app) => app.change((state) => toggleReceivers(state, app.focusedHosts())),
  'receive-all': (app) => app.change(allReceive),
  'receive-none': (app) => app.change(noneReceive),
  'receive-invert': (app) => app.change(invertReceivers),
  'receive-different': (app) => app.change((state) => differentReceive(state, app.comparison.refresh())),
  'receive-group': dialogs.openGroups,
  'receive-expression': dialogs.openHostSet,
  'receive-solo': (app) => app.change((state) => toggleSolo(state, app.focusedHosts())),
  'focus-left': (app) => app.moveFocus('left'),
  'focus-right': (app) => app.moveFocus('right'),
  'focus-up': (app) => app.moveFocus('up'),
  'focus-down': (app) => app.moveFocus('down'),
  'focus-next': (app) => app.stepFocus(1),
  'focus-previous': (app) => app.stepFocus(-1),
  'page-next': (app) => app.turnPage(1),
  'page-previous': (app) => app.turnPage(-1),
  'pane-larger': (app) => app.resizePanes(PANE_STEP.columns, PANE_STEP.rows),
  'pane-smaller': (app) => app.resizePanes(-PANE_STEP.columns, -PANE_STEP.rows),
  zoom: (app) => app.change((state) => ({ isZoomed: !state.isZoomed })),
  fold: (app) => app.change((state) => ({ isFolded: !state.isFolded, isZoomed: false })),
  differences: (app) => app.change((state) => ({ showsDifferences: !state.showsDifferences })),
  scroll: (app) => app.scroll.enter(app.focusedHosts()[0]),
  macro: openMacros,
  paste: (app) => dialogs.openPaste(app),
  record: (app) => app.recording.toggle(),
  reconnect: (app) => app.ports.fleet.reconnect(app.focusedHosts()),
  'reconnect-all': (app) => app.ports.fleet.reconnect([...app.state.hosts.keys()]),
  'add-host': dialogs.openAddHost,
  'close-host': dialogs.openCloseHost,
  'save-set': dialogs.openSaveSet,
  run: (app) => app.work.ask('run'),
  copy: (app) => app.work.ask('copy'),
  ray: (app) => app.rayLine.open(),
  panel: (app) => app.work.toggleKeys(),
  palette: (app) => dialogs.openPalette(app, (id) => actions[id](app)),
  help: dialogs.openHelp,
  redraw: (app) => app.options.onRedraw(),
  quit: dialogs.askToQuit,
}
