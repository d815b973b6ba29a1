/** The keys of the host table, in the console's tab and on the screen of `muster net watch`, and what they do. Pure. */
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { commandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { moveSelection, nextSort, type WatchView } from './watch-view.ts'

const onTable = ({ isDetailed }: WatchView): boolean => !isDetailed

export const watchKeys = keyTable<WatchView>()(
  ['back', 'q Esc', 'back', 'Go back from one host to the table; from the table, leave.'],
  ['details', 'Enter Space', 'details', 'Chart the last 15 minutes of the selected host.', onTable],
  ['sort', 's', 'sort', 'Sort by the next column.', onTable],
  ['up', 'Up k', '', 'Select the host above.'],
  ['down', 'Down j', '', 'Select the host below.'],
  ['page-up', 'PageUp b', '', 'Move ten hosts up.'],
  ['page-down', 'PageDown f', '', 'Move ten hosts down.'],
)

const REPLAY_HELP =
  'Replay the newest recording; press again for the previous one. `p` pauses, Left and Right skip ten seconds, `q` leaves.'

/** Only in the tab. */
export const recordingKeys = keyTable<ConsoleState>()(
  ['record', 'r', 'record', 'Start recording what the tab shows to a file, or stop.'],
  ['replay', 'o', 'replay', REPLAY_HELP],
)

export const networkKeys: readonly KeyEntry<ConsoleState>[] = [
  ...watchKeys.map(({ isActive, ...rest }) =>
    isActive === undefined ? rest : { ...rest, isActive: ({ watch }: ConsoleState) => isActive(watch.view) },
  ),
  ...recordingKeys,
]

const PAGE_ROWS = 10

/** `leave`: the key leaves the table; undefined: it does nothing here. */
export function changeWatch(
  view: WatchView,
  hosts: readonly WatchedHost[],
  label: string,
): WatchView | 'leave' | undefined {
  const command = commandOf(watchKeys, label)
  switch (command) {
    case undefined:
      return undefined
    case 'back':
      return view.isDetailed ? { ...view, isDetailed: false } : 'leave'
    case 'details': {
      const chosen = view.selected === undefined ? moveSelection(view, hosts, 0) : view
      return chosen.selected === undefined ? view : { ...chosen, isDetailed: true }
    }
    case 'sort':
      return nextSort(view)
    default: {
      const by = command === 'up' || command === 'down' ? 1 : PAGE_ROWS
      return moveSelection(view, hosts, command === 'up' || command === 'page-up' ? -by : by)
    }
  }
}
