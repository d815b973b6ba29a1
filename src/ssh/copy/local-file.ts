/** A file that is being fetched: a partial file beside its target, verified and renamed. It is resumed, and no link is followed. */

import { createHash, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, lstat, lutimes, mkdir, open, readdir, rename, rm, rmdir, symlink } from 'node:fs/promises'
import { hostname } from 'node:os'
import { getOrMake } from '../../base/collections.ts'
import { isRunning } from '../../base/processes.ts'
import { STALE_MS } from '../../base/stale-partials.ts'
import { type BytePath, baseName, bytesOf, joinPath, parentOf, partialOf } from './byte-path.ts'
import { UNIT_BYTES } from './remote-script.ts'
import type { Facts } from './source.ts'

const READ_BYTES = 1024 * 1024
const ZEROS = Buffer.alloc(UNIT_BYTES)
const MACHINE = hostname()

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

export async function digestOfFile(path: BytePath): Promise<string> {
  await using handle = await open(bytesOf(path), constants.O_RDONLY | constants.O_NOFOLLOW)
  return await digestOfHandle(handle)
}

const namesInUse = new Set<BytePath>()

export class ArrivingFile implements AsyncDisposable {
  readonly #handle: FileHandle
  readonly #partial: BytePath
  readonly #isSparse: boolean
  #at = 0
  readonly partialBytes: number

  constructor(handle: FileHandle, partial: BytePath, isSparse: boolean, partialBytes: number) {
    this.#handle = handle
    this.#partial = partial
    this.#isSparse = isSparse
    this.partialBytes = partialBytes
  }

  static async open(target: BytePath, isSparse: boolean, partials: PartialFiles): Promise<ArrivingFile> {
    const partial = takePartialName(target)
    try {
      await partials.claim(target, partial)
      const handle = await openOwn(partial)
      return new ArrivingFile(handle, partial, isSparse, (await handle.stat()).size)
    } catch (error) {
      namesInUse.delete(partial)
      throw error
    }
  }

  async digestOfFirst(bytes: number): Promise<string> {
    return await digestOfHandle(this.#handle, bytes)
  }

  async cut(bytes: number): Promise<void> {
    this.#at = bytes
    await this.#handle.truncate(bytes)
  }

  async append(bytes: Buffer): Promise<void> {
    const isHole = this.#isSparse && bytes.equals(ZEROS.subarray(0, bytes.length))
    if (!isHole) {
      for (let done = 0; done < bytes.length; ) {
        const { bytesWritten } = await this.#handle.write(bytes, done, bytes.length - done, this.#at + done)
        done += bytesWritten
      }
    }
    this.#at += bytes.length
  }

  /** Size and checksum, read back from the disk when all bytes have arrived. */
  async readBack(): Promise<{ readonly sizeBytes: number; readonly sha256: string }> {
    await this.#handle.truncate(this.#at)
    const sha256 = await digestOfHandle(this.#handle)
    return { sizeBytes: (await this.#handle.stat()).size, sha256 }
  }

  async finish(target: BytePath, { mode, mtimeNs }: Facts): Promise<void> {
    const seconds = Number(mtimeNs) / 1e9
    await this.#handle.utimes(seconds, seconds)
    await this.#handle.chmod(mode)
    await sizeOfTarget(target)
    await rename(bytesOf(this.#partial), bytesOf(target))
  }

  async remove(): Promise<void> {
    await rm(bytesOf(this.#partial), { force: true })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    namesInUse.delete(this.#partial)
    await this.#handle.close()
  }
}

export async function placeLink(target: BytePath, path: BytePath, mtimeNs: bigint): Promise<void> {
  await sizeOfTarget(path)
  const partial = takePartialName(path)
  try {
    await rm(bytesOf(partial), { force: true })
    await symlink(bytesOf(target), bytesOf(partial))
    const seconds = Number(mtimeNs) / 1e9
    await lutimes(bytesOf(partial), seconds, seconds)
    await rename(bytesOf(partial), bytesOf(path))
  } finally {
    namesInUse.delete(partial)
  }
}

/** `.muster-HASH.MACHINE.PID`, with a number if this process is already writing the same target. */
function takePartialName(target: BytePath): BytePath {
  const name = `${partialOf(target)}.${MACHINE}.${process.pid}`
  let free = name
  for (let number = 2; namesInUse.has(free); number += 1) free = `${name}-${number}`
  namesInUse.add(free)
  return free
}

/** `stem`: the name without machine and process. `isOurs`: written on this machine. */
type FoundPartial = { readonly name: string; readonly stem: string; readonly isOurs: boolean; readonly pid: number }

const PARTIAL = /^(\.muster-[0-9a-f]{16})\.(.+)\.(\d+)(?:-\d+)?$/

/** Partial files of processes that have ended. Each directory is read once. */
export class PartialFiles {
  readonly #byDirectory = new Map<BytePath, Promise<readonly FoundPartial[]>>()

  async claim(target: BytePath, partial: BytePath): Promise<void> {
    const directory = parentOf(target)
    const wanted = baseName(partialOf(target))
    for (const { name, stem, isOurs, pid } of await this.#in(directory)) {
      if (stem !== wanted || !isOurs || isRunning(pid)) continue
      await rename(bytesOf(joinPath(directory, name)), bytesOf(partial)).catch((error: { code?: string }) => {
        if (error.code !== 'ENOENT') throw error
      })
    }
  }

  /** Removes this user's partial files that are older than a week from a directory, whichever machine wrote them. */
  async removeStale(directory: BytePath, nowMs: number): Promise<void> {
    for (const { name, isOurs, pid } of await this.#in(directory).catch(() => [])) {
      if (isOurs && isRunning(pid)) continue
      const path = bytesOf(joinPath(directory, name))
      const facts = await lstat(path).catch(() => undefined)
      if (!facts?.isFile() || facts.uid !== process.geteuid?.() || nowMs - facts.mtimeMs < STALE_MS) continue
      await rm(path, { force: true }).catch(() => {})
    }
  }

  #in(directory: BytePath): Promise<readonly FoundPartial[]> {
    return getOrMake(this.#byDirectory, directory, async () => {
      const names = await readdir(bytesOf(directory), { encoding: 'latin1' })
      return names.flatMap((name) => {
        const [, stem = '', machine, pid] = PARTIAL.exec(name) ?? []
        return pid === undefined ? [] : [{ name, stem, isOurs: machine === MACHINE, pid: Number(pid) }]
      })
    })
  }
}

/** Opens a file of this user that has no second link, for writing. Anything else with that name is removed. */
async function openOwn(path: BytePath): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW, O_NONBLOCK } = constants
  const found = await lstat(bytesOf(path)).catch(() => undefined)
  if (found !== undefined) {
    const handle = await open(bytesOf(path), O_RDWR | O_NOFOLLOW | O_NONBLOCK).catch(() => undefined)
    const facts = await handle?.stat()
    if (handle !== undefined && facts?.isFile() && facts.nlink === 1 && facts.uid === process.geteuid?.()) return handle
    await handle?.close()
    await rm(bytesOf(path), { force: true })
  }
  return await open(bytesOf(path), O_RDWR | O_CREAT | O_EXCL, 0o600)
}

async function digestOfHandle(handle: FileHandle, limit = Number.POSITIVE_INFINITY): Promise<string> {
  const hash = createHash('sha256')
  const buffer = Buffer.allocUnsafe(READ_BYTES)
  for (let at = 0; at < limit; ) {
    const { bytesRead } = await handle.read(buffer, 0, Math.min(READ_BYTES, limit - at), at)
    if (bytesRead === 0) break
    hash.update(buffer.subarray(0, bytesRead))
    at += bytesRead
  }
  return hash.digest('hex')
}

const CASE_PROBE = '.muster-case-'

/** Whether a directory ignores case in names; if it does not exist yet, the nearest one above it. */
export async function ignoresCase(path: BytePath): Promise<boolean> {
  let directory = path
  while (!(await isThere(directory)) && parentOf(directory) !== directory) directory = parentOf(directory)
  let probe: BytePath
  try {
    // mkdir follows no link.
    probe = joinPath(directory, `${CASE_PROBE}${randomBytes(6).toString('hex')}`)
    await mkdir(bytesOf(probe))
  } catch {
    // Not writable: the copy itself fails later, with the reason.
    return false
  }
  try {
    const random = probe.slice(-12)
    return await isThere(joinPath(directory, `${CASE_PROBE.toUpperCase()}${random}`))
  } finally {
    await rmdir(bytesOf(probe))
  }
}

function isThere(path: BytePath): Promise<boolean> {
  return lstat(bytesOf(path)).then(
    () => true,
    () => false,
  )
}
