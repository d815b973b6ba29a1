/**
 * A file that is being fetched: written beside its target under a name of its own, checked, and renamed. What an earlier
 * process of this machine has left is taken over. It follows no link and replaces only files and links.
 */
import { createHash, type Hash } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, lutimes, open, readdir, rename, rm, symlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { type BytePath, baseName, bytesOf, joinPath, parentOf } from './byte-path.ts'
import { UNIT_BYTES } from './remote-script.ts'
import type { Facts } from './source.ts'
import { temporaryOf } from './temporary-name.ts'

const READ_BYTES = 1024 * 1024
const ZEROS = Buffer.alloc(UNIT_BYTES)

export class FileInTheWay extends Error {
  override readonly name = 'FileInTheWay'
}

/** The size of a regular file there; undefined: none. @throws FileInTheWay */
export async function sizeOfTarget(path: BytePath): Promise<number | undefined> {
  const facts = await lstat(bytesOf(path)).catch((error: { code?: string }) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (facts === undefined || facts.isSymbolicLink()) return undefined
  if (facts.isDirectory()) throw new FileInTheWay('Is a directory')
  if (!facts.isFile()) throw new FileInTheWay('Is a device, pipe or socket')
  return facts.size
}

/** SHA-256 in hexadecimal of a file here. */
export async function digestOfFile(path: BytePath): Promise<string> {
  await using handle = await open(bytesOf(path), constants.O_RDONLY | constants.O_NOFOLLOW)
  const hash = createHash('sha256')
  await hashInto(hash, handle, Number.POSITIVE_INFINITY)
  return hash.digest('hex')
}

export class ArrivingFile implements AsyncDisposable {
  readonly #handle: FileHandle
  readonly #temporary: BytePath
  readonly #isSparse: boolean
  #hash = createHash('sha256')
  #at = 0
  /** What is left of an earlier fetch. */
  readonly leftOverBytes: number

  constructor(handle: FileHandle, temporary: BytePath, isSparse: boolean, leftOverBytes: number) {
    this.#handle = handle
    this.#temporary = temporary
    this.#isSparse = isSparse
    this.leftOverBytes = leftOverBytes
  }

  static async open(target: BytePath, isSparse: boolean): Promise<ArrivingFile> {
    const temporary = temporaryName(target)
    await claim(target, temporary)
    const flags = constants.O_RDWR | constants.O_CREAT | constants.O_NOFOLLOW
    const handle = await open(bytesOf(temporary), flags, 0o600)
    return new ArrivingFile(handle, temporary, isSparse, (await handle.stat()).size)
  }

  /** Goes on behind the first bytes, and says what their checksum is. */
  async keep(bytes: number): Promise<string> {
    this.#hash = createHash('sha256')
    await hashInto(this.#hash, this.#handle, bytes)
    this.#at = bytes
    return this.#hash.copy().digest('hex')
  }

  /** Begins anew behind what is kept. */
  async cut(bytes: number): Promise<void> {
    if (bytes === 0) this.#hash = createHash('sha256')
    this.#at = bytes
    await this.#handle.truncate(bytes)
  }

  async append(bytes: Buffer): Promise<void> {
    this.#hash.update(bytes)
    const isHole = this.#isSparse && bytes.equals(ZEROS.subarray(0, bytes.length))
    if (!isHole) {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done, this.#at + done)
        done += bytesWritten
      }
    }
    this.#at += bytes.length
  }

  get digest(): string {
    return this.#hash.copy().digest('hex')
  }

  /** Gives it its time, mode and name. */
  async finish(target: BytePath, { mode, mtimeNs }: Facts): Promise<void> {
    await this.#handle.truncate(this.#at)
    const seconds = Number(mtimeNs) / 1e9
    await this.#handle.utimes(seconds, seconds)
    await this.#handle.chmod(mode)
    await sizeOfTarget(target)
    await rename(bytesOf(this.#temporary), bytesOf(target))
  }

  async remove(): Promise<void> {
    await rm(bytesOf(this.#temporary), { force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#handle.close()
  }
}

export async function placeLink(target: BytePath, path: BytePath, mtimeNs: bigint): Promise<void> {
  await sizeOfTarget(path)
  const temporary = temporaryName(path)
  await rm(bytesOf(temporary), { force: true })
  await symlink(bytesOf(target), bytesOf(temporary))
  const seconds = Number(mtimeNs) / 1e9
  await lutimes(bytesOf(temporary), seconds, seconds)
  await rename(bytesOf(temporary), bytesOf(path))
}

function temporaryName(target: BytePath): BytePath {
  return `${temporaryOf(target)}.${hostname()}.${process.pid}`
}

/** Takes over what a process that has ended has left for this target. */
async function claim(target: BytePath, temporary: BytePath): Promise<void> {
  const directory = parentOf(target)
  const prefix = `${baseName(temporaryOf(target))}.${hostname()}.`
  for (const name of await readdir(bytesOf(directory), { encoding: 'latin1' })) {
    const pid = Number(name.slice(prefix.length))
    if (!name.startsWith(prefix) || pid === process.pid || isRunning(pid)) continue
    await rename(bytesOf(joinPath(directory, name)), bytesOf(temporary))
  }
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as { code?: string }).code === 'EPERM'
  }
}

async function hashInto(hash: Hash, handle: FileHandle, limit: number): Promise<void> {
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  for (let at = 0; at < limit; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(READ_BYTES, limit - at), at)
    if (bytesRead === 0) return
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
}
