/** What the keys of the watched hosts do to what is shown. Pure. */
import type { WatchedHost } from '../../ops/net/watch/watch-hosts.ts'
import { commandOf } from '../keys/key-table.ts'
import { watchKeys } from './watch-keys.ts'
import { moveSelection, nextSort, type WatchView } from './watch-view.ts'

const PAGE = 10

/** `leave`: there is nothing to go back to; undefined: the key means nothing here. */
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
    case 'up':
    case 'down':
      return moveSelection(view, hosts, command === 'up' ? -1 : 1)
    case 'page-up':
    case 'page-down':
      return moveSelection(view, hosts, command === 'page-up' ? -PAGE : PAGE)
  }
}
