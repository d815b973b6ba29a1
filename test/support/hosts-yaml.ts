/** hosts.yaml with the sections of all areas, as the program reads it. */
import { fileSections, loadAreas } from '../../src/cli/bring-up/areas.ts'
import { parseHostsYaml } from '../../src/inventory/hosts-yaml.ts'
import type { Inventory } from '../../src/inventory/inventory.ts'

export const SECTIONS = await fileSections()
export const AREA_MAKERS = await loadAreas()

export function readInventory(text: string, file = 'hosts.yaml'): Inventory {
  return parseHostsYaml(text, file, SECTIONS)
}
