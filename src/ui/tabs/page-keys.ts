/** The keys of the pages and their tables: their footer, the help, docs/keys.md and the pages themselves derive from these. */
import { bringUpKeys } from '../bring-up/bring-up-keys.ts'
import { bringUpTable } from '../bring-up/bring-up-table.ts'
import { jobsKeys } from '../jobs/jobs-keys.ts'
import { jobsTable } from '../jobs/jobs-tables.ts'
import { hintsOf, type KeyEntry } from '../keys/key-table.ts'
import { networkKeys, networkTable } from '../network/network-page.ts'
import { packingTable } from '../packing/packing-input.ts'
import { packingKeys } from '../packing/packing-page.ts'
import { type TableFrame, tableKeys } from '../rows/table-view.ts'
import { type ConsoleState, type PageTab, tableView, titleOf } from '../state/console-state.ts'
import { fileKeys } from './files-page.ts'
import { logKeys, logTable } from './log-page.ts'

type TableOf = (state: ConsoleState) => TableFrame | undefined

/** The table of a tab that has the keys now; undefined: none, or what is shown is no table. */
const pageTables: Readonly<Partial<Record<PageTab, TableOf>>> = {
  'bring-up': bringUpTable,
  jobs: jobsTable,
  network: networkTable,
  packing: packingTable,
  log: logTable,
}

export const tableOf: TableOf = (state) => (state.tab === 'shells' ? undefined : pageTables[state.tab]?.(state))

const withTable = (tab: PageTab, own: readonly KeyEntry<ConsoleState>[]): readonly KeyEntry<ConsoleState>[] => {
  const table = pageTables[tab]
  if (table === undefined) return own
  const [filter, clear, ...rest] = tableKeys(table, tableView)
  return [...[filter, clear].flatMap((entry) => entry ?? []), ...own, ...rest]
}

export const pageKeys: Readonly<Record<PageTab, readonly KeyEntry<ConsoleState>[]>> = {
  'bring-up': withTable('bring-up', [...fileKeys, ...bringUpKeys]),
  network: withTable('network', networkKeys),
  packing: withTable('packing', [...fileKeys, ...packingKeys]),
  jobs: withTable('jobs', [...fileKeys, ...jobsKeys]),
  log: withTable('log', logKeys),
}

const HELP = ['?', 'help'] as const

/** Keys and words for the footer; none on the shells. At the root of a tab the first one is the way to the shells. */
export function pageHints(state: ConsoleState): (readonly [string, string])[] {
  if (state.tab === 'shells') return []
  const hints = hintsOf(pageKeys[state.tab], state)
  const { cameFrom } = state
  const back = hints.find(([key]) => key === 'Esc') ?? (cameFrom && (['Esc', titleOf(cameFrom)] as const))
  // Of several things that Esc does, the first comes first.
  return [back ?? ['1', 'shells'], HELP, ...hints.filter(([key]) => key !== 'Esc')]
}
