/** `muster [TARGET…]`: opens the console on hosts.yaml or on targets. */
import { InvalidArgumentError } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { addGroup } from '../../inventory/edit-hosts-yaml.ts'
import { isUserName } from '../../inventory/host-name.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { inventoryFromTarget, resolveTarget } from '../../inventory/inventory.ts'
import { findHostsFile, selectHosts } from '../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { fileSections } from '../bring-up/areas.ts'
import { numberFrom, wholeNumber } from '../command-line/options.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { endpointOptions, inventorySource } from '../connect/endpoints.ts'
import { addClusterSshOptions, refuseClusterSshOptions } from './clusterssh-options.ts'
import { requireTerminal } from './require-terminal.ts'

type Options = GlobalOptions & {
  readonly user?: string
  readonly username?: string
  readonly port?: number
  /** Seconds. */
  readonly autoclose?: number
  readonly keep?: boolean
  readonly new?: boolean
}

export const verb: VerbCode = {
  define(command) {
    command
      .argument('[targets...]', 'hosts to open: m8 m9, m[8-10], @workers, root@h1,h2:2222 (default: all of hosts.yaml)')
      .option('-l, --user <name>', 'log in as this user, except on hosts written as user@host', userName)
      .addOption(command.createOption('--username <name>', 'the same as --user').argParser(userName).hideHelp())
      .option('-p, --port <n>', 'connect to this port, except on hosts written as host:port', wholeNumber(1, 65_535))
      .option(
        '-A, --autoclose <s>',
        'close a pane S seconds after its shell has ended (0: never; default: auto_close in preferences.yaml)',
        numberFrom(0),
      )
      .option('--keep', 'go on detached when the terminal is lost (default: keep in preferences.yaml)')
      .option('--new', 'open another console although a detached one has the same hosts')
    addClusterSshOptions(command)
  },
  help: `
Examples:
  muster                      all hosts of ./hosts.yaml
  muster m8 m9 m10            three hosts, from hosts.yaml or ~/.ssh/config
  muster -l root m[8-10]      the same, as root
  muster root@h1,h2:2222      no file needed
  muster demo                 no hosts needed
  muster attach               come back to a console after Ctrl-] D
  muster help run             how to use a verb
`,
  async run(targets: readonly string[], options: Options, context: CliContext) {
    refuseClusterSshOptions(options)
    const target = targetOf(targets)
    const login = defined({ user: options.user ?? options.username, port: options.port })
    const opened = openedBy(target, options, context)
    if (context.held === undefined && context.stdin.isTTY && context.stdout.isTTY) {
      const { openOrAttach } = await import('../sessions/attach.ts')
      return await openOrAttach(opened, options.new === true, context)
    }
    // Stdin is for keys: unlike other verbs, the console reads no host names from it.
    const selection = { mayBeEmpty: true, login, ...defined({ exclude: options.exclude }) }
    const { inventory, hosts } = await selectHosts(inventorySource(options, context), target, selection)
    const resolution = endpointOptions(options, context)
    const endpoints = await resolveEndpoints(inventory, hosts, resolution)
    requireTerminal(context)
    const { runConsole } = await import('./run-console.ts')
    const { file } = inventory
    return await runConsole(context, {
      cluster: inventory.cluster ?? target ?? 'hosts',
      endpoints,
      groups: inventory.groups,
      options,
      preferences: defined({ auto_close: options.autoclose }),
      opened,
      declared: {
        inventory,
        endpoints: async () => await resolveEndpoints(inventory, inventory.hosts, resolution),
      },
      ...(file === undefined
        ? {}
        : { saveGroup: (name: string, names: readonly string[]) => saveGroup(file, name, names) }),
      resolveNewHosts: async (expression) => {
        const wanted =
          inventory.file === undefined
            ? inventoryFromTarget(expression, { login }).hosts
            : resolveTarget(inventory, expression, { login })
        return [...(await resolveEndpoints(inventory, wanted, resolution))]
      },
    })
  },
}

function userName(text: string): string {
  if (isUserName(text)) return text
  throw new InvalidArgumentError('It is not a user name.')
}

/** Several words name the hosts of all of them. @throws MusterError `usage` for words that are no hosts */
function targetOf(words: readonly string[]): string | undefined {
  const file = words.find((word) => /\.ya?ml$/.test(word))
  if (file !== undefined) {
    throw new MusterError('usage', `${printable(file)} is a file, not a host`, {
      hint: `Run: muster --hosts ${printable(file)}`,
    })
  }
  if (words.length < 2) return words[0]
  return words.map((word) => (/[!&^]/.test(word) ? `(${word})` : word)).join(',')
}

/** Equal for consoles on the same hosts. */
function openedBy(target: string | undefined, options: Options, context: CliContext): string {
  const file = findHostsFile(inventorySource(options, context))
  const { exclude, user, username, port } = options
  return JSON.stringify([file ?? '', target ?? '', exclude ?? '', user ?? username ?? '', port ?? 0])
}

/** Resolves with the notice that the console shows. */
async function saveGroup(file: string, name: string, hosts: readonly string[]): Promise<string> {
  await addGroup(file, name, foldHostSet(hosts), await fileSections())
  return `saved the group ${name} in ${file}: ${foldHostSet(hosts)}`
}
