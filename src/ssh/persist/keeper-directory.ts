/** The keeper's directory. Node cannot ask a socket for its peer's user, so each side proves that it can read a secret there. */
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import { constants, existsSync, lstatSync, type Stats } from 'node:fs'
import { link, lstat, mkdir, open, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileReason, MusterError } from '../../base/errors.ts'
import { foreignDirectory } from '../../base/foreign-place.ts'
import { printable } from '../../base/printable.ts'
import { PROTOCOL } from './messages.ts'

/** The longest address of a Unix socket on macOS (sys/un.h), less its closing zero; Linux allows 4 more. */
export const LONGEST_ADDRESS = 103
/** As long as the longest name that is made in the directory. */
const NAME_BYTES = '/keeper-1-0123456789abcdef'.length
const TOKEN_BYTES = 32

type Environment = Readonly<Record<string, string | undefined>>

/**
 * `$MUSTER_RUNTIME_DIR/muster`, or a directory of the user's own in /tmp. Unlike $XDG_RUNTIME_DIR it stays when the user logs out, as
 * consoles do, and unlike $TMPDIR it is the same in each of the user's sessions. Looks, makes nothing.
 */
export function keeperDirectory(environment: Environment, uid: number = userId()): string {
  const runtime = environment.MUSTER_RUNTIME_DIR
  const fits = (directory: string) => Buffer.byteLength(directory) + NAME_BYTES <= LONGEST_ADDRESS
  // Under sudo the variable may still name the other user's directory.
  if (runtime?.startsWith('/') && fits(join(runtime, 'muster')) && isOwn(runtime, uid)) return join(runtime, 'muster')
  return join(existsSync('/tmp') ? '/tmp' : tmpdir(), `muster-${uid}`)
}

export const socketAddress = (directory: string): string => join(directory, `keeper-${PROTOCOL}`)

/** Makes the directory if it is missing. Throws MusterError when it is not the user's alone. */
export async function preparePrivateDirectory(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EEXIST') throw refused(directory, `cannot be created: ${fileReason(error)}`)
  })
  requirePrivate(directory, await lstat(directory), userId(), 'directory')
  // A user who can replace it can sit between the two ends and relay their proofs.
  const reason = foreignDirectory(dirname(directory))
  if (reason !== undefined)
    throw refused(
      directory,
      `can be replaced: ${printable(dirname(directory))}, where it lies, ${reason.replace(/^it /, '')}`,
    )
}

/** Throws MusterError. Exported for tests, which cannot own files as another user. */
export function requirePrivate(
  path: string,
  stats: Pick<Stats, 'uid' | 'mode' | 'isDirectory' | 'isFile'>,
  uid: number,
  kind: 'directory' | 'file',
): void {
  if (!(kind === 'directory' ? stats.isDirectory() : stats.isFile())) throw refused(path, `is not a ${kind}`)
  if (stats.uid !== uid) throw refused(path, `belongs to user ${stats.uid}, not to you (${uid})`)
  if ((stats.mode & 0o077) !== 0)
    throw refused(path, `is accessible to others (mode ${(stats.mode & 0o777).toString(8)})`)
}

/** The secret of the directory, made by the first that needs it. Reading it keeps it young: old temporary files are removed. */
export async function readToken(directory: string): Promise<Buffer> {
  const path = join(directory, 'token')
  const read = async (): Promise<Buffer> => {
    // A pipe in its place is refused, not waited for.
    const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK)
    try {
      requirePrivate(path, await file.stat(), userId(), 'file')
      const token = await file.readFile()
      if (token.length !== TOKEN_BYTES) throw refused(path, 'is not a secret of muster')
      const now = new Date()
      await file.utimes(now, now).catch(() => {})
      return token
    } finally {
      await file.close()
    }
  }
  try {
    return await read()
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  // Whole or not at all: others may be looking.
  const draft = join(directory, `token-${randomBytes(8).toString('hex')}`)
  try {
    await writeFile(draft, randomBytes(TOKEN_BYTES), { mode: 0o600, flag: 'wx' })
    await link(draft, path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  return await read()
}

export const newNonce = (): string => randomBytes(16).toString('hex')

/** What only a holder of the token can say after both nonces. */
export function proofOf(
  side: 'program' | 'keeper' | 'client' | 'console',
  token: Buffer,
  askersNonce: string,
  answerersNonce: string,
): string {
  return createHmac('sha256', token).update(`${side}\n${askersNonce}\n${answerersNonce}`).digest('hex')
}

export function isProof(given: unknown, expected: string): boolean {
  // A stranger may send anything as JSON, an object that cannot become text among it.
  if (typeof given !== 'string') return false
  const [one, other] = [Buffer.from(given), Buffer.from(expected)]
  return one.length === other.length && timingSafeEqual(one, other)
}

function isOwn(directory: string, uid: number): boolean {
  try {
    return lstatSync(directory).uid === uid
  } catch {
    return false
  }
}

function userId(): number {
  return process.getuid?.() ?? 0
}

function refused(path: string, why: string): MusterError {
  return new MusterError('configuration', `${printable(path)} ${why}`, {
    hint: 'Muster keeps connections and consoles only in a directory that no other user can enter: remove it, fix its owner and mode (0700), or set MUSTER_RUNTIME_DIR to a directory of your own.',
  })
}
