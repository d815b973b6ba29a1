/** The names of launchers in hosts.yaml: a module of its own, because the code of `muster launch` takes long to load. */
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { findHostsFile, type InventorySource, loadInventory } from '../../inventory/load-inventory.ts'
import { section } from '../../scheduler/launch/rows.ts'

/** @throws MusterError `configuration` for a file with mistakes */
export async function rowNames(source: InventorySource): Promise<readonly string[]> {
  if (findHostsFile(source) === undefined) return []
  return [...(sectionOf(await loadInventory(source), section)?.keys() ?? [])]
}
