/**
 * A hosts.yaml that merely lies in the working directory can name programs that Muster runs and hosts that it logs in to,
 * so it counts only where nobody but the user (or root) could have put it. One that is named with `--hosts` always counts.
 */
import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'

const GROUP_WRITES = 0o020
const OTHERS_WRITE = 0o002
const STICKY = 0o1000

/**
 * @param path of a file that exists, as it was found
 * @param shown what messages call it
 * @param uid of the user; undefined where the system has no such numbers
 * @throws MusterError `configuration`
 */
export function refuseForeignFile(path: string, shown: string, uid: number | undefined = process.geteuid?.()): void {
  if (uid === undefined) return
  const real = realpathSync(path)
  const reason =
    foreignReason(lstatSync(path), uid, 'it') ??
    foreignReason(statSync(real), uid, 'it') ??
    [...new Set([dirname(path), dirname(real)])]
      .map((directory) => foreignReason(statSync(directory), uid, 'its directory'))
      .find((found) => found !== undefined)
  if (reason === undefined) return
  const name = printable(shown)
  throw new MusterError('configuration', `${name} is not used: ${reason}, and it can name programs to run`, {
    hint: `If you trust it, name it: --hosts ${name.includes('/') ? name : `./${name}`}. To do without it: --hosts none.`,
  })
}

function foreignReason(stats: Stats, uid: number, what: string): string | undefined {
  if (stats.uid !== uid && stats.uid !== 0) return `${what} belongs to user ${stats.uid}, not to you (${uid})`
  // Permissions of a link mean nothing, and in a sticky directory nobody replaces another user's file.
  if (stats.isSymbolicLink() || (stats.isDirectory() && (stats.mode & STICKY) !== 0)) return undefined
  if ((stats.mode & OTHERS_WRITE) !== 0) return `${what} can be changed by every user of this machine`
  if ((stats.mode & GROUP_WRITES) !== 0) return `${what} can be changed by its group`
  return undefined
}
