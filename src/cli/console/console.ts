/** `muster [TARGET]`: opens the console on hosts.yaml or on a target. */
import { defined } from '../../base/defined.ts'
import { addGroup } from '../../inventory/edit-hosts-yaml.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { inventoryFromTarget, resolveTarget } from '../../inventory/inventory.ts'
import { selectHosts } from '../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { fileSections } from '../bring-up/areas.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { endpointOptions, inventorySource } from '../connect/endpoints.ts'

export const verb: VerbCode = {
  define: (command) =>
    command.argument('[target]', 'hosts to open: m[8-10], @workers, root@h1,h2:2222 (default: all of hosts.yaml)'),
  help: `
Examples:
  muster                      all hosts of ./hosts.yaml
  muster m[8-10]              three hosts, from hosts.yaml or ~/.ssh/config
  muster root@h1,h2:2222      no file needed
  muster demo                 no hosts needed
  muster help run             how to use a verb
`,
  async run(target: string | undefined, options: GlobalOptions, context: CliContext) {
    // Stdin is for keys: unlike other verbs, the console reads no host names from it.
    const selection = { mayBeEmpty: true, ...defined({ exclude: options.exclude }) }
    const { inventory, hosts } = await selectHosts(inventorySource(options, context), target, selection)
    const resolution = endpointOptions(options, context)
    const endpoints = await resolveEndpoints(inventory, hosts, resolution)
    const { requireTerminal, runConsole } = await import('./run-console.ts')
    requireTerminal(context)
    const { file } = inventory
    return await runConsole(context, {
      cluster: inventory.cluster ?? target ?? 'hosts',
      endpoints,
      groups: inventory.groups,
      options,
      declared: {
        inventory,
        endpoints: async () => await resolveEndpoints(inventory, inventory.hosts, resolution),
      },
      ...(file === undefined
        ? {}
        : { saveGroup: (name: string, names: readonly string[]) => saveGroup(file, name, names) }),
      resolveNewHosts: async (expression) => {
        const wanted =
          inventory.file === undefined ? inventoryFromTarget(expression).hosts : resolveTarget(inventory, expression)
        return [...(await resolveEndpoints(inventory, wanted, resolution))]
      },
    })
  },
}

/** Resolves with the notice that the console shows. */
async function saveGroup(file: string, name: string, hosts: readonly string[]): Promise<string> {
  await addGroup(file, name, foldHostSet(hosts), await fileSections())
  return `saved the group ${name} in ${file}: ${foldHostSet(hosts)}`
}
