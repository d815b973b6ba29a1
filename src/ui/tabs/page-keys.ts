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

const HELP = ['?', 'help'] as const

/** Keys and words for the footer; none on the shells. At the root of a tab the first one is the way to the shells. */
export function pageHints(state: ConsoleState): (readonly [string, string])[] {
  if (state.tab === 'shells') return []
  const hints = hintsOf(pageKeys[state.tab], state)
  const back = hints.find(([key]) => key === 'Esc')
  return [back ?? ['1', 'shells'], HELP, ...hints.filter((hint) => hint !== back)]
}
