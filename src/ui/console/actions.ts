/** What each action of the registry does. The console gives the effects; the table says which belongs to which id. */
import type { ActionId } from '../keys/registry.ts'
import * as receivers from '../state/receivers.ts'
import type { Console } from './console.ts'
import * as openers from './openers.ts'

/** Actions after which arrows and Space go on choosing panes. */
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

export const actions: Readonly<Record<ActionId, (console: Console) => void>> = {
  'receive-toggle': (console) => console.change((state) => receivers.toggleReceivers(state, console.focusedHosts())),
  'receive-all': (console) => console.change(receivers.allReceive),
  'receive-none': (console) => console.change(receivers.nobodyReceives),
  'receive-invert': (console) => console.change(receivers.invertReceivers),
  'receive-different': (console) =>
    console.change((state) => receivers.differentReceive(state, console.comparison.refresh())),
  'receive-group': (console) => openers.openGroups(console),
  'receive-expression': (console) => openers.openHostSet(console),
  'receive-solo': (console) => console.change((state) => receivers.toggleSolo(state, console.focusedHosts())),
  'focus-left': (console) => console.moveFocus('left'),
  'focus-right': (console) => console.moveFocus('right'),
  'focus-up': (console) => console.moveFocus('up'),
  'focus-down': (console) => console.moveFocus('down'),
  'focus-next': (console) => console.stepFocus(1),
  'focus-previous': (console) => console.stepFocus(-1),
  'page-next': (console) => console.turnPage(1),
  'page-previous': (console) => console.turnPage(-1),
  'pane-larger': (console) => console.resizePanes(PANE_STEP.columns, PANE_STEP.rows),
  'pane-smaller': (console) => console.resizePanes(-PANE_STEP.columns, -PANE_STEP.rows),
  zoom: (console) => console.change((state) => ({ isZoomed: !state.isZoomed })),
  fold: (console) => console.change((state) => ({ isFolded: !state.isFolded, isZoomed: false })),
  differences: (console) => console.change((state) => ({ showsDifferences: !state.showsDifferences })),
  scroll: (console) => console.scroll.enter(console.focusedHosts()[0]),
  macro: (console) => openers.openMacros(console),
  paste: (console) => openers.openPaste(console),
  record: (console) => console.recording.toggle(),
  reconnect: (console) => console.ports.fleet.reconnect(console.focusedHosts()),
  'reconnect-all': (console) => console.ports.fleet.reconnect([...console.state.hosts.keys()]),
  'add-host': (console) => openers.openAddHost(console),
  'close-host': (console) => openers.openCloseHost(console),
  'save-set': (console) => openers.openSaveSet(console),
  run: (console) => console.work.ask('run'),
  copy: (console) => console.work.ask('copy'),
  ray: (console) => console.rayLine.open(),
  panel: (console) => console.work.toggleKeys(),
  'tab-shells': (console) => console.showTab('shells'),
  'tab-bring-up': (console) => console.showTab('bring-up'),
  'tab-network': (console) => console.showTab('network'),
  'tab-packing': (console) => console.showTab('packing'),
  'tab-jobs': (console) => console.showTab('jobs'),
  'tab-log': (console) => console.showTab('log'),
  palette: (console) => openers.openPalette(console, (id) => actions[id](console)),
  help: (console) => openers.openHelp(console),
  redraw: (console) => console.options.onRedraw(),
  quit: openers.askToLeave,
}
