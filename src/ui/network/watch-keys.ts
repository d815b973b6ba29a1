/** The keys of the watched hosts, for the verb's screen and for the console's tab. */
import type { KeyEntry } from '../keys/key-table.ts'
import type { ConsoleState } from '../state/console-state.ts'
import type { WatchView } from './watch-view.ts'

const define = <const T extends readonly KeyEntry<WatchView>[]>(keys: T): T => keys

export const watchKeys = define([
  { id: 'back', keys: ['q', 'Esc'], title: 'back', help: 'Back from a host to the table, and from the table out.' },
  {
    id: 'details',
    keys: ['Enter', 'Space'],
    title: 'details',
    help: 'Charts of the last 15 minutes of the chosen host.',
    isMeant: ({ isDetailed }) => !isDetailed,
  },
  {
    id: 'sort',
    keys: ['s'],
    title: 'sort',
    help: 'Sorts by the next column.',
    isMeant: ({ isDetailed }) => !isDetailed,
  },
  { id: 'up', keys: ['Up', 'k'], help: 'The host above.' },
  { id: 'down', keys: ['Down', 'j'], help: 'The host below.' },
  { id: 'page-up', keys: ['PageUp', 'b'], help: 'Ten hosts up.' },
  { id: 'page-down', keys: ['PageDown', 'f'], help: 'Ten hosts down.' },
])

/** What the tab has besides. */
export const recordingKeys = define([
  {
    id: 'record',
    keys: ['r'],
    title: 'record',
    help: 'Begins to keep what is seen in a file, or ends that.',
  },
  {
    id: 'replay',
    keys: ['o'],
    title: 'replay',
    help: 'Shows the newest recording again; once more: the one before. In it `p` halts, the arrows left and right step by ten seconds, `q` leads back.',
  },
])

/** The same, for the tab. */
export const networkKeys: readonly KeyEntry<ConsoleState>[] = [
  ...watchKeys.map((entry: KeyEntry<WatchView>) => {
    const { isMeant, ...rest } = entry
    return isMeant === undefined ? rest : { ...rest, isMeant: ({ watch }: ConsoleState) => isMeant(watch.view) }
  }),
  ...recordingKeys.map(({ id, keys, title, help }) => ({ id, keys, title, help })),
]
