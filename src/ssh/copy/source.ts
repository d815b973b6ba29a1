/** The sources of a copy on this machine: a walk over them, and their bytes, read once for all hosts that keep up. */
import { createHash } from 'node:crypto'
import {
  closeSync,
  constants,
  fstatSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  statSync,
} from 'node:fs'
import { open } from 'node:fs/promises'
import { setImmediate } from 'node:timers/promises'
import { getOrMake } from '../../base/collections.ts'
import { messageOf } from '../../base/errors.ts'
import { type BytePath, baseName, bytesOf, joinPath, showPath } from './byte-path.ts'

export type Owner = { readonly uid: number; readonly gid: number }

export const PERMISSION_BITS = 0o777
export const MODE_BITS = 0o7777

/** The mode of a copy that belongs to `to`: a program must not run as somebody else because it was copied. */
export function modeOfCopy(mode: number, from: Owner, to: Owner | undefined): number {
  if (to === undefined || from.uid !== to.uid) return mode & PERMISSION_BITS
  return from.gid === to.gid ? mode : mode & ~0o2000
}

/** For chmod, as `u+rwx,g+rx,g-w,…`, which keeps the special bits that a directory already has. */
export function symbolicMode(mode: number): string {
  const clauses: string[] = []
  for (const [index, who] of ['u', 'g', 'o'].entries()) {
    const bits = (mode >> (6 - 3 * index)) & 7
    const letters = (wanted: number) => ['r', 'w', 'x'].filter((_, bit) => (wanted >> (2 - bit)) & 1).join('')
    if (bits !== 0) clauses.push(`${who}+${letters(bits)}`)
    if (bits !== 7) clauses.push(`${who}-${letters(~bits & 7)}`)
  }
  for (const [bit, clause] of [
    [0o4000, 'u+s'],
    [0o2000, 'g+s'],
    [0o1000, '+t'],
  ] as const)
    if ((mode & bit) !== 0) clauses.push(clause)
  return clauses.join(',')
}

/** For touch, in UTC: `2026-11-21 10:00:00.000000001`, and `202611211000.00` for one without fractions. */
export function touchTimes(mtimeNs: bigint): readonly [time: string, stamp: string] {
  const second = 1_000_000_000n
  const fraction = ((mtimeNs % second) + second) % second
  const iso = new Date(Number((mtimeNs - fraction) / 1_000_000n)).toISOString()
  const time = `${iso.slice(0, 10)} ${iso.slice(11, 19)}.${String(fraction).padStart(9, '0')}`
  const stamp = `${iso.slice(0, 16).replace(/[-T:]/g, '')}.${iso.slice(17, 19)}`
  return [time, stamp]
}

export type Facts = {
  readonly mode: number
  /** Nanoseconds since 1970. */
  readonly mtimeNs: bigint
}

/** One file, directory or link. `root` is the index of its source, `below` its path relative to that source. */
export type SourceEntry = Facts & {
  /** Present if the mode has bits that only a copy with the same owner may have. */
  readonly owner?: Owner
} & { readonly root: number; readonly below: BytePath; readonly path: BytePath } & (
    | { readonly kind: 'directory' }
    | { readonly kind: 'link'; readonly target: BytePath }
    | { readonly kind: 'file'; readonly sizeBytes: number; readonly isSparse: boolean; readonly identity: string }
  )

export type CopySource = Extract<SourceEntry, { kind: 'file' }>

export type SourceTree = {
  /** The names that cp would give the copies; empty: copy the contents of the source. */
  readonly names: readonly BytePath[]
  /** Directories come before their contents. */
  readonly entries: readonly SourceEntry[]
  /** What cannot be read or copied, one sentence each. */
  readonly problems: readonly { readonly path: string; readonly reason: string }[]
}

/** So many entries are looked at synchronously in a row: with a promise for each, it takes ten times as long. */
const SEEN_AT_ONCE = 64

/** Follows a source that is itself a symbolic link, as cp does; links below it stay links. */
export async function scanSources(
  sources: readonly BytePath[],
  { keepsSpecialBits = false }: { readonly keepsSpecialBits?: boolean } = {},
): Promise<SourceTree> {
  const bits = keepsSpecialBits ? MODE_BITS : PERMISSION_BITS
  const entries: SourceEntry[] = []
  const problems: { path: string; reason: string }[] = []
  let seen = 0
  const visit = async (root: number, path: BytePath, below: BytePath): Promise<void> => {
    seen += 1
    if (seen % SEEN_AT_ONCE === 0) await setImmediate()
    try {
      const facts = (below === '' ? statSync : lstatSync)(bytesOf(path), { bigint: true })
      const mode = Number(facts.mode) & bits
      const owner = mode > PERMISSION_BITS ? { owner: { uid: Number(facts.uid), gid: Number(facts.gid) } } : {}
      const common = { root, below, path, mode, mtimeNs: facts.mtimeNs, ...owner }
      if (facts.isDirectory()) {
        const names = readdirSync(bytesOf(path), { encoding: 'buffer' })
        entries.push({ ...common, kind: 'directory' })
        const sorted = names.map((name) => name.toString('latin1')).sort()
        for (const name of sorted) await visit(root, joinPath(path, name), joinPath(below, name))
      } else if (facts.isSymbolicLink()) {
        const target = readlinkSync(bytesOf(path), { encoding: 'buffer' })
        entries.push({ ...common, kind: 'link', target: target.toString('latin1') })
      } else if (facts.isFile()) {
        const isSparse = facts.blocks * 512n < facts.size
        entries.push({ ...common, kind: 'file', sizeBytes: Number(facts.size), isSparse, identity: identityOf(facts) })
      } else problems.push({ path: showPath(path), reason: 'not a file, directory or link: skipped' })
    } catch (error) {
      problems.push({ path: showPath(path), reason: systemReason(error) })
    }
  }
  for (const [root, source] of sources.entries()) await visit(root, source, '')
  return { names: sources.map(baseName), entries, problems }
}

export const BLOCK_BYTES = 256 * 1024
const KEPT_BYTES = 32 * 1024 * 1024

/** Reads blocks for many hosts and keeps the latest ones: a host that falls behind causes its own reads. */
export class SourceReader {
  readonly #blocks = new Map<string, Promise<Buffer>>()
  readonly #digests = new Map<CopySource, FileDigest>()
  #readBytes = 0

  get readBytes(): number {
    return this.#readBytes
  }

  read(file: CopySource, index: number): Promise<Buffer> {
    const key = `${file.identity}/${index}`
    const kept = this.#blocks.get(key)
    if (kept !== undefined) return kept
    const reading = this.#load(file, index)
    this.#blocks.set(key, reading)
    reading.catch(() => this.#blocks.delete(key))
    const [oldest = key] = this.#blocks.keys()
    if (this.#blocks.size > KEPT_BYTES / BLOCK_BYTES) this.#blocks.delete(oldest)
    return reading
  }

  /** All bytes of a small file; blocks the program until the disk answers. */
  readWhole(file: CopySource): Buffer {
    const handle = openSync(bytesOf(file.path), constants.O_RDONLY | constants.O_NONBLOCK)
    try {
      if (identityOf(fstatSync(handle, { bigint: true })) !== file.identity) throw new SourceChanged()
      const bytes = Buffer.allocUnsafe(file.sizeBytes)
      if (readSync(handle, bytes) !== file.sizeBytes) throw new SourceChanged()
      this.#readBytes += bytes.length
      return bytes
    } finally {
      closeSync(handle)
    }
  }

  digest(file: CopySource): Promise<string> {
    const digest = this.#digestOf(file)
    digest.whole ??= (async () => {
      while (digest.nextIndex * BLOCK_BYTES < file.sizeBytes) {
        const index = digest.nextIndex
        // A kept block is not read again, but the checksum may not include it yet.
        digest.offer(index, await this.read(file, index))
      }
      return digest.hash.copy().digest('hex')
    })()
    return digest.whole
  }

  async prefixDigest(file: CopySource, bytes: number): Promise<string> {
    const hash = createHash('sha256')
    for (let index = 0; index * BLOCK_BYTES < bytes; index += 1) {
      const block = await this.#load(file, index)
      hash.update(block.subarray(0, bytes - index * BLOCK_BYTES))
    }
    return hash.digest('hex')
  }

  #digestOf(file: CopySource): FileDigest {
    return getOrMake(this.#digests, file, () => new FileDigest())
  }

  async #load(file: CopySource, index: number): Promise<Buffer> {
    const length = Math.min(BLOCK_BYTES, file.sizeBytes - index * BLOCK_BYTES)
    await using handle = await open(bytesOf(file.path), constants.O_RDONLY | constants.O_NONBLOCK)
    if (identityOf(await handle.stat({ bigint: true })) !== file.identity) throw new SourceChanged()
    const block = Buffer.allocUnsafe(length)
    for (let at = 0; at < length; ) {
      const { bytesRead } = await handle.read(block, at, length - at, index * BLOCK_BYTES + at)
      if (bytesRead === 0) throw new SourceChanged()
      at += bytesRead
    }
    this.#readBytes += length
    this.#digestOf(file).offer(index, block)
    return block
  }
}

class FileDigest {
  readonly hash = createHash('sha256')
  nextIndex = 0
  whole: Promise<string> | undefined

  offer(index: number, block: Buffer): void {
    if (index !== this.nextIndex) return
    this.nextIndex += 1
    this.hash.update(block)
  }
}

export class SourceChanged extends Error {
  override readonly name = 'SourceChanged'
  constructor() {
    super('it changed while it was being copied')
  }
}

function identityOf(facts: { dev: bigint; ino: bigint; size: bigint; mtimeNs: bigint }): string {
  return `${facts.dev}:${facts.ino}:${facts.size}:${facts.mtimeNs}`
}

const SENTENCES: Readonly<Record<string, string>> = {
  ENOENT: 'No such file or directory',
  EACCES: 'Permission denied',
  EPERM: 'Operation not permitted',
  ENOSPC: 'No space left on device',
  EROFS: 'Read-only file system',
  EISDIR: 'Is a directory',
  ENOTDIR: 'Not a directory',
  EDQUOT: 'Disk quota exceeded',
  ENAMETOOLONG: 'File name too long',
  EEXIST: 'File exists',
}

/** The reason in the words that hosts use, too. */
export function systemReason(error: unknown): string {
  const code = (error as { code?: string }).code
  return (code === undefined ? undefined : SENTENCES[code]) ?? messageOf(error)
}
