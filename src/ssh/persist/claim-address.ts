/** Only one process listens at an address, and a crash cannot leave it locked: the process links its own socket to the common name. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { lstatSync, unlinkSync } from 'node:fs'
import { link, rename, unlink } from 'node:fs/promises'
import { connect, type Server } from 'node:net'
import { dirname, join } from 'node:path'

const TRIES = 8

export type Claim = ReturnType<typeof claimOf>

/**
 * Listens under a name of its own and links it to the first of `addresses` at which nothing listens, which only one process can
 * do. Undefined: others listen at all of them. The server listens when this resolves to a claim.
 */
export async function claimAddress(
  server: Server,
  addresses: readonly [string, ...string[]],
): Promise<Claim | undefined> {
  const own = join(dirname(addresses[0]), `new-${randomBytes(8).toString('hex')}`)
  await once(server.listen(own), 'listening')
  const identity = identityOf(own)
  try {
    for (const address of addresses) {
      for (let attempt = 0; attempt < TRIES; attempt += 1) {
        if (await canLink(own, address)) return claimOf(address, identity)
        if (await isAnswered(address)) break
        await removeStale(address)
      }
    }
    return undefined
  } finally {
    await unlink(own).catch(() => {})
  }
}

/** Whether a process listens there. */
function isAnswered(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => end(true))
    // A full backlog is a process under load.
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code === 'EAGAIN'))
  })
}

async function canLink(own: string, address: string): Promise<boolean> {
  try {
    await link(own, address)
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST') return false
    throw error
  }
}

/** Moving is atomic, so what was moved can be checked; a process that claimed the name meanwhile gets it back. */
export async function removeStale(address: string): Promise<void> {
  const aside = join(dirname(address), `old-${randomBytes(8).toString('hex')}`)
  try {
    await rename(address, aside)
  } catch {
    return
  }
  if (await isAnswered(aside)) await link(aside, address).catch(() => {})
  await unlink(aside).catch(() => {})
}

function claimOf(address: string, identity: string | undefined) {
  const isOurs = () => identity !== undefined && identityOf(address) === identity
  return {
    address,
    /** False if another socket is there, or none: no process can connect any more. */
    isOurs,
    [Symbol.dispose]() {
      if (!isOurs()) return
      try {
        unlinkSync(address)
      } catch {
        // Gone already.
      }
    },
  }
}

/** Identifies a file by device and inode; undefined: there is none. */
export function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = lstatSync(path)
    return `${dev} ${ino}`
  } catch {
    return undefined
  }
}
