/** `muster fetch`: files of many hosts, each into its own directory. No host is trusted: nothing is written through a link. */
import { chmod, lstat, mkdir, readlink, utimes } from 'node:fs/promises'
import { getHeapStatistics } from 'node:v8'
import { type Calculation, calculate, mapOf, STEP } from '../../base/calculation.ts'
import { eachAtOnce } from '../../base/collections.ts'
import { MusterError } from '../../base/errors.ts'
import { foreignLink } from '../../base/foreign-place.ts'
import { makeDirectories } from '../../base/make-directories.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { type BytePath, baseName, bytePathOf, bytesOf, joinPath, parentOf, showPath, withoutDash } from './byte-path.ts'
import { clashesAmong, describeClash, findClashes, findRealClash, type Placed } from './clashes.ts'
import {
  ArrivingFile,
  digestOfFile,
  FileInTheWay,
  ignoresCase,
  PartialFiles,
  placeLink,
  sizeOfTarget,
} from './local-file.ts'
import { type CopyWires, type HostReport, onEachHost } from './on-each-host.ts'
import { type RemoteFiles, RemoteRefusal, reasonOf } from './remote-files.ts'
import { UNIT_BYTES } from './remote-script.ts'
import { type Facts, MODE_BITS, modeOfCopy, type Owner, PERMISSION_BITS, systemReason } from './source.ts'

export type FetchRequest = {
  /** Relative to the home directory of the host. */
  sourcesOf(endpoint: Endpoint): readonly string[]
  /** An absolute path; each host gets a directory with its name in it. */
  readonly directory: string
  readonly isDryRun: boolean
  /** Keep setuid, setgid and sticky bits of files whose owner is the same user here; default: false. */
  readonly keepsSpecialBits?: boolean
}

/** Each host ends with a `result` event. @throws MusterError `usage`: the files of two hosts would go into one directory */
export async function fetchFromHosts(
  endpoints: readonly Endpoint[],
  { sourcesOf, directory, isDryRun, keepsSpecialBits = false }: FetchRequest,
  wires: CopyWires,
): Promise<void> {
  const directoryOf = (host: string) => joinPath(bytePathOf(directory), directoryNameOf(host))
  const placed = endpoints.map(({ host }) => ({
    target: directoryOf(host),
    source: bytePathOf(host),
    isDirectory: false,
  }))
  const clash = await findRealClash(findClashes(placed), async (path) => !isDryRun && ignoresCase(path))
  if (clash !== undefined) {
    throw new MusterError('usage', describeClash(clash), { hint: 'Fetch from one host at a time.' })
  }
  const room = new ListingRoom()
  await onEachHost(endpoints, wires, async ({ remote, endpoint }, report) => {
    using own = room.ofHost()
    await new HostFetch(remote, {
      sources: sourcesOf(endpoint).map(bytePathOf),
      directory: directoryOf(endpoint.host),
      isDryRun,
      keepsSpecialBits,
      room: own,
      signal: wires.signal,
      ...report,
    }).run()
    return undefined
  })
}

/** Measured: what becomes of an entry of a listing takes 0.8 KiB, with a path of 25 characters. */
const ENTRY_BYTES = 1024

/** What hosts list must not fill the memory of this program: a third of it is for one host, two thirds for all of them. */
class ListingRoom {
  readonly #most = getHeapStatistics().heap_size_limit / 3
  #left = 2 * this.#most

  ofHost(): HostRoom {
    const room = this
    let own = 0
    return {
      leftBytes: () => Math.min(room.#left, room.#most - own),
      take(bytes) {
        if (bytes > this.leftBytes()) return false
        room.#left -= bytes
        own += bytes
        return true
      },
      [Symbol.dispose]: () => {
        room.#left += own
        own = 0
      },
    }
  }
}

type HostRoom = Disposable & {
  leftBytes(): number
  /** False: there is no room for them. */
  take(bytes: number): boolean
}

/** A directory name for a host: no slash, and neither `.` nor `..`. */
function directoryNameOf(host: string): string {
  const name = bytePathOf(host).replaceAll('/', '_')
  return name === '.' || name === '..' ? `_${name}` : name
}

type FetchTask = HostReport & {
  readonly sources: readonly BytePath[]
  /** The directory of this host on this machine; it is made. */
  readonly directory: BytePath
  readonly isDryRun: boolean
  readonly keepsSpecialBits: boolean
  readonly room: HostRoom
  readonly signal: AbortSignal
}

/** So many files of a source that the host could not list are named. */
const MOST_NAMED = 1000

const SEGMENT_BYTES = 4 * 1024 * 1024
const FILES_AT_ONCE = 8
/** The host is paused while more bytes than this wait to be written. */
const UNWRITTEN_BYTES = 4 * 1024 * 1024

type Wanted = RemoteEntry & { readonly target: BytePath }

class HostFetch {
  readonly #remote: RemoteFiles
  readonly #task: FetchTask
  /** Local directories that are known not to be links: nothing is written anywhere else. */
  readonly #usable = new Set<BytePath>()
  readonly #partials = new PartialFiles()
  #unwritten = 0

  constructor(remote: RemoteFiles, task: FetchTask) {
    this.#remote = remote
    this.#task = task
  }

  async run(): Promise<void> {
    const { sources, directory, isDryRun, onBegin, onFile } = this.#task
    // Anyone can tell its name before.
    const foreign = foreignLink(bytesOf(directory))
    if (foreign !== undefined) {
      throw new Error(`${showPath(directory)}: ${foreign}. Remove it, or fetch into another directory.`)
    }
    const wanted: Wanted[] = []
    for (const source of sources) for (const each of await this.#list(source)) wanted.push(each)
    await this.#refuseClashes(wanted)
    const files = wanted.filter(({ kind }) => kind === 'file')
    onBegin(
      files.length,
      files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
    )
    if (isDryRun) {
      for (const { kind, target, sizeBytes } of wanted)
        if (kind === 'file' || kind === 'link') onFile(target, 'would-copy', kind === 'file' ? sizeBytes : 0)
      return
    }
    if (wanted.length === 0) return
    try {
      makeDirectories(bytesOf(directory))
    } catch (error) {
      throw new Error(`${showPath(directory)}: ${systemReason(error)}`)
    }
    this.#usable.add(directory)
    const directories = wanted.filter(({ kind }) => kind === 'directory')
    for (const each of directories) await this.#guard(each, () => this.#makeDirectory(each))
    await eachAtOnce(files, FILES_AT_ONCE, async (file) => {
      if (!this.#isLeftOut(file.target)) await this.#guard(file, () => this.#fetchFile(file))
    })
    for (const each of wanted) {
      if (this.#isLeftOut(each.target)) continue
      if (each.kind === 'link') await this.#guard(each, () => this.#makeLink(each))
      if (each.kind === 'other') {
        onFile(each.target, 'failed', 0, { reason: 'not a file, directory or link on the host: skipped' })
      }
    }
    for (const each of directories.toReversed()) {
      if (!this.#usable.has(each.target) || each.target === directory) continue
      await this.#guard(each, () => setDirectoryAttributes(each))
    }
    for (const each of this.#usable) await this.#partials.removeStale(each, Date.now())
  }

  /** @throws Error if two fetched files would overwrite each other */
  async #refuseClashes(wanted: readonly Wanted[]): Promise<void> {
    const { signal } = this.#task
    const toPlaced = ({ target, path, kind }: Wanted): Placed => ({
      ...{ target, source: path },
      isDirectory: kind === 'directory',
    })
    const placed = await calculate(mapOf(wanted, toPlaced), signal)
    // Finding out whether case matters takes a test file, which a dry run does not make.
    const clashes = await calculate(clashesAmong(placed), signal)
    const clash = await findRealClash(clashes, async (path) => !this.#task.isDryRun && ignoresCase(path))
    if (clash === undefined) return
    throw new Error(`${describeClash(clash)}. Fetch each into a separate directory.`)
  }

  async #list(source: BytePath): Promise<readonly Wanted[]> {
    const { directory, onFile, room, signal } = this.#task
    const path = withoutDash(source.replace(/^~(?=\/|$)/, '.').replace(/(?<=[^/])\/+$/, ''))
    const failed = (name: BytePath, reason: string) => onFile(name, 'failed', 0, { reason })
    try {
      const [text, complaints] = await this.#remote.callTwice((bytes) => room.take(bytes), 'N', path)
      const count = countParts(text, room.leftBytes() / ENTRY_BYTES)
      if (!room.take(count * ENTRY_BYTES)) throw new RemoteRefusal('find: too many files to list, fetch parts of it')
      const { entries, unknown } = await calculate(readListing(text), signal)
      const told = complaints.split('\n', MOST_NAMED + 1).filter((line) => line !== '')
      for (const complaint of told.slice(0, MOST_NAMED)) {
        const words = complaint.replace(/^find: /, '').split(': ')
        const name = (words.length > 1 ? words.slice(0, -1).join(': ') : source).replace(/^['‘]|['’]$/g, '')
        failed(name, reasonOf(new RemoteRefusal(complaint)))
      }
      for (const name of unknown.slice(0, MOST_NAMED)) failed(name, 'cannot be read')
      if (Math.max(told.length, unknown.length) > MOST_NAMED) failed(source, 'more of its files cannot be read')
      if (entries.length + unknown.length === 0) failed(source, 'the host returned no listing')
      const base = baseName(path)
      const target = joinPath(directory, base)
      const toWanted = (entry: RemoteEntry): Wanted => ({
        ...entry,
        mode: this.#modeOf(entry),
        target: joinPath(target, entry.below),
      })
      return await calculate(mapOf(entries, toWanted), signal)
    } catch (error) {
      if (!(error instanceof RemoteRefusal)) throw error
      failed(source, reasonOf(error))
      return []
    }
  }

  #modeOf({ mode, owner }: RemoteEntry): number {
    if (!this.#task.keepsSpecialBits) return mode & PERMISSION_BITS
    const [uid, gid] = [process.geteuid?.(), process.getegid?.()]
    return modeOfCopy(mode, owner, uid === undefined || gid === undefined ? undefined : { uid, gid })
  }

  /** It is below a directory that could not be made, or that the host did not list. */
  #isLeftOut(path: BytePath): boolean {
    return path !== this.#task.directory && !this.#usable.has(parentOf(path))
  }

  async #makeDirectory({ target }: Wanted): Promise<void> {
    if (this.#isLeftOut(target) || this.#usable.has(target)) return
    try {
      await mkdir(bytesOf(target), 0o700)
    } catch (error) {
      // Never follow a link: the host decides where it leads.
      const facts = await lstat(bytesOf(target)).catch(() => undefined)
      if (facts?.isSymbolicLink()) throw new FileInTheWay('Is a link here and a directory on the host: remove the link')
      if (facts?.isDirectory() !== true) throw error
      if ((facts.mode & 0o700) !== 0o700) await chmod(bytesOf(target), (facts.mode & MODE_BITS) | 0o700).catch(() => {})
    }
    this.#usable.add(target)
  }

  async #makeLink(entry: Wanted): Promise<void> {
    const target = (await this.#remote.call('I', entry.path)).replace(/\n?\/$/, '')
    const now = await readlink(bytesOf(entry.target), { encoding: 'buffer' }).catch(() => undefined)
    const isSame = now?.toString('latin1') === target
    if (!isSame) await placeLink(target, entry.target, entry.mtimeNs)
    this.#task.onFile(entry.target, isSame ? 'identical' : 'copied', 0)
  }

  async #fetchFile(file: Wanted): Promise<void> {
    const { onFile, onProgress } = this.#task
    const size = await sizeOfTarget(file.target)
    if (size === file.sizeBytes) {
      const [theirs, ours] = await Promise.all([this.#digestOf(file), digestOfFile(file.target)])
      if (theirs === ours) {
        await setAttributes(file.target, file)
        onProgress(file.sizeBytes, false)
        return onFile(file.target, 'identical', file.sizeBytes)
      }
    }
    await using arriving = await ArrivingFile.open(file.target, file.isSparse, this.#partials)
    try {
      const kept = await this.#keepPrefix(file, arriving)
      if (kept > 0) onProgress(kept, false)
      await this.#pull(file, arriving, kept)
      const [theirs, { sha256, sizeBytes }] = await Promise.all([this.#digestOf(file), arriving.readBack()])
      if (theirs !== sha256) {
        throw new RemoteRefusal('the checksum differs, the file may have changed meanwhile')
      }
      await arriving.finish(file.target, file)
      onFile(file.target, 'copied', sizeBytes, kept > 0 ? { resumedBytes: kept } : {})
    } catch (error) {
      if (concernsOneEntry(error)) await arriving.remove()
      throw error
    }
  }

  /** On the host, of as many bytes as were listed: a log may grow meanwhile. */
  #digestOf({ path, sizeBytes }: Wanted, bytes = sizeBytes): Promise<string> {
    return this.#remote.callFor(bytes, 'S', path, bytes)
  }

  async #keepPrefix(file: Wanted, arriving: ArrivingFile): Promise<number> {
    const units = Math.floor(Math.min(arriving.partialBytes, file.sizeBytes) / UNIT_BYTES)
    const bytes = units * UNIT_BYTES
    const [theirs, ours] =
      units === 0 ? [] : await Promise.all([this.#digestOf(file, bytes), arriving.digestOfFirst(bytes)])
    const kept = theirs === ours ? bytes : 0
    await arriving.cut(kept)
    return kept
  }

  /** Reads from an offset on, one segment ahead, and writes in units that can be holes. */
  async #pull(file: Wanted, arriving: ArrivingFile, from: number): Promise<void> {
    let writing = Promise.resolve()
    let failure: unknown
    const write = (bytes: Buffer) => {
      this.#hold(bytes.length)
      writing = writing.then(async () => {
        try {
          if (failure !== undefined) return
          await arriving.append(bytes)
          this.#task.onProgress(bytes.length, true)
        } catch (error) {
          failure = error
        } finally {
          this.#hold(-bytes.length)
        }
      })
    }
    let gathered: Buffer[] = []
    let gatheredBytes = 0
    const flush = () => {
      if (gatheredBytes > 0) write(Buffer.concat(gathered))
      gathered = []
      gatheredBytes = 0
    }
    const sink = (bytes: Buffer) => {
      for (let rest = bytes; rest.length > 0; ) {
        const part = rest.subarray(0, UNIT_BYTES - gatheredBytes)
        gathered.push(part)
        gatheredBytes += part.length
        rest = rest.subarray(part.length)
        if (gatheredBytes === UNIT_BYTES) flush()
      }
    }
    let ahead: Promise<string> | undefined
    // Of a small file, the checksum says the same.
    const least = file.sizeBytes > UNIT_BYTES ? [file.sizeBytes] : []
    try {
      for (let at = from; at < file.sizeBytes && failure === undefined; at += SEGMENT_BYTES) {
        const bytes = Math.min(SEGMENT_BYTES, file.sizeBytes - at)
        const asked = this.#remote.pull(sink, bytes, 'G', file.path, at / UNIT_BYTES, bytes, ...least)
        asked.catch(() => {})
        await ahead
        ahead = asked
      }
      await ahead
      flush()
    } finally {
      await writing
    }
    if (failure !== undefined) throw failure
  }

  #hold(bytes: number): void {
    const wasFull = this.#unwritten > UNWRITTEN_BYTES
    this.#unwritten += bytes
    const isFull = this.#unwritten > UNWRITTEN_BYTES
    if (isFull && !wasFull) this.#remote.pause()
    if (wasFull && !isFull) this.#remote.resume()
  }

  /** Reports what fails for one entry, and continues with the rest. */
  async #guard(entry: Wanted, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      if (!concernsOneEntry(error)) throw error
      const reason =
        error instanceof RemoteRefusal
          ? `${showPath(entry.path)}: ${reasonOf(error)}`
          : `${systemReason(error)} (on this machine)`
      this.#task.onFile(entry.target, 'failed', entry.sizeBytes, { reason })
    }
  }
}

/** It concerns one entry, not the whole host. */
function concernsOneEntry(error: unknown): boolean {
  if (error instanceof RemoteRefusal || error instanceof FileInTheWay) return true
  return (error as { code?: string }).code !== undefined
}

/** An existing directory keeps its special bits. */
async function setDirectoryAttributes({ target, mode, mtimeNs }: Wanted): Promise<void> {
  const { mode: own } = await lstat(bytesOf(target))
  await setAttributes(target, { mode: mode | (own & MODE_BITS & ~PERMISSION_BITS), mtimeNs })
}

async function setAttributes(path: BytePath, { mode, mtimeNs }: Facts): Promise<void> {
  const seconds = Number(mtimeNs) / 1e9
  await utimes(bytesOf(path), seconds, seconds)
  await chmod(bytesOf(path), mode)
}

type RemoteEntry = Facts & {
  readonly owner: Owner
  readonly path: BytePath
  /** Relative to the source; empty: the source itself. */
  readonly below: BytePath
  readonly kind: 'directory' | 'link' | 'file' | 'other'
  readonly sizeBytes: number
  readonly isSparse: boolean
}

type RemoteListing = {
  readonly entries: readonly RemoteEntry[]
  /** Names without facts: the files are gone, or must not be read. */
  readonly unknown: readonly BytePath[]
}

/** PATH_MAX: no file can be opened by a longer name. */
const MOST_NAME = 4096

/** Bounded, as it is tried for each name, and a host may answer any text. Sizes and times are 64-bit numbers. */
const FACTS =
  /(?<mode>[0-9a-f]{1,8}):(?<size>\d{1,19}):(?<time>-?\d{1,19})(?:[.,](?<fraction>\d{1,9}))?:(?<blocks>\d{1,19}):(?<uid>\d{1,10}):(?<gid>\d{1,10}):/iy
/** By the upper bits of st_mode (inode(7)): S_IFDIR, S_IFREG, S_IFLNK. */
const KINDS: Readonly<Record<number, RemoteEntry['kind']>> = { 4: 'directory', 8: 'file', 10: 'link' }

/** At least the number of its names; it is counted to little more than `most`. */
function countParts(text: string, most: number): number {
  let count = 0
  for (let at = text.indexOf('\0'); at >= 0 && count <= most; at = text.indexOf('\0', at + 1)) count += 1
  return count
}

/** Of the remote script's function N. @throws Error on a name outside of the source, too: a host may be hostile */
export function* readListing(text: string): Calculation<RemoteListing> {
  const entries: RemoteEntry[] = []
  const unknown: BytePath[] = []
  let root: BytePath | undefined
  const parts = text.split('\0')
  if (parts.pop() !== '') throw new Error('the listing is incomplete')
  for (let at = 0; at < parts.length; ) {
    const names: BytePath[] = []
    for (let name = parts[at++]; name !== ''; name = parts[at++]) {
      if (name === undefined) throw new Error('the listing is incomplete')
      names.push(name)
    }
    yield
    const facts = parts[at++]
    if (facts === undefined) throw new Error('the listing is incomplete')
    let offset = 0
    for (const [index, name] of names.entries()) {
      if (index % STEP === STEP - 1) yield
      root ??= name
      FACTS.lastIndex = offset
      const match = FACTS.exec(facts)
      const groups = facts.startsWith(`${name}\n`, FACTS.lastIndex) ? match?.groups : undefined
      if (groups !== undefined) offset = FACTS.lastIndex + name.length + 1
      if (groups === undefined || name.length > MOST_NAME) {
        unknown.push(name.slice(0, MOST_NAME))
        continue
      }
      entries.push(entryOf(name, belowOf(root, name), groups))
    }
  }
  return { entries, unknown }
}

function entryOf(path: BytePath, below: BytePath, groups: Readonly<Record<string, string | undefined>>): RemoteEntry {
  const mode = Number.parseInt(groups.mode ?? '', 16)
  const sizeBytes = Number(groups.size)
  const fraction = BigInt((groups.fraction ?? '').padEnd(9, '0'))
  return {
    path,
    below,
    kind: KINDS[mode >> 12] ?? 'other',
    mode: mode & MODE_BITS,
    owner: { uid: Number(groups.uid), gid: Number(groups.gid) },
    mtimeNs: BigInt(groups.time ?? 0) * 1_000_000_000n + fraction,
    sizeBytes,
    isSparse: Number(groups.blocks) * 512 < sizeBytes,
  }
}

function belowOf(root: BytePath, name: BytePath): BytePath {
  if (name === root) return ''
  const prefix = root.endsWith('/') ? root : `${root}/`
  const below = name.slice(prefix.length)
  const isInside = name.startsWith(prefix) && below.split('/').every((part) => !['', '.', '..'].includes(part))
  if (!isInside) throw new Error('the host listed a name outside of the source')
  return below
}
