/** What a run is about, from its arguments or from the run before: hosts, the command of each, files, variables. */

import { existsSync, rmSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { defined } from '../../base/defined.ts'
import { fileReason, MusterError } from '../../base/errors.ts'
import { foreignFile, makeOwnDirectories, notOwn } from '../../base/foreign-place.ts'
import { printable } from '../../base/printable.ts'
import { replaceFile } from '../../base/replace-file.ts'
import { stateDirectory } from '../../base/user-directories.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { type InventorySource, isDeclared } from '../../inventory/load-inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { expandCommand, expandWord, parseInterpreter } from '../../ops/run/command-template.ts'
import type { ExecFile } from '../../ssh/exec/host-exec.ts'
import { MAX_COMMAND_BYTES, wordsBytes } from '../../ssh/exec/remote-command.ts'
import { stdinOf } from '../command-line/stdin.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { endpointOptions, inventorySource, selectionOf, selectNamed } from '../connect/endpoints.ts'
import { execFile, execStdin } from './exec-files.ts'

export type RunVerbOptions = GlobalOptions & {
  readonly fold?: boolean
  readonly diff?: boolean
  readonly out?: string
  readonly script?: string
  readonly stdin?: string
  readonly env?: Readonly<Record<string, string>>
  readonly sudo?: boolean
  readonly raw?: boolean
  readonly retryFailed?: boolean
  readonly failFast?: boolean
  /** The size of a batch, from the number of hosts. */
  readonly serial?: (hosts: number) => number
  readonly untilOk?: boolean
}

export type PlannedHost = {
  readonly endpoint: Endpoint
  /** For people: with a script its name and arguments. */
  readonly command: string
  /** Arguments of the script. */
  readonly args: readonly string[]
}

export type RunPlan = {
  readonly hosts: readonly PlannedHost[]
  readonly environment: Readonly<Record<string, string>>
  readonly script?: { readonly file: ExecFile; readonly interpreter: readonly string[] }
  readonly stdin?: ExecFile
  readonly isSudo: boolean
  /** With --retry-failed: when the run ended that is repeated. */
  readonly lastAtMs?: number
  /** To be kept for --retry-failed, but for the hosts where it failed. */
  readonly record: Omit<LastRun, 'failed'>
}

/** @throws MusterError `usage` or `configuration` */
export async function planRun(
  target: string | undefined,
  words: readonly string[],
  options: RunVerbOptions,
  context: CliContext,
): Promise<RunPlan> {
  const { environment: env } = context
  const environment = options.env ?? {}
  const last = options.retryFailed ? await readLastRun(env) : undefined
  if (last !== undefined) checkRetry(last, target, words, environment)
  const record =
    last ??
    newRecord(target, words, options, environment, context, (await selectionOf(target, options, context)).stdinNames)
  if (record.command.length === 0 && record.script === undefined) {
    throw new MusterError('usage', 'the command is missing', { hint: "Example: muster run 'm[8-10]' -- uptime" })
  }
  if (record.command.every((word) => word.trim() === '') && record.script === undefined)
    throw new MusterError('usage', 'the command is empty', { hint: 'Is a variable not set?' })
  const stdinPath = record.stdin
  if (stdinPath === '-' && record.stdinNames !== undefined) {
    throw new MusterError('usage', 'stdin cannot provide both the host names and the input of the command')
  }

  const source = inventorySource(defined({ hosts: record.hostsFile }), {
    ...context,
    workingDirectory: record.directory,
  })
  await refuseSecondTarget(record.target, words, options, source)
  const selection = defined({ exclude: options.exclude, stdinNames: record.stdinNames })
  const { inventory, hosts } = await selectNamed(source, record.target, selection, context)
  const failed = last === undefined ? undefined : new Set(last.failed)
  const wanted = failed === undefined ? hosts : hosts.filter(({ name }) => failed.has(name))
  if (wanted.length === 0) {
    const reason = failed === undefined ? 'the target names no host' : 'the last run succeeded on every host'
    throw new MusterError('usage', reason)
  }
  const endpoints = await resolveEndpoints(inventory, wanted, endpointOptions(options, context))

  const scriptFile = record.script === undefined ? undefined : await execFile(record.script, '--script')
  const stdinFile =
    stdinPath === undefined
      ? undefined
      : await (stdinPath === '-' ? execStdin(stdinOf(context)) : execFile(stdinPath, '--stdin'))
  const planned = endpoints.map((endpoint): PlannedHost => {
    if (record.script !== undefined) {
      const args = record.command.map((word) => (record.isRaw ? word : expandWord(word, endpoint)))
      return { endpoint, command: [record.script, ...args].join(' '), args }
    }
    const command = record.command.join(' ')
    return { endpoint, command: record.isRaw ? command : expandCommand(command, endpoint), args: [] }
  })
  const interpreter = scriptFile && parseInterpreter(scriptFile.head)
  const longest = Math.max(
    ...planned.map(({ command, args }) => wordsBytes({}, interpreter ? [...interpreter, ...args] : [command])),
  )
  if (longest > MAX_COMMAND_BYTES) {
    throw new MusterError('usage', `a command of ${longest} bytes is too long for a command line`, {
      hint: 'Put it into a file: muster run TARGET --script FILE',
    })
  }
  const [tooLong] = Object.entries(environment).filter(([, value]) => Buffer.byteLength(value) > MAX_COMMAND_BYTES)
  if (tooLong !== undefined) {
    throw new MusterError('usage', `the value of --env ${tooLong[0]} has more than ${MAX_COMMAND_BYTES} bytes`, {
      hint: 'Send it as a file: muster run TARGET --stdin FILE',
    })
  }
  return {
    hosts: planned,
    environment,
    ...defined({ script: scriptFile && interpreter && { file: scriptFile, interpreter }, stdin: stdinFile }),
    isSudo: record.isSudo,
    ...(last === undefined ? {} : { lastAtMs: (await stat(lastRunFile(env))).mtimeMs }),
    record,
  }
}

/** `run h1 h2 -- true`: hosts before `--` are no command. */
async function refuseSecondTarget(
  target: string,
  words: readonly string[],
  { script }: RunVerbOptions,
  source: InventorySource,
): Promise<void> {
  const before = words.slice(0, Math.max(0, words.indexOf('--')))
  if (before.length === 0 || script !== undefined) return
  const areHosts = await Promise.all(before.map((word) => isDeclared(word.replace(/^@/, ''), source)))
  if (!areHosts.every(Boolean)) return
  throw new MusterError('usage', `more than one target: ${printable([target, ...before].join(' '))}`, {
    hint: `Several hosts are one word: ${printable([target, ...before].join(','))}`,
  })
}

function newRecord(
  target: string | undefined,
  words: readonly string[],
  options: RunVerbOptions,
  environment: Readonly<Record<string, string>>,
  { workingDirectory }: CliContext,
  stdinNames: readonly string[] | undefined,
): Omit<LastRun, 'failed'> {
  if (target === undefined) {
    throw new MusterError('usage', 'target and command are missing', {
      hint: "Example: muster run 'm[8-10]' -- uptime",
    })
  }
  const { script, stdin, hosts } = options
  const fileOf = (path: string | undefined, word?: string) =>
    path === undefined || path === word ? path : resolve(workingDirectory, path)
  return {
    directory: workingDirectory,
    target,
    command: words,
    isRaw: options.raw === true,
    isSudo: options.sudo === true,
    environmentNames: Object.keys(environment),
    ...defined({ hostsFile: fileOf(hosts, 'none'), script: fileOf(script), stdin: fileOf(stdin, '-'), stdinNames }),
  }
}

function checkRetry(
  last: LastRun,
  target: string | undefined,
  words: readonly string[],
  environment: Readonly<Record<string, string>>,
): void {
  if (target !== undefined || words.length > 0) {
    throw new MusterError('usage', '--retry-failed takes the hosts and the command of the last run', {
      hint: 'Leave out the target and the command.',
    })
  }
  if (last.failed.length === 0) throw new MusterError('usage', 'the last run succeeded on every host')
  const missing = last.environmentNames.filter((name) => environment[name] === undefined)
  if (missing.length > 0) {
    const names = printable(missing.join(', '))
    throw new MusterError('usage', `the last run had variables, and their values are not kept: ${names}`, {
      hint: `Give them again: --env ${printable(missing[0] ?? '')}=…`,
    })
  }
}

export type LastRun = {
  /** Base of relative paths and ./hosts.yaml. */
  readonly directory: string
  readonly hostsFile?: string
  readonly target: string
  readonly stdinNames?: readonly string[]
  readonly command: readonly string[]
  readonly isRaw: boolean
  readonly isSudo: boolean
  readonly script?: string
  readonly stdin?: string
  /** Names only: values may be secrets. */
  readonly environmentNames: readonly string[]
  readonly failed: readonly string[]
}

const VERSION = 1

export function lastRunFile(environment: CliContext['environment']): string {
  return join(stateDirectory(environment), 'last-run.json')
}

/** @throws MusterError `usage` when there is none, `configuration` when it cannot be read. */
export async function readLastRun(environment: CliContext['environment']): Promise<LastRun> {
  const path = lastRunFile(environment)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new MusterError('usage', 'there is no run to retry')
    throw new MusterError('configuration', `cannot read ${printable(path)}: ${fileReason(error)}`)
  }
  const reason = foreignFile(path)
  if (reason !== undefined) throw notOwn(printable(path), reason, 'remove it')
  try {
    const run: unknown = JSON.parse(text)
    if (isLastRun(run)) return run
  } catch {
    // Not even JSON.
  }
  throw new MusterError('configuration', `${printable(path)} is not a record of a run`, { hint: 'Remove it.' })
}

/** If it cannot be kept, there is no run to retry: an older one would be another command. @throws what node:fs throws */
export function writeLastRun(run: LastRun, environment: CliContext['environment']): void {
  const path = lastRunFile(environment)
  try {
    makeOwnDirectories(dirname(path))
    replaceFile(path, `${JSON.stringify({ version: VERSION, ...run }, undefined, 2)}\n`)
  } catch (error) {
    if (existsSync(path) && foreignFile(path) === undefined) rmSync(path, { force: true })
    throw error
  }
}

const isText = (value: unknown) => typeof value === 'string'
const isList = (value: unknown) => Array.isArray(value) && value.every(isText)

function isLastRun(value: unknown): value is LastRun {
  if (typeof value !== 'object' || value === null) return false
  const run = value as Readonly<Record<string, unknown>>
  const isEach = (names: readonly string[], isRight: (value: unknown) => boolean) =>
    names.every((name) => isRight(run[name]))
  return (
    run.version === VERSION &&
    isEach(['directory', 'target'], isText) &&
    isEach(['hostsFile', 'script', 'stdin'], (value) => value === undefined || isText(value)) &&
    isEach(['command', 'environmentNames', 'failed'], isList) &&
    isEach(['stdinNames'], (value) => value === undefined || isList(value)) &&
    isEach(['isRaw', 'isSudo'], (value) => typeof value === 'boolean')
  )
}
