/** Finds and reads the inventory: `--hosts FILE`, else ./hosts.yaml, else the one of the configuration directory. */
import { existsSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { MusterError } from '../base/errors.ts'
import { fileReason } from '../base/file-reason.ts'
import { printable } from '../base/printable.ts'
import { configurationDirectory } from '../base/user-directories.ts'
import type { Host } from './host.ts'
import { parseHostsYaml } from './hosts-yaml.ts'
import { type Inventory, inventoryFromTarget, resolveTarget, type TargetOptions } from './inventory.ts'
import { nearestWord } from './nearest-word.ts'
import { readHostsFile } from './read-hosts-file.ts'
import type { Section } from './section.ts'
import { refuseForeignFile } from './trusted-place.ts'

export type InventorySource = {
  /** What `--hosts` says; `none`: no file at all. */
  readonly file?: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The areas' parts of the file; loaded when there is a file. */
  sections(): Promise<readonly Section[]>
  /** Ends the wait for a file that is a pipe. */
  readonly signal?: AbortSignal
}

const FILE_NAME = 'hosts.yaml'
const decoder = new TextDecoder('utf-8', { fatal: true })

function configurationFile(env: InventorySource['env']): string {
  return join(configurationDirectory(env), 'muster', FILE_NAME)
}

/** The absolute path of the hosts.yaml that is meant, or undefined where there is none. */
export function findHostsFile({ file, cwd, env }: InventorySource): string | undefined {
  if (file === 'none') return undefined
  if (file !== undefined) return resolve(cwd, file)
  return [join(cwd, FILE_NAME), configurationFile(env)].find((path) => existsSync(path))
}

/** @throws MusterError `configuration`, with all problems of the file. */
export async function loadInventory(source: InventorySource): Promise<Inventory> {
  const path = findHostsFile(source)
  if (path === undefined) {
    throw new MusterError(
      'configuration',
      `there is no ./${FILE_NAME} and no ${printable(configurationFile(source.env))}`,
      {
        hint: 'Name hosts on the command line (muster m[8-10]), give a file with --hosts, or make one with `muster import`.',
      },
    )
  }
  // A file below the working directory is called as the user would call it.
  const near = relative(source.cwd, path)
  const shown = near !== '' && !near.startsWith('..') ? near : path
  if (source.file === undefined) refuseForeignFile(path, shown)
  let text: string
  try {
    text = decoder.decode(await readHostsFile(path, source))
  } catch (error) {
    source.signal?.throwIfAborted()
    throw new MusterError('configuration', `${printable(shown)} cannot be read: ${fileReason(error)}`, {
      cause: error,
      hint: 'Check the path after --hosts, its permissions, and what it holds.',
    })
  }
  return { ...parseHostsYaml(text, shown, await source.sections()), file: path }
}

export type Selection = { readonly inventory: Inventory; readonly hosts: readonly Host[] }

/**
 * The inventory and the hosts of it that one command is about. A target alone needs no file.
 * @throws MusterError `configuration` or `usage`
 */
export async function selectHosts(
  source: InventorySource,
  target: string | undefined,
  options: TargetOptions = {},
): Promise<Selection> {
  if (target !== undefined && findHostsFile(source) === undefined) {
    const inventory = inventoryFromTarget(target, options)
    return { inventory, hosts: inventory.hosts }
  }
  const inventory = await loadInventory(source)
  try {
    return { inventory, hosts: resolveTarget(inventory, target, options) }
  } catch (error) {
    const outside = source.file === undefined && target !== undefined && outsideTarget(inventory, target, options)
    if (!outside) throw error
    return { inventory: outside, hosts: outside.hosts }
  }
}

/**
 * A target that has nothing to do with a hosts.yaml which merely lies in the working directory: none of its names is in
 * it, and none looks like a misspelt one of it. So `muster m[8-10]` means the aliases of ssh_config wherever it is typed.
 */
function outsideTarget(inventory: Inventory, target: string, options: TargetOptions): Inventory | undefined {
  const names = inventory.hosts.map((host) => host.name)
  try {
    const outside = inventoryFromTarget(target, options)
    const isNear = outside.hosts.some(({ name }) => names.includes(name) || nearestWord(name, names) !== undefined)
    return isNear ? undefined : outside
  } catch {
    return undefined
  }
}
