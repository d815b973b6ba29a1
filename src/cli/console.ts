/** `muster [TARGET]`: opens the console on hosts.yaml or on a target. */
import type { Command } from 'commander'
import { addGroup } from '../inventory/edit-hosts-yaml.ts'
import { foldHostSet } from '../inventory/host-set.ts'
import { inventoryFromTarget, resolveTarget } from '../inventory/inventory.ts'
import { selectHosts } from '../inventory/load-inventory.ts'
import { resolveEndpoints } from '../inventory/resolve-endpoints.ts'
import type { CliContext, GlobalOptions, Outcome } from './command-line/context.ts'
import { inventorySource } from './connect/inventory-source.ts'
import { requireTerminal, runConsole } from './run-console.ts'

const EXAMPLES = `
Examples:
  muster                      all hosts of ./hosts.yaml
  muster m[8-10]              three of them, or of ~/.ssh/config
  muster root@h1,h2:2222      no file needed
  muster demo                 nothing needed at all
`

export function registerConsole(program: Command, context: CliContext, outcome: Outcome): void {
  program
    .argument('[target]', 'hosts to open: m[8-10], @workers, root@h1,h2:2222 (default: all of hosts.yaml)')
    .addHelpText('after', EXAMPLES)
    .action(async (target: string | undefined) => {
      const options = program.opts<GlobalOptions>()
      const { inventory, hosts } = await selectHosts(
        inventorySource(options, context),
        target,
        options.exclude === undefined ? {} : { exclude: options.exclude },
      )
      const endpointOptions = {
        env: context.environment,
        signal: context.signal,
        ...(options.connectTimeout === undefined ? {} : { connectTimeoutMs: options.connectTimeout * 1000 }),
      }
      const endpoints = await resolveEndpoints(inventory, hosts, endpointOptions)
      requireTerminal(context)
      const { file } = inventory
      outcome.exitCode = await runConsole(context, {
        cluster: inventory.cluster ?? target ?? 'hosts',
        endpoints,
        groups: inventory.groups,
        options,
        declared: {
          inventory,
          endpoints: async () => await resolveEndpoints(inventory, inventory.hosts, endpointOptions),
        },
        ...(file === undefined
          ? {}
          : { saveGroup: (name: string, names: readonly string[]) => saveGroup(file, name, names) }),
        resolveNewHosts: async (expression) => {
          const wanted =
            inventory.file === undefined ? inventoryFromTarget(expression).hosts : resolveTarget(inventory, expression)
          return [...(await resolveEndpoints(inventory, wanted, endpointOptions))]
        },
      })
    })
}

/** Gives the sentence that the console shows. */
async function saveGroup(file: string, name: string, hosts: readonly string[]): Promise<string> {
  await addGroup(file, name, foldHostSet(hosts))
  return `${file} has the group ${name}: ${foldHostSet(hosts)}`
}
