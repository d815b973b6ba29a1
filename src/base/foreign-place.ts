/** Whether another user could write what is read, or replace what is written. Root is trusted, as it can do everything anyway. */
import { lstatSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { MusterError } from './errors.ts'
import { makeDirectories } from './make-directories.ts'
import { printable } from './printable.ts'

const GROUP_WRITES = 0o020
const OTHERS_WRITE = 0o002
const STICKY = 0o1000

const ownId = (): number | undefined => process.geteuid?.()

/** Why another user could have written this file, which exists; undefined if none could. `uid` undefined: there are none here. */
export function foreignFile(path: string, uid: number | undefined = ownId()): string | undefined {
  if (uid === undefined) return undefined
  const real = realpathSync(path)
  return (
    foreignReason(lstatSync(path), uid, 'it') ??
    foreignReason(statSync(real), uid, 'it') ??
    [...new Set([dirname(path), dirname(real)])]
      .map((directory) => foreignReason(statSync(directory), uid, 'its directory'))
      .find((found) => found !== undefined)
  )
}

/** As `foreignFile`, for a directory that exists: why another user could replace its content. */
export function foreignDirectory(path: string, uid: number | undefined = ownId()): string | undefined {
  return uid === undefined ? undefined : foreignReason(statSync(path), uid, 'it')
}

/**
 * A directory for the user alone; missing ones are created with mode 0700.
 * @throws MusterError `configuration` if another user could change its content, otherwise the error of the system
 */
export function makeOwnDirectories(path: string): void {
  makeDirectories(path, 0o700)
  const stats = statSync(path)
  const uid = ownId()
  // In a sticky directory, another user could leave links at paths that are written later.
  const owner = uid === undefined ? undefined : foreignOwner(stats, uid, 'it')
  const reason = owner ?? (uid === undefined ? undefined : openTo(stats, 'it'))
  if (reason === undefined) return
  const shown = printable(path)
  const elsewhere = 'set XDG_STATE_HOME to another directory'
  throw notOwn(shown, reason, owner === undefined ? `chmod go-w ${shown}, or ${elsewhere}` : elsewhere)
}

export function notOwn(shown: string, reason: string, remedy: string): MusterError {
  return new MusterError('configuration', `${shown} is not used: ${reason}`, {
    hint: `Another user could change what Muster does: ${remedy}. Under sudo, HOME may still name the other user's home: use sudo -H.`,
  })
}

function foreignReason(stats: Stats, uid: number, what: string): string | undefined {
  const owner = foreignOwner(stats, uid, what)
  if (owner !== undefined) return owner
  // Permissions of a link mean nothing, and in a sticky directory no user can replace another user's file.
  if (stats.isSymbolicLink() || (stats.isDirectory() && (stats.mode & STICKY) !== 0)) return undefined
  return openTo(stats, what)
}

function foreignOwner({ uid: owner }: Stats, uid: number, what: string): string | undefined {
  return owner === uid || owner === 0 ? undefined : `${what} belongs to user ${owner}, not to you (${uid})`
}

function openTo({ mode, uid, gid }: Stats, what: string): string | undefined {
  if ((mode & OTHERS_WRITE) !== 0) return `${what} can be changed by every user of this machine`
  // If useradd gives each user a private group of the same number, umask is 002 and the group has only this user.
  const isPrivateGroup = gid === uid && uid !== 0
  if ((mode & GROUP_WRITES) !== 0 && !isPrivateGroup) return `${what} can be changed by its group`
  return undefined
}
