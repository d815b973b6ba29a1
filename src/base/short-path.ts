/** Paths for notices, which have one row: the name comes before the folder. */
import { basename, dirname } from 'node:path'

type Environment = Readonly<Record<string, string | undefined>>

/** `~` for the home directory. */
export function shortPath(path: string, { HOME: home = '' }: Environment): string {
  return home.length > 1 && path.startsWith(`${home}/`) ? `~${path.slice(home.length)}` : path
}

/** `today.jsonl in ~/recordings` */
export const nameInFolder = (path: string, environment: Environment): string =>
  `${basename(path)} in ${shortPath(dirname(path), environment)}`
