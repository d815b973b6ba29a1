/** The keys of the pages: their footer, the help, docs/keys.md and the pages themselves derive from these tables. */
import { bringUpKeys } from '../bring-up/bring-up-keys.ts'
import { jobsKeys } from '../jobs/jobs-keys.ts'
import { hintsOf, type KeyEntry } from '../keys/key-table.ts'
import { networkKeys } from '../network/network-page.ts'
import { packingKeys } from '../packing/packing-page.ts'
import type { ConsoleState, PageTab } from '../state/console-state.ts'
import { logKeys } from './log-page.ts'

export const pageKeys: Readonly<Record<PageTab, readonly KeyEntry<ConsoleState>[]>> = {
  'bring-up': bringUpKeys,
  network: networkKeys,
  packing: packingKeys,
  jobs: jobsKeys,
  log: logKeys,
}

/** Keys and words for the footer; none on the shells. */
export function pageHints(state: ConsoleState): (readonly [string, string])[] {
  return state.tab === 'shells' ? [] : hintsOf(pageKeys[state.tab], state)
}
