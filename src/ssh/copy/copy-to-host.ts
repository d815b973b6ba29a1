/**
 * One host's part of a copy: directories, then files (looked at first, sent only if they differ, carried on where an
 * earlier copy was cut), links, and at last the times of directories. A file gets its name only when the host has
 * computed the same checksum. It keeps no file in memory and does nothing that it has not been told to overwrite.
 */
import { createHash } from 'node:crypto'
import { printable } from '../../base/printable.ts'
import { type BytePath, baseName, bytesOf, joinPath, parentOf, showPath, withoutDash } from './byte-path.ts'
import { CHAIN_BYTES, type Seat } from './chain.ts'
import type { CopyAction } from './events.ts'
import { touchTimes } from './file-times.ts'
import { type RemoteFiles, RemoteRefusal, reasonOf } from './remote-files.ts'
import { HelperLost, type RemoteHelper } from './remote-helper.ts'
import { UNIT_BYTES } from './remote-script.ts'
import type { SmallBatch, SmallFile, SmallFiles } from './small-files.ts'
import {
  BLOCK_BYTES,
  SourceChanged,
  type SourceEntry,
  type SourceFile,
  type SourceReader,
  type SourceTree,
  systemReason,
} from './source.ts'

export type CopyTask = {
  readonly tree: SourceTree
  readonly reader: SourceReader
  /** Relative: to the home directory. A slash at its end, or several sources: a directory, which is made. */
  readonly destination: BytePath
  readonly isDryRun: boolean
  /** Undefined where there is none. */
  readonly helper?: Promise<RemoteHelper | undefined>
  readonly smallFiles?: SmallFiles
  /** Undefined: the host takes this file from here. */
  enterChain?(file: SourceFile, path: BytePath, have: number): Seat | undefined
  onFile(path: BytePath, action: CopyAction, sizeBytes: number, more?: { resumedBytes?: number; reason?: string }): void
  onProgress(bytes: number, isSent: boolean): void
}

/** Files up to this size cost the host no program for their bytes. */
const WORD_BYTES = 2048
/** Bytes with one order; the host answers each. */
const SEGMENT_BLOCKS = 4
/** Segments on the way that the host has not answered. */
const SEGMENTS_AHEAD = 4
/** As long as the file may yet come from another host. */
const UNDECIDED = { blocks: 1, ahead: 2 }
/** Batches of small files on the way. */
const BATCHES_AHEAD = 3
/** Files that are looked at side by side, so that small ones do not wait for the way there and back. */
const FILES_AT_ONCE = 16

/** @throws RemoteRefusal the destination cannot be used; RemoteLost */
export async function copyToHost(remote: RemoteFiles, task: CopyTask): Promise<void> {
  await new HostCopy(remote, task).run()
}

type Sent = {
  /** They were there from an earlier copy. */
  readonly resumedBytes: number
  /** Some of it came from another host. */
  readonly isCarried: boolean
}

const NOTHING_SENT: Sent = { resumedBytes: 0, isCarried: false }

class HostCopy {
  readonly #remote: RemoteFiles
  readonly #task: CopyTask
  /** Where each source goes. */
  #roots: readonly BytePath[] = []
  /** Directories that could not be made: what is below them is not tried. */
  readonly #unusable = new Set<BytePath>()
  #sending: Promise<void> = Promise.resolve()
  /** How the temporary names of this copy end. */
  #suffix: Promise<string> | undefined

  constructor(remote: RemoteFiles, task: CopyTask) {
    this.#remote = remote
    this.#task = task
  }

  async run(): Promise<void> {
    const { tree, isDryRun } = this.#task
    this.#roots = await this.#findRoots()
    const directories = tree.entries.filter((entry) => entry.kind === 'directory')
    if (!isDryRun) await Promise.all(directories.map((entry) => this.#makeDirectory(entry)))
    const files = await this.#copySmallFiles(tree.entries.filter((entry) => entry.kind === 'file'))
    let next = 0
    const work = async () => {
      for (let file = files[next++]; file !== undefined; file = files[next++]) await this.#copyFile(file)
    }
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, work))
    if (isDryRun) return
    await Promise.all(tree.entries.map((entry) => (entry.kind === 'link' ? this.#makeLink(entry) : undefined)))
    await Promise.all(directories.toReversed().map((entry) => this.#dressDirectory(entry)))
  }

  async #findRoots(): Promise<readonly BytePath[]> {
    const { tree, destination, isDryRun } = this.#task
    const path = withoutDash(destination.replace(/^~(?=\/|$)/, '.').replace(/(?<=.)\/+$/, ''))
    const kind = await this.#remote.call('D', path)
    const isMany = tree.names.length > 1 || destination.endsWith('/') || tree.names.includes('')
    if (kind === 'other' && isMany) throw new RemoteRefusal(`${path}: Not a directory`)
    if (kind === 'none' && isMany && !isDryRun) {
      await this.#remote.call('A', path).catch((error: unknown) => {
        throw error instanceof RemoteRefusal ? new RemoteRefusal(`${path}: ${reasonOf(error)}`) : error
      })
    }
    if (kind !== 'directory' && !isMany) {
      const parent = parentOf(path)
      const above = await this.#remote.call('D', parent)
      if (above !== 'directory') {
        throw new RemoteRefusal(`${parent}: ${above === 'none' ? 'No such directory' : 'Not a directory'}`)
      }
      return [path]
    }
    return tree.names.map((name) => joinPath(path, name))
  }

  #pathOf(entry: SourceEntry): BytePath {
    return joinPath(this.#roots[entry.root] ?? '', entry.below)
  }

  /** Below a directory that could not be made. */
  #isLeftOut(path: BytePath): boolean {
    if (this.#unusable.size === 0) return false
    for (let above = path; above !== '.' && above !== '/'; above = parentOf(above)) {
      if (this.#unusable.has(above)) return true
    }
    return false
  }

  async #makeDirectory(entry: SourceEntry): Promise<void> {
    const path = this.#pathOf(entry)
    await this.#guard(entry, async () => {
      await this.#remote.call('K', path).catch((error: unknown) => {
        const isBelow = this.#isLeftOut(parentOf(path))
        this.#unusable.add(path)
        if (!isBelow || !(error instanceof RemoteRefusal)) throw error
      })
    })
  }

  async #dressDirectory(entry: SourceEntry): Promise<void> {
    const path = this.#pathOf(entry)
    // The contents of a source go into a directory that is not its copy.
    const isIntoOther = entry.below === '' && this.#task.tree.names[entry.root] === ''
    if (isIntoOther || this.#isLeftOut(path)) return
    await this.#guard(entry, () => this.#remote.call('M', path, octal(entry.mode), ...touchTimes(entry.mtimeNs)))
  }

  async #makeLink(entry: SourceEntry & { kind: 'link' }): Promise<void> {
    const path = this.#pathOf(entry)
    if (this.#isLeftOut(path)) return
    await this.#guard(entry, async () => {
      const [time] = touchTimes(entry.mtimeNs)
      const said = await this.#remote.call('L', entry.target, path, temporaryOf(path), time)
      this.#task.onFile(path, said === 'same' ? 'identical' : 'copied', 0)
    })
  }

  /** Those that the helper can take; returns the others. */
  async #copySmallFiles(files: readonly SourceFile[]): Promise<readonly SourceFile[]> {
    const { smallFiles } = this.#task
    const helper = smallFiles === undefined ? undefined : await this.#task.helper
    if (helper === undefined || smallFiles === undefined) return files
    const taken = new Set<SourceFile>()
    let next = 0
    const work = async () => {
      for (let batch = smallFiles.batches[next++]; batch !== undefined; batch = smallFiles.batches[next++]) {
        await this.#copyBatch(helper, batch, taken)
      }
    }
    await Promise.all(
      Array.from({ length: BATCHES_AHEAD }, () =>
        work().catch((error: unknown) => {
          if (!(error instanceof HelperLost)) throw error
        }),
      ),
    )
    return files.filter((file) => !taken.has(file))
  }

  async #copyBatch(helper: RemoteHelper, batch: SmallBatch, taken: Set<SourceFile>): Promise<void> {
    const { smallFiles, isDryRun, onFile, onProgress } = this.#task
    if (helper.isLost) throw new HelperLost()
    const loaded = (await smallFiles?.load(batch)) ?? []
    const end = (file: SourceFile, action: CopyAction, reason?: string) => {
      taken.add(file)
      onFile(this.#pathOf(file), action, file.sizeBytes, reason === undefined ? {} : { reason })
    }
    const files: SmallFile[] = []
    for (const each of loaded) {
      if (this.#isLeftOut(this.#pathOf(each.file))) {
        taken.add(each.file)
        onProgress(each.file.sizeBytes, false)
      } else if ('reason' in each) end(each.file, 'failed', `${showPath(each.file.path)}: ${each.reason}`)
      else files.push(each)
    }
    const order = files.map((each) => this.#describeSmall(each))
    const offered = order.map(({ path, size, mode, mtime, sha256 }) => [path, size, mode, mtime, sha256])
    const { answers = [] } = await helper.ask({ op: 'offer', files: offered, dress: !isDryRun })
    const needed: number[] = []
    for (const [index, { file }] of files.entries()) {
      const answer = answers[index]
      if (answer === 'same') {
        onProgress(file.sizeBytes, false)
        end(file, 'identical')
      } else if (answer !== 'need') end(file, 'failed', printable(answer?.replace(/^!/, '') ?? 'failed'))
      else if (isDryRun) end(file, 'would-copy')
      else needed.push(index)
    }
    if (needed.length === 0) return
    const packed = needed.flatMap((index) => order[index] ?? [])
    const { failures = [] } = await helper.ask(
      { op: 'pack', files: packed.map((one) => [one.path, one.temporary, one.size, one.mode, one.mtime, one.sha256]) },
      needed.flatMap((index) => files[index]?.bytes ?? []),
    )
    const reasons = new Map(failures)
    for (const [position, index] of needed.entries()) {
      const file = files[index]?.file
      if (file === undefined) continue
      const reason = reasons.get(position)
      onProgress(file.sizeBytes, true)
      if (reason === undefined) end(file, 'copied')
      else end(file, 'failed', printable(String(reason)))
    }
  }

  #describeSmall({ file, sha256 }: SmallFile) {
    const path = this.#pathOf(file)
    return {
      path,
      temporary: temporaryOf(path),
      size: file.sizeBytes,
      mode: file.mode,
      // More than a number can hold.
      mtime: String(file.mtimeNs),
      sha256,
    }
  }

  async #copyFile(file: SourceFile): Promise<void> {
    const path = this.#pathOf(file)
    if (this.#isLeftOut(path)) return this.#task.onProgress(file.sizeBytes, false)
    await this.#guard(file, async () => {
      const { reader, isDryRun, onFile, onProgress } = this.#task
      const temporary = temporaryOf(path)
      const found = (await this.#remote.call('P', path, temporary, isDryRun ? 'no' : 'yes')).split(' ')
      const [kind, size, leftOver] = [found[0], Number(found[1]), Number(found[2])]
      if (kind === 'directory') throw new RemoteRefusal('Is a directory')
      if (kind === 'special') throw new RemoteRefusal('Is a device, pipe or socket')
      const times = touchTimes(file.mtimeNs)
      if (kind === 'file' && size === file.sizeBytes && (await this.#isSame(path, file))) {
        if (!isDryRun) await this.#remote.call('M', path, octal(file.mode), ...times)
        if (leftOver > 0 && !isDryRun) await this.#remote.call('Z', temporary)
        onProgress(file.sizeBytes, false)
        return onFile(path, 'identical', file.sizeBytes)
      }
      if (isDryRun) return onFile(path, 'would-copy', file.sizeBytes)
      const isSent = await this.#sendSmallFile(file, temporary)
      const send = (isAlone: boolean) => this.#inTurn(() => this.#sendFile(file, temporary, leftOver, isAlone))
      const { resumedBytes, isCarried } = isSent ? NOTHING_SENT : await send(false)
      const sha256 = await reader.digest(file)
      const finish = () => this.#remote.call('F', temporary, path, sha256, octal(file.mode), ...times)
      await finish().catch(async (error: unknown) => {
        // Another host has passed on something else: what comes from here can be trusted.
        if (!isCarried || !(error instanceof RemoteRefusal) || !/checksum/.test(error.message)) throw error
        await send(true)
        await finish()
      })
      onFile(path, 'copied', file.sizeBytes, resumedBytes > 0 ? { resumedBytes } : {})
    })
  }

  async #isSame(path: BytePath, file: SourceFile): Promise<boolean> {
    const [theirs, ours] = await Promise.all([
      this.#remote.call('S', path).catch((error: unknown) => {
        if (error instanceof RemoteRefusal) return ''
        throw error
      }),
      this.#task.reader.digest(file),
    ])
    return theirs === ours
  }

  /** One file after the other, so that all hosts read the same ones at the same time. */
  #inTurn<T>(send: () => Promise<T>): Promise<T> {
    const turn = this.#sending.then(send)
    this.#sending = turn.then(
      () => {},
      () => {},
    )
    return turn
  }

  /** A file that goes into the order itself: as a word it can hold no NUL, and the host reads it byte by byte. */
  async #sendSmallFile(file: SourceFile, temporary: BytePath): Promise<boolean> {
    if (file.sizeBytes > WORD_BYTES) return false
    const block = file.sizeBytes === 0 ? Buffer.alloc(0) : await this.#task.reader.read(file, 0)
    if (block.includes(0)) return false
    try {
      await this.#remote.call('V', temporary, block.toString('latin1'))
    } catch (error) {
      if (error instanceof RemoteRefusal) await this.#remote.call('Z', temporary)
      throw error
    }
    this.#task.onProgress(block.length, true)
    return true
  }

  /** Returns how many bytes were there from an earlier copy. */
  async #sendFile(file: SourceFile, temporary: BytePath, leftOver: number, isAlone: boolean): Promise<Sent> {
    const { onProgress } = this.#task
    const resumedBytes = await this.#usablePrefix(file, temporary, leftOver)
    if (leftOver > 0 || resumedBytes > 0) await this.#remote.call('C', temporary, resumedBytes / UNIT_BYTES)
    if (resumedBytes > 0) onProgress(resumedBytes, false)
    const seat = isAlone ? undefined : await this.#enterChain(file, temporary, resumedBytes)
    let have = resumedBytes
    let isCarried = false
    try {
      do {
        have = await this.#sendFrom(file, temporary, have, seat)
        if (have >= file.sizeBytes || seat === undefined) break
        const carriedTo = await this.#remote.orLost(seat.carried(have))
        isCarried ||= carriedTo > have
        // Blocks are sent whole.
        have = carriedTo === file.sizeBytes ? carriedTo : carriedTo - (carriedTo % BLOCK_BYTES)
      } while (have < file.sizeBytes)
    } catch (error) {
      if (error instanceof RemoteRefusal || error instanceof SourceChanged) await this.#remote.call('Z', temporary)
      throw error
    } finally {
      seat?.leave()
    }
    return { resumedBytes, isCarried }
  }

  async #enterChain(file: SourceFile, temporary: BytePath, have: number): Promise<Seat | undefined> {
    const { helper, enterChain } = this.#task
    if (enterChain === undefined || file.sizeBytes < CHAIN_BYTES || (await helper) === undefined) return undefined
    this.#suffix ??= this.#remote.call('E')
    return enterChain(file, `${temporary}.${await this.#suffix}`, have)
  }

  /** From here, until the end or until others bring it. Returns how much the host has then: nothing is under way. */
  async #sendFrom(file: SourceFile, temporary: BytePath, from: number, seat: Seat | undefined): Promise<number> {
    const { reader, onProgress } = this.#task
    const answers: Promise<void>[] = []
    const blockCount = Math.max(1, Math.ceil(file.sizeBytes / BLOCK_BYTES))
    let failure: unknown
    let have = from
    let chunks: Buffer[] = []
    let startIndex = 0
    const flush = async () => {
      if (chunks.length === 0) return
      const bytes = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      const end = startIndex * BLOCK_BYTES + bytes
      const units = (startIndex * BLOCK_BYTES) / UNIT_BYTES
      const { written, done } = this.#remote.send(chunks, 'W', temporary, units, bytes)
      chunks = []
      answers.push(
        done.then(
          () => {
            onProgress(bytes, true)
            if (failure !== undefined) return
            have = end
            seat?.advance(end)
          },
          (error: unknown) => {
            failure ??= error
          },
        ),
      )
      await written
      while (answers.length > (seat?.isUndecided ? UNDECIDED.ahead : SEGMENTS_AHEAD)) await answers.shift()
    }
    try {
      for (let index = from / BLOCK_BYTES; index < blockCount && failure === undefined; index += 1) {
        if (seat?.isCarried) break
        const block = file.sizeBytes === 0 ? Buffer.alloc(0) : await reader.read(file, index)
        // The last block is always written: it gives the file its size.
        if (file.isSparse && index < blockCount - 1 && isZero(block)) {
          await flush()
          onProgress(block.length, false)
          continue
        }
        if (chunks.length === 0) startIndex = index
        chunks.push(block)
        if (chunks.length >= (seat?.isUndecided ? UNDECIDED.blocks : SEGMENT_BLOCKS)) await flush()
      }
      await flush()
    } catch (error) {
      failure ??= error
    }
    await Promise.all(answers)
    if (failure !== undefined) throw failure
    return have
  }

  /** How much of what is left from an earlier copy is the beginning of this file. */
  async #usablePrefix(file: SourceFile, temporary: BytePath, leftOver: number): Promise<number> {
    const blocks = Math.min(Math.floor(leftOver / BLOCK_BYTES), Math.ceil(file.sizeBytes / BLOCK_BYTES) - 1)
    if (blocks < 1) return 0
    const bytes = blocks * BLOCK_BYTES
    const [theirs, ours] = await Promise.all([
      this.#remote.call('Y', temporary, bytes / UNIT_BYTES),
      this.#task.reader.prefixDigest(file, bytes),
    ])
    return theirs === ours ? bytes : 0
  }

  /** What is refused for one entry is told, and the rest goes on. */
  async #guard(entry: SourceEntry, work: () => Promise<unknown>): Promise<void> {
    try {
      await work()
    } catch (error) {
      const isLocal = error instanceof SourceChanged || (error as { code?: string }).code !== undefined
      if (!(error instanceof RemoteRefusal) && !isLocal) throw error
      const reason =
        error instanceof RemoteRefusal ? reasonOf(error) : `${showPath(entry.path)}: ${systemReason(error)}`
      this.#task.onFile(this.#pathOf(entry), 'failed', entry.kind === 'file' ? entry.sizeBytes : 0, { reason })
    }
  }
}

/** Beside the target, of a name that does not grow with the target's; the same each time, so that a cut copy is found. */
export function temporaryOf(path: BytePath): BytePath {
  const hash = createHash('sha256')
    .update(bytesOf(baseName(path)))
    .digest('hex')
    .slice(0, 16)
  return joinPath(parentOf(path), `.muster-${hash}`)
}

const ZEROS = Buffer.alloc(BLOCK_BYTES)

function isZero(block: Buffer): boolean {
  return block.equals(block.length === BLOCK_BYTES ? ZEROS : ZEROS.subarray(0, block.length))
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
