/** Where a verb's inventory comes from: what `--hosts` says, else what is found. */
import type { InventorySource } from '../../inventory/load-inventory.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'

export function inventorySource({ hosts }: Pick<GlobalOptions, 'hosts'>, context: CliContext): InventorySource {
  const { environment: env, workingDirectory: cwd, signal } = context
  return { cwd, env, signal, ...(hosts === undefined ? {} : { file: hosts }) }
}
