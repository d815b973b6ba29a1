/** The keys of the host table, in the console's tab and on the screen of `muster net watch`, and what they do. Pure. */
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { commandOf, type KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { moveSelection, nextSort, type WatchView } from './watch-view.ts'

const define = <const T extends readonly KeyEntry<WatchView>[]>(keys: T): T => keys

const onTable = ({ isDetailed }: WatchView): boolean => !isDetailed

export const watchKeys = define([
  { id: 'back', keys: ['q', 'Esc'], title: 'back', help: 'From one host to the table; from the table, leave.' },
  {
    id: 'details',
    keys: ['Enter', 'Space'],
    title: 'details',
    help: 'Chart the last 15 minutes of the selected host.',
    isMeant: onTable,
  },
  { id: 'sort', keys: ['s'], title: 'sort', help: 'Sort by the next column.', isMeant: onTable },
  { id: 'up', keys: ['Up', 'k'], help: 'Select the host above.' },
  { id: 'down', keys: ['Down', 'j'], help: 'Select the host below.' },
  { id: 'page-up', keys: ['PageUp', 'b'], help: 'Move ten hosts up.' },
  { id: 'page-down', keys: ['PageDown', 'f'], help: 'Move ten hosts down.' },
])

/** Only in the tab. */
export const recordingKeys = define([
  { id: 'record', keys: ['r'], title: 'record', help: 'Start recording what the tab shows to a file, or stop.' },
  {
    id: 'replay',
    keys: ['o'],
    title: 'replay',
    help: 'Replay the newest recording; press again for the one before. `p` pauses, Left and Right skip ten seconds, `q` leaves.',
  },
])

export const networkKeys: readonly KeyEntry<ConsoleState>[] = [
  ...watchKeys.map((entry: KeyEntry<WatchView>) => {
    const { isMeant, ...rest } = entry
    return isMeant === undefined ? rest : { ...rest, isMeant: ({ watch }: ConsoleState) => isMeant(watch.view) }
  }),
  ...recordingKeys.map(({ id, keys, title, help }) => ({ id, keys, title, help })),
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
