/** `muster [TARGET…]`: opens the console on hosts.yaml or on targets. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { InvalidArgumentError } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { addGroup } from '../../inventory/edit-hosts-yaml.ts'
import type { Host } from '../../inventory/host.ts'
import { isUserName } from '../../inventory/host-name.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { resolveTarget, type TargetOptions } from '../../inventory/inventory.ts'
import { findHostsFile, isDeclared, loadInventory } from '../../inventory/load-inventory.ts'
import { fileSections } from '../bring-up/areas.ts'
import { numberFrom, wholeNumber } from '../command-line/options.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { endpointOptions, inventorySource, selectNamed } from '../connect/endpoints.ts'
import { addClusterSshOptions, refuseClusterName, refuseClusterSshOptions } from './clusterssh-options.ts'
import { DeclaredHosts, isHostsFile, titlesOf } from './declared-hosts.ts'
import { addKeepOptions } from './keep-options.ts'
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
      .argument(
        '[targets...]',
        'hosts to open: m8 m9, m[8-10], @workers, root@h1,h2:2222, or files: lab.yaml (default: all of hosts.yaml)',
      )
      .option('-l, --user <name>', 'log in as this user, except on hosts written as user@host', userName)
      .addOption(command.createOption('--username <name>', 'the same as --user').argParser(userName).hideHelp())
      .option('-p, --port <n>', 'connect to this port, except on hosts written as host:port', wholeNumber(1, 65_535))
      .option(
        '-A, --autoclose <s>',
        'close a pane S seconds after its shell has ended (0: never; default: auto_close in preferences.yaml)',
        numberFrom(0),
      )
      .option('--new', 'open a new console even if a detached one has the same hosts')
    addKeepOptions(command, 'keep in preferences.yaml')
    addClusterSshOptions(command)
  },
  help: `
Examples:
  muster                      all hosts of ./hosts.yaml
  muster m8 m9 m10            three hosts, from hosts.yaml or ~/.ssh/config
  muster -l root 'm[8-10]'    the same, as root
  muster root@h1,h2:2222      no file needed
  muster lab.yaml gpu.yaml    two clusters, each a group: @lab, @gpu
  muster demo                 no hosts needed
  muster attach               come back to a console after Ctrl-] D
  muster help run             how to use a verb
`,
  async run(targets: readonly string[], options: Options, context: CliContext) {
    refuseClusterSshOptions(options)
    const files = filesOf(targets, options)
    const target = targetOf(targets.filter((word) => !isHostsFile(word)))
    const login = defined({ user: options.user ?? options.username, port: options.port })
    const source = inventorySource(options, context)
    for (const word of files.length === 0 ? targets : []) {
      if (/^[\w.-]+$/.test(word))
        await refuseClusterName(word, context.environment, async () => await isDeclared(word, source))
    }
    const inWorkingDirectory = (path: string) => resolve(context.workingDirectory, path)
    const words = openedBy(files, target, options, context)
    // Stdin is for keys: unlike other verbs, the console reads no host names from it.
    const selection = { mayBeEmpty: true, login, ...defined({ exclude: options.exclude }) }
    if (context.held === undefined && context.stdin.isTTY && context.stdout.isTTY) {
      const { openOrAttach } = await import('../sessions/attach.ts')
      const isNothingNamed = target === undefined && files.length === 0 && options.hosts === undefined
      const canOpen = !isNothingNamed || findHostsFile(source) !== undefined
      const findOpened = async () => {
        // What is wrong is said when the console is opened. A pipe can be read only once.
        const paths = files.length === 0 ? [findHostsFile(source) ?? []].flat() : files.map(inWorkingDirectory)
        if (paths.some((path) => statSync(path, { throwIfNoEntry: false })?.isFile() !== true)) return [words]
        const found = await openHosts(files, target, selection, options, { ...context, isQuiet: true }).catch(
          () => undefined,
        )
        return found === undefined ? [words] : [words, sameHosts(found)]
      }
      return await openOrAttach(canOpen ? findOpened : undefined, options, context)
    }
    const found = await openHosts(files, target, selection, options, context)
    const { declared, hosts, paths } = found
    const { inventory } = declared
    requireTerminal(context)
    const endpoints = declared.reach(hosts)
    // The console reports the error when it awaits them.
    endpoints.catch(() => {})
    const { runConsole } = await import('./run-console.ts')
    const { file } = inventory
    return await runConsole(context, {
      cluster: inventory.cluster ?? target ?? 'hosts',
      hosts: hosts.map(({ name, ...place }) => ({ ...place, host: name })),
      endpoints,
      groups: inventory.groups,
      options: files.length === 1 ? { ...options, ...defined({ hosts: files[0] }) } : options,
      preferences: defined({ auto_close: options.autoclose }),
      opened: (names) => {
        const opening = found.hosts.map(({ name }) => name)
        if (names.length === opening.length && opening.every((name) => names.includes(name)))
          return [words, sameHosts(found)]
        // Hosts were closed or added since, which the words do not say.
        const known = new Map([...found.hosts, ...declared.inventory.hosts].map((host) => [host.name, host]))
        return [sameHosts({ hosts: names.map((name) => known.get(name) ?? { name }), paths })]
      },
      keepsPrompts: true,
      declared,
      ...(paths.length === 0
        ? {}
        : { hostsFiles: { paths, names: () => declared.names, reload: () => declared.reload() } }),
      ...(file === undefined
        ? {}
        : {
            saveGroup: (name: string, names: readonly string[], isReplaced: boolean) =>
              saveGroup(file, name, names, isReplaced),
          }),
      resolveNewHosts: async (expression, isTaken) => [...(await declared.resolve(expression, { login, isTaken }))],
    })
  },
}

/** What to open, and the files that declare it, as absolute paths. */
type OpenedHosts = {
  readonly declared: DeclaredHosts
  readonly hosts: readonly Host[]
  readonly paths: readonly string[]
}

async function openHosts(
  files: readonly string[],
  target: string | undefined,
  selection: TargetOptions,
  options: Options,
  context: CliContext,
): Promise<OpenedHosts> {
  const resolution = endpointOptions(options, context)
  const sourceOf = (hosts = options.hosts) => inventorySource(defined({ hosts }), context)
  if (files.length > 1) {
    const titles = titlesOf(files.map((file) => resolve(context.workingDirectory, file)))
    const read = async () =>
      await Promise.all(
        files.map(async (file, index) => ({
          title: titles[index] ?? '',
          inventory: await loadInventory(sourceOf(file)),
        })),
      )
    const declared = new DeclaredHosts(await read(), resolution, read)
    const paths = files.map((file) => resolve(context.workingDirectory, file))
    return { declared, hosts: resolveTarget(declared.inventory, target, selection), paths }
  }
  const source = sourceOf(files[0])
  const { inventory, hosts } = await selectNamed(source, target, selection, context)
  const { file } = inventory
  if (file === undefined) return { declared: new DeclaredHosts(inventory, resolution), hosts, paths: [] }
  const declared = new DeclaredHosts(inventory, resolution, async () => {
    const now = await loadInventory(source)
    // When this file is missing, another one that is found must not replace it.
    if (now.file === file) return now
    throw new MusterError('configuration', `${printable(file)} no longer exists`)
  })
  return { declared, hosts, paths: [file] }
}

function userName(text: string): string {
  if (isUserName(text)) return text
  throw new InvalidArgumentError('It is not a user name.')
}

/** Several words are joined: the hosts of all of them. */
function targetOf(words: readonly string[]): string | undefined {
  if (words.length < 2) return words[0]
  return words.map((word) => (/[!&^]/.test(word) ? `(${word})` : word)).join(',')
}

/** The words that are files, not hosts. @throws MusterError `usage` */
function filesOf(words: readonly string[], { hosts }: GlobalOptions): readonly string[] {
  const files = words.filter(isHostsFile)
  if (files.length > 0 && hosts !== undefined) {
    throw new MusterError(
      'usage',
      `--hosts ${printable(hosts)} and ${printable(files[0] ?? '')} cannot be used together`,
      {
        hint: 'Name all the files without --hosts.',
      },
    )
  }
  return files
}

/** Equal for consoles on the same hosts of the same files, however these were named. */
function sameHosts({
  hosts,
  paths,
}: { readonly hosts: readonly Pick<Host, 'name' | 'user' | 'port'>[] } & Pick<OpenedHosts, 'paths'>): string {
  const own = hosts.map(({ name, user = '', port = 0 }) => JSON.stringify([name, user, port]))
  return JSON.stringify([paths.toSorted(), own.toSorted()])
}

/** Equal for consoles that the same words open. */
function openedBy(files: readonly string[], target: string | undefined, options: Options, context: CliContext): string {
  const own = files.map((file) => resolve(context.workingDirectory, file)).sort()
  const file = own.length > 0 ? own.join('\0') : findHostsFile(inventorySource(options, context))
  const { exclude, user, username, port } = options
  return JSON.stringify([file ?? '', target ?? '', exclude ?? '', user ?? username ?? '', port ?? 0])
}

/** Resolves with the notice that the console shows. */
async function saveGroup(file: string, name: string, hosts: readonly string[], isReplaced: boolean): Promise<string> {
  await addGroup(file, name, foldHostSet(hosts), await fileSections())
  return `${isReplaced ? 'replaced' : 'saved'} the group ${name}: ${foldHostSet(hosts)} in ${file}`
}
