/** Whether another user could write what is read, or replace what is written. Root is trusted, as it can do everything anyway. */
import { lstatSync, readlinkSync, realpathSync, type Stats, statSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { currentAccount } from './account.ts'
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

/** Why what is there, or a link to it, is another user's; undefined if it is not, or nothing is there. */
export function foreignOwnerOf(path: string, uid: number | undefined = ownId()): string | undefined {
  if (uid === undefined) return undefined
  const options = { throwIfNoEntry: false } as const
  for (const stats of [lstatSync(path, options), statSync(path, options)]) {
    const owner = stats && foreignOwner(stats, uid, 'it')
    if (owner !== undefined) return owner
  }
  return undefined
}

/** Why this is a link that another user chose, to wherever it leads; undefined if it is none. */
export function foreignLink(path: string | Buffer, uid: number | undefined = ownId()): string | undefined {
  const stats = lstatSync(path, { throwIfNoEntry: false })
  if (uid === undefined || stats?.isSymbolicLink() !== true) return undefined
  return foreignOwner(stats, uid, 'it is a link that')
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
  // Before anything is created in another user's place, and again in case one was put there meanwhile.
  requireOwnWay(path)
  makeDirectories(path, 0o700)
  requireOwnWay(path)
  const stats = statSync(path)
  const uid = ownId()
  // In a sticky directory, another user could leave links at paths that are written later.
  const reason = uid === undefined ? undefined : openTo(stats, 'it')
  const shown = printable(path)
  if (reason !== undefined) throw notOwn(shown, reason, `chmod go-w ${shown}, or ${ELSEWHERE}`)
}

const ELSEWHERE = 'set XDG_STATE_HOME to another directory'

/** Another user's link or directory on the way could lead elsewhere tomorrow. @throws MusterError `configuration` */
function requireOwnWay(path: string): void {
  const uid = ownId()
  if (uid === undefined) return
  const home = currentAccount().home
  for (const each of wayTo(resolve(path))) {
    // The home directory is where the system put it.
    if (home.startsWith(`${each}/`)) continue
    const stats = lstatSync(each)
    const owner = foreignOwner(stats, uid, 'it')
    if (owner !== undefined) throw notOwn(printable(each), owner, ELSEWHERE)
    if (stats.isSymbolicLink() || (stats.mode & STICKY) !== 0 || (stats.mode & OTHERS_WRITE) === 0) continue
    throw notOwn(
      printable(each),
      'it can be changed by every user of this machine',
      `chmod o-w ${printable(each)}, or ${ELSEWHERE}`,
    )
  }
}

/** The directories and links that lead to a path, as far as they exist, with what the links lead to. */
function wayTo(path: string): readonly string[] {
  const way: string[] = []
  let at = '/'
  let names = path.split('/')
  for (let links = 0; links < MOST_LINKS; ) {
    const [name, ...rest] = names
    if (name === undefined) break
    names = rest
    if (name === '' || name === '.') continue
    const next = join(at, name)
    const stats = name === '..' ? undefined : lstatSync(next, { throwIfNoEntry: false })
    if (name !== '..' && stats === undefined) break
    if (stats !== undefined) way.push(next)
    if (stats?.isSymbolicLink()) {
      const target = readlinkSync(next)
      names = [...target.split('/'), ...rest]
      if (target.startsWith('/')) at = '/'
      links += 1
    } else at = next
  }
  return way
}

/** As many as the system follows. */
const MOST_LINKS = 40

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
