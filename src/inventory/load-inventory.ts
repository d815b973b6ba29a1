/** Finds and reads the inventory: `--hosts FILE`, otherwise ./hosts.yaml, otherwise the one in the configuration directory. */
import { constants, existsSync } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { join, relative, resolve } from 'node:path'
import { type Clock, sleep, systemClock } from '../base/clock.ts'
import { fileReason, MusterError } from '../base/errors.ts'
import { foreignFile } from '../base/foreign-place.ts'
import { printable } from '../base/printable.ts'
import { decodeText, MAX_TEXT_BYTES, readBoundedSync, TOO_LARGE } from '../base/read-bounded.ts'
import { configurationDirectory, homeDirectory } from '../base/user-directories.ts'
import { isExample } from './example-file.ts'
import type { Host } from './host.ts'
import type { Section } from './hosts-yaml-schema.ts'
import {
  type Inventory,
  inventoryFromTarget,
  outsideHint,
  resolveTarget,
  type Selection,
  type TargetOptions,
} from './inventory.ts'
import { nearestWord } from './nearest-word.ts'
import { type NameFiles, unknownHere } from './ssh-config/named-here.ts'

export type InventorySource = {
  /** The value of `--hosts`; `none`: no file. */
  readonly file?: string
  readonly cwd: string
  readonly env: Readonly<Record<string, string | undefined>>
  /** The areas' sections; loaded when there is a file. */
  sections(): Promise<readonly Section[]>
  /** Ends the wait for a file that is a pipe. */
  readonly signal?: AbortSignal
  /** Replaced in tests. */
  readonly nameFiles?: NameFiles
}

const FILE_NAME = 'hosts.yaml'

function configurationFile(env: InventorySource['env']): string {
  return join(configurationDirectory(env), 'muster', FILE_NAME)
}

/** The absolute path of the hosts.yaml to read, or undefined if there is none. */
export function findHostsFile({ file, cwd, env }: InventorySource): string | undefined {
  if (file === 'none') return undefined
  if (file !== undefined) return resolve(cwd, file)
  return [join(cwd, FILE_NAME), configurationFile(env)].find((path) => existsSync(path))
}

/** For the user of ClusterSSH. */
function importHint(env: InventorySource['env']): string {
  const hasFiles = ['clusters', 'tags'].some((name) => existsSync(join(homeDirectory(env), '.clusterssh', name)))
  return hasFiles ? ' For your files of ClusterSSH, run: muster import clusterssh -o hosts.yaml' : ''
}

/** @throws MusterError `configuration`, with all problems of the file. */
export async function loadInventory(source: InventorySource): Promise<Inventory> {
  const path = findHostsFile(source)
  if (path === undefined) {
    throw new MusterError(
      'configuration',
      source.file === 'none'
        ? 'this needs a hosts.yaml, but --hosts is none'
        : `there is no ./${FILE_NAME} and no ${printable(configurationFile(source.env))}`,
      {
        hint: `Name hosts on the command line (muster 'm[8-10]'), give a file with --hosts, or make one with \`muster init\` or \`muster import\`.${importHint(source.env)}`,
      },
    )
  }
  // A file below the working directory is named as the user would name it.
  const near = relative(source.cwd, path)
  const shown = near !== '' && !near.startsWith('..') ? near : path
  if (source.file === undefined) refuseForeignFile(path, shown)
  let text: string
  try {
    text = decodeText(await readHostsFile(path, source))
  } catch (error) {
    source.signal?.throwIfAborted()
    throw new MusterError('configuration', `${printable(shown)} cannot be read: ${fileReason(error)}`, {
      cause: error,
      hint: 'Check the path, its permissions, and what it holds.',
    })
  }
  const { sections } = source
  if (latest?.text === text && latest.shown === shown && latest.sections === sections)
    return { ...latest.inventory, file: path }
  const { parseHostsYaml } = await import('./hosts-yaml.ts')
  const inventory = { ...parseHostsYaml(text, shown, await sections()), shown, isExample: isExample(text) }
  latest = { text, shown, sections, inventory }
  return { ...inventory, file: path }
}

/** A process that reads the same file again and again, as the keeper does for each run, parses it once. */
let latest:
  | (Pick<InventorySource, 'sections'> & {
      readonly text: string
      readonly shown: string
      readonly inventory: Inventory
    })
  | undefined

/** The inventory and the selected hosts. A target of full addresses needs no file. @throws MusterError `configuration` or `usage` */
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
    const outside =
      source.file === undefined && target !== undefined && outsideTarget(inventory, target, options, source)
    if (!outside) throw error
    return { inventory: outside, hosts: outside.hosts }
  }
}

/**
 * Whether a target is unrelated to a hosts.yaml that happens to be in the working directory: none of its names is in it, is a
 * group of it, or looks like a misspelt one of it, and this machine knows each without DNS. So `muster m[8-10]` means the
 * aliases of ssh_config in any directory, and a word that no file declares is not looked up. Beside the example of a checkout it
 * is, as without a file.
 * @throws MusterError `usage` where this machine knows only some of them
 */
function outsideTarget(
  inventory: Inventory,
  target: string,
  options: TargetOptions,
  { nameFiles }: InventorySource,
): Inventory | undefined {
  const names = inventory.hosts.map((host) => host.name)
  let outside: Inventory
  try {
    outside = inventoryFromTarget(target, options)
  } catch {
    return undefined
  }
  const isNear = outside.hosts.some(
    ({ name }) => names.includes(name) || inventory.groups.has(name) || nearestWord(name, names) !== undefined,
  )
  const unknown = inventory.isExample ? [] : undeclared(outside.hosts, options, nameFiles)
  if (isNear || unknown.length === outside.hosts.length) return undefined
  if (unknown.length === 0) return outside
  const file = inventory.file ?? FILE_NAME
  const where = `neither ${printable(file)} nor ~/.ssh/config nor /etc/hosts names it`
  throw new MusterError('usage', `there is no host ${printable(unknown[0] ?? '')}: ${where}`, {
    hint: outsideHint(file),
  })
}

/** Names that are not written as `user@host` or `host:port`, and that only DNS can know. */
function undeclared(
  hosts: readonly Host[],
  { login, isForNames }: TargetOptions,
  files: NameFiles | undefined,
): readonly string[] {
  if (isForNames) return []
  const plain = hosts.filter(({ user, port }) => user === login?.user && port === login?.port)
  return unknownHere(
    plain.map(({ name }) => name),
    files,
  )
}

/** Of hosts that were selected without a hosts.yaml, the names that only DNS can know. */
export function namesForDns(
  { inventory, hosts }: Selection,
  options: TargetOptions,
  { nameFiles }: InventorySource,
): readonly string[] {
  return inventory.file === undefined ? undeclared(hosts, options, nameFiles) : []
}

/** Whether hosts.yaml has a host or a group of this name, or this machine knows it without DNS. A file with mistakes has none. */
export async function isDeclared(name: string, source: InventorySource): Promise<boolean> {
  if (unknownHere([name], source.nameFiles).length === 0) return true
  if (findHostsFile(source) === undefined) return false
  try {
    const { hosts, groups } = await loadInventory(source)
    return groups.has(name) || hosts.some((host) => host.name === name)
  } catch {
    return false
  }
}

/**
 * A hosts.yaml in the working directory can name programs that Muster runs, so it is used only if no other user could have written it.
 * `path` exists; `shown` is what messages call it. @throws MusterError `configuration`
 */
export function refuseForeignFile(path: string, shown: string, uid: number | undefined = process.geteuid?.()): void {
  const reason = foreignFile(path, uid)
  if (reason === undefined) return
  const name = printable(shown)
  throw new MusterError('configuration', `${name} is not used: ${reason}, and it can name programs to run`, {
    hint: `If you trust it, name it: --hosts ${name.includes('/') ? name : `./${name}`}. To do without it: --hosts none.`,
  })
}

type ReadOptions = { readonly signal?: AbortSignal; readonly clock?: Clock }

/** How long to wait for a writer of a named pipe. */
const WRITER_LIMIT_MS = 3_000
const LOOK_MS = 20
const CHUNK_BYTES = 64 * 1024

/** @throws as node:fs does, an Error with a sentence, or why the signal was aborted */
export async function readHostsFile(path: string, { signal, clock = systemClock }: ReadOptions = {}): Promise<Buffer> {
  if (!(await stat(path)).isFIFO()) return readBoundedSync(path)
  await using pipe = await open(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const chunks: Buffer[] = []
  const untilMs = clock.now() + WRITER_LIMIT_MS
  let isWritten = false
  let bytes = 0
  for (;;) {
    signal?.throwIfAborted()
    const chunk = await readSome(pipe)
    if (chunk?.length) {
      chunks.push(chunk)
      bytes += chunk.length
      if (bytes > MAX_TEXT_BYTES) throw new Error(TOO_LARGE)
      continue
    }
    isWritten ||= chunk === undefined || bytes > 0
    if (chunk && isWritten) return Buffer.concat(chunks)
    if (chunk && clock.now() >= untilMs) throw new Error('it is a pipe, and no program writes to it')
    await sleep(clock, LOOK_MS)
  }
}

/** Empty: the end, or nothing has opened it for writing; undefined: nothing was written yet. */
async function readSome(pipe: FileHandle): Promise<Buffer | undefined> {
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES)
  try {
    const { bytesRead } = await pipe.read(buffer, 0, buffer.length, null)
    return buffer.subarray(0, bytesRead)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return undefined
    throw error
  }
}
