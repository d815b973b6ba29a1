/** Where consoles listen: a socket for each, in the directory of the process that keeps connections. */
import { lstatSync, readdirSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { type Clock, systemClock } from '../../base/clock.ts'
import { removeStale } from '../../ssh/persist/claim-address.ts'
import {
  keeperDirectory,
  LONGEST_ADDRESS,
  preparePrivateDirectory,
  readToken,
} from '../../ssh/persist/keeper-directory.ts'
import { type FromConsole, PROTOCOL, type SessionDescription } from './messages.ts'
import { type ClientLink, openProvenLink } from './proven-link.ts'

const PREFIX = `console-${PROTOCOL}-`
const MARK = `detached-${PROTOCOL}-`
/** The most consoles with one name. */
const MOST_NAMES = 99
const LONGEST_NAME = 40

/** `NAME`, `NAME-2` and so on; names of hosts and clusters may contain any character. */
export function sessionAddresses(directory: string, cluster: string): readonly [string, ...string[]] {
  const room = LONGEST_ADDRESS - Buffer.byteLength(join(directory, `${MARK}-${MOST_NAMES}`))
  const plain = cluster
    .replace(/[^\w.-]+/g, '-')
    .replace(/^[-.]+/, '')
    .slice(0, Math.min(LONGEST_NAME, room))
    .replace(/[-.]+$/, '')
  const name = plain === '' ? 'console' : plain
  const others = Array.from({ length: MOST_NAMES - 1 }, (_, index) => `${name}-${index + 2}`)
  return [name, ...others].map((each) => join(directory, PREFIX + each)) as [string, ...string[]]
}

export const nameOf = (address: string): string => basename(address).slice(PREFIX.length)

/** A detached console has this file beside its socket, so that `muster` asks only detached consoles for their hosts. */
export const markOf = (address: string): string => join(dirname(address), MARK + nameOf(address))

/** Whether there may be a detached one, by file names alone. */
export function hasDetached(environment: Readonly<Record<string, string | undefined>>): boolean {
  try {
    return readdirSync(keeperDirectory(environment)).some((name) => name.startsWith(MARK))
  } catch {
    return false
  }
}

/** The names of all consoles, without asking them. */
export function sessionNames(environment: Readonly<Record<string, string | undefined>>): readonly string[] {
  try {
    const names = readdirSync(keeperDirectory(environment))
    return names.flatMap((name) => (name.startsWith(PREFIX) ? [nameOf(name)] : [])).sort()
  } catch {
    return []
  }
}

export type FoundSession = SessionDescription & { readonly address: string }
/** Its process is stopped or very busy; only its name is known. */
export type SilentSession = { readonly name: string }

export type Sessions = { readonly found: readonly FoundSession[]; readonly silent: readonly SilentSession[] }

/** The user's consoles, by name. Removes the sockets of killed ones. @throws MusterError where the directory is not to be trusted */
export async function lookForSessions(
  environment: Readonly<Record<string, string | undefined>>,
  which: 'all' | 'detached' = 'all',
  clock: Clock = systemClock,
): Promise<Sessions> {
  const directory = keeperDirectory(environment)
  const start = which === 'all' ? PREFIX : MARK
  const isThere = lstatSync(directory, { throwIfNoEntry: false }) !== undefined
  if (isThere) await preparePrivateDirectory(directory)
  const names = isThere ? await readdir(directory) : []
  const addresses = names
    .flatMap((name) => (name.startsWith(start) ? [join(directory, PREFIX + name.slice(start.length))] : []))
    .sort()
  if (addresses.length === 0) return { found: [], silent: [] }
  const token = await readToken(directory)
  const answers = await Promise.all(addresses.map((address) => describe(address, token, clock)))
  return {
    found: answers.flatMap((each) => (each === undefined || each === 'silent' ? [] : each)),
    silent: answers.flatMap((each, at) => (each === 'silent' ? { name: nameOf(addresses[at] ?? '') } : [])),
  }
}

/** Those that answer. */
export const findSessions = async (...given: Parameters<typeof lookForSessions>): Promise<readonly FoundSession[]> =>
  (await lookForSessions(...given)).found

/** Undefined: there is none. */
async function describe(address: string, token: Buffer, clock: Clock): Promise<FoundSession | 'silent' | undefined> {
  const answer = Promise.withResolvers<SessionDescription | 'silent' | undefined>()
  let link: ClientLink
  try {
    link = await openProvenLink(
      address,
      token,
      {
        onMessage: (message: FromConsole) => {
          if (message.type === 'description') answer.resolve(message.session)
        },
        onClose: () => answer.resolve(undefined),
      },
      clock,
    )
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ECONNREFUSED') await removeStale(address)
    if (code === 'ECONNREFUSED' || code === 'ENOENT') await rm(markOf(address), { force: true })
    // EAGAIN: others wait for its answer, too.
    return code === 'unreachable' || code === 'EAGAIN' ? 'silent' : undefined
  }
  using _limit = clock.after(ANSWER_LIMIT_MS, () => answer.resolve('silent'))
  link.send({ type: 'describe' })
  const session = await answer.promise
  link.close()
  return typeof session === 'object' ? { ...session, address } : session
}

/** A console under load answers late, a stopped one never. */
const ANSWER_LIMIT_MS = 3_000

/** Resolves when its process has ended. @throws MusterError */
export async function endSession(
  { address }: FoundSession,
  environment: Readonly<Record<string, string | undefined>>,
): Promise<void> {
  const gone = Promise.withResolvers<void>()
  const token = await readToken(keeperDirectory(environment))
  const link = await openProvenLink(address, token, { onMessage: () => {}, onClose: gone.resolve })
  link.send({ type: 'end' })
  await gone.promise
}
