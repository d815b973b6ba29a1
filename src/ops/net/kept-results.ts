/** Where results of measurements are kept: `$XDG_STATE_HOME/muster/net/KIND-TIME.json`, mode 0600, the newest 200 of each kind. */
import { readdirSync, rmSync } from 'node:fs'
import { basename, join } from 'node:path'
import { foreignDirectory, makeOwnDirectories } from '../../base/foreign-place.ts'
import { readBoundedSync } from '../../base/read-bounded.ts'
import { replaceFile } from '../../base/replace-file.ts'
import { stateDirectory } from '../../base/user-directories.ts'

export type ResultKind = 'mesh' | 'pair' | 'nfs'

export type Environment = Readonly<Record<string, string | undefined>>

const KEPT = 200
/** A mesh of 64 hosts takes 1 MB. */
const MOST_BYTES = 2 ** 24
const NAME = /^(mesh|pair|nfs)-([\dTZ.-]+)\.json$/

export function resultsDirectory(environment: Environment): string {
  return join(stateDirectory(environment), 'net')
}

/** `time`: ISO 8601. Returns the path. @throws when the directory cannot be written. */
export function keepResult(environment: Environment, kind: ResultKind, time: string, value: object): string {
  const directory = resultsDirectory(environment)
  makeOwnDirectories(directory)
  const path = join(directory, `${kind}-${time.replaceAll(':', '-')}.json`)
  replaceFile(path, JSON.stringify(value))
  for (const old of resultPaths(environment, [kind]).slice(KEPT)) rmSync(old, { force: true })
  return path
}

/** Newest first. Empty if another user could have written them. */
export function resultPaths(
  environment: Environment,
  kinds: readonly ResultKind[] = ['mesh', 'pair', 'nfs'],
): readonly string[] {
  const directory = resultsDirectory(environment)
  try {
    if (foreignDirectory(directory) !== undefined) return []
    const found = readdirSync(directory).flatMap((name) => {
      const [, kind, time = ''] = NAME.exec(name) ?? []
      return kinds.some((wanted) => wanted === kind) ? [{ name, time }] : []
    })
    return found
      .toSorted((one, other) => (one.time < other.time ? 1 : one.time > other.time ? -1 : 0))
      .map(({ name }) => join(directory, name))
  } catch {
    return []
  }
}

export const kindOf = (path: string): string | undefined => NAME.exec(basename(path))?.[1]

/** In milliseconds, from the name; NaN: it was given another one. */
export const keptMs = (path: string): number =>
  Date.parse((NAME.exec(basename(path))?.[2] ?? '').replace(/T(\d\d)-(\d\d)-/, 'T$1:$2:'))

/** The content of a file, unchecked; undefined: not JSON, too large, or a pipe. */
export function readResult(path: string): unknown {
  try {
    return JSON.parse(readBoundedSync(path, MOST_BYTES).toString())
  } catch {
    return undefined
  }
}
