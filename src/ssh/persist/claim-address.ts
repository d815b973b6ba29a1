/** One keeper a directory without a lock: it listens under a name of its own and links it to the common one, which only one can do. */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { lstatSync, unlinkSync } from 'node:fs'
import { link, rename, unlink } from 'node:fs/promises'
import { connect, type Server } from 'node:net'

const TRIES = 8

export interface Claim extends Disposable {
  /** False once another socket is there, or none: no further program can come. */
  isOurs(): boolean
}

/** Undefined: another keeper was faster. The server listens when this resolves to a claim. */
export async function claimAddress(server: Server, address: string): Promise<Claim | undefined> {
  const own = `${address}-${randomBytes(8).toString('hex')}`
  await once(server.listen(own), 'listening')
  const identity = identityOf(own)
  try {
    for (let attempt = 0; attempt < TRIES; attempt += 1) {
      if (await canLink(own, address)) return claimOf(address, identity)
      if (await isAnswered(address)) return undefined
      await removeStale(address)
    }
    return undefined
  } finally {
    await unlink(own).catch(() => {})
  }
}

/** Whether a keeper listens there. */
export function isAnswered(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(address)
    const end = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('connect', () => end(true))
    // A full backlog is a keeper under load.
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

/** Moving is atomic, so what was moved can be checked; a keeper that claimed the name meanwhile gets it back. */
async function removeStale(address: string): Promise<void> {
  const aside = `${address}-${randomBytes(8).toString('hex')}`
  try {
    await rename(address, aside)
  } catch {
    return
  }
  if (await isAnswered(aside)) await link(aside, address).catch(() => {})
  await unlink(aside).catch(() => {})
}

function claimOf(address: string, identity: string | undefined): Claim {
  const isOurs = () => identity !== undefined && identityOf(address) === identity
  return {
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

function identityOf(path: string): string | undefined {
  try {
    const { dev, ino } = lstatSync(path)
    return `${dev} ${ino}`
  } catch {
    return undefined
  }
}
