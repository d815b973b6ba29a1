/** What `muster run --retry-failed` needs of the run before: $XDG_STATE_HOME/muster/last-run.json, for the user's eyes only. */
import { readFile, rename, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { MusterError, messageOf } from '../../base/errors.ts'
import { foreignFile, makeOwnDirectories, notOwn } from '../../base/foreign-place.ts'
import { printable } from '../../base/printable.ts'
import { stateDirectory } from '../../base/user-directories.ts'

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

type Environment = Readonly<Record<string, string | undefined>>

export function lastRunFile(environment: Environment): string {
  return join(stateDirectory(environment), 'last-run.json')
}

/** @throws MusterError `usage` when there is none, `configuration` when it cannot be read. */
export async function readLastRun(environment: Environment): Promise<LastRun> {
  const path = lastRunFile(environment)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') throw new MusterError('usage', 'there is no run to retry')
    throw new MusterError('configuration', `cannot read ${printable(path)}: ${printable(messageOf(error))}`)
  }
  const reason = foreignFile(path)
  if (reason !== undefined) throw notOwn(printable(path), reason, 'remove it')
  const run = parsed(text)
  if (!isLastRun(run)) {
    throw new MusterError('configuration', `${printable(path)} is not a record of a run`, { hint: 'Remove it.' })
  }
  return run
}

export async function writeLastRun(run: LastRun, environment: Environment): Promise<void> {
  const path = lastRunFile(environment)
  makeOwnDirectories(dirname(path))
  const temporary = `${path}.${process.pid}`
  await writeFile(temporary, `${JSON.stringify({ version: VERSION, ...run }, undefined, 2)}\n`, { mode: 0o600 })
  await rename(temporary, path)
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function isLastRun(value: unknown): value is LastRun {
  if (typeof value !== 'object' || value === null) return false
  const run = value as Readonly<Record<string, unknown>>
  const isText = (name: string, isOptional = false) =>
    typeof run[name] === 'string' || (isOptional && run[name] === undefined)
  const isList = (name: string, isOptional = false) => {
    const list = run[name]
    return Array.isArray(list) ? list.every((each) => typeof each === 'string') : isOptional && list === undefined
  }
  return (
    run.version === VERSION &&
    isText('directory') &&
    isText('target') &&
    ['hostsFile', 'script', 'stdin'].every((name) => isText(name, true)) &&
    ['command', 'environmentNames', 'failed'].every((name) => isList(name)) &&
    isList('stdinNames', true) &&
    typeof run.isRaw === 'boolean' &&
    typeof run.isSudo === 'boolean'
  )
}
