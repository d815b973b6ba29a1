/**
 * One host's part of a copy: directories, then files (looked at first, sent only if they differ, carried on where an
 * earlier copy was cut), links, and at last the times of directories. A file gets its name only when the host has
 * computed the same checksum. It keeps no file in memory and does nothing that it has not been told to overwrite.
 */
import { type BytePath, joinPath, parentOf, showPath, withoutDash } from './byte-path.ts'
import { type Clash, describeClash, findRealClash } from './clashes.ts'
import type { CopyAction } from './events.ts'
import { touchTimes } from './file-times.ts'
import { type RemoteFiles, RemoteRefusal, reasonOf } from './remote-files.ts'
import { type RemoteHelper, unlessLost } from './remote-helper.ts'
import { FileSender, type SendTask, type Sent } from './send-file.ts'
import { sendBatch } from './send-small-files.ts'
import type { DestinationKind, SharedTarget, SharedTargets } from './shared-targets.ts'
import type { SmallFiles } from './small-files.ts'
import {
  BLOCK_BYTES,
  SourceChanged,
  type SourceEntry,
  type SourceFile,
  type SourceTree,
  systemReason,
} from './source.ts'
import { modeOfCopy, type Owner, symbolicMode } from './special-bits.ts'
import { temporaryOf } from './temporary-name.ts'

export type CopyTask = SendTask & {
  readonly tree: SourceTree
  /** What would be written over each other where the host's file system ignores case. */
  readonly clashes: readonly Clash[]
  /** Relative: to the home directory. A slash at its end, or several sources: a directory, which is made. */
  readonly destination: BytePath
  readonly isDryRun: boolean
  readonly smallFiles?: SmallFiles
  /** Where several hosts are copied to, which may share the destination. */
  readonly shared?: SharedTargets | undefined
  readonly host: string
  onFile(path: BytePath, action: CopyAction, sizeBytes: number, more?: { resumedBytes?: number; reason?: string }): void
}

/** Files up to this size cost the host no program for their bytes. */
const WORD_BYTES = 2048
/** Batches of small files on the way. */
const BATCHES_AHEAD = 3
/** Files that are looked at side by side, so that small ones do not wait for the way there and back. */
const FILES_AT_ONCE = 16

/** @throws RemoteRefusal the destination cannot be used; RemoteLost */
export async function copyToHost(remote: RemoteFiles, task: CopyTask): Promise<void> {
  await new HostCopy(remote, task).run()
}

const NOTHING_SENT: Sent = { resumedBytes: 0, isRelayed: false }

class HostCopy {
  readonly #remote: RemoteFiles
  readonly #task: CopyTask
  /** Where each source goes. */
  #roots: readonly BytePath[] = []
  /** Directories that could not be made: what is below them is not tried. */
  readonly #unusable = new Set<BytePath>()
  #target: SharedTarget | undefined
  /** Of what is made there; undefined: not asked, or it has not told. */
  #owner: Owner | undefined
  readonly #sender: FileSender
  #sending: Promise<void> = Promise.resolve()

  constructor(remote: RemoteFiles, task: CopyTask) {
    this.#remote = remote
    this.#task = task
    this.#sender = new FileSender(remote, task)
  }

  async run(): Promise<void> {
    const { destination, host, isDryRun, shared } = this.#task
    const path = withoutDash(destination.replace(/^~(?=\/|$)/, '.').replace(/(?<=.)\/+$/, ''))
    const kind = (await this.#remote.call('D', path)) as DestinationKind
    const joined = isDryRun ? undefined : await shared?.join(host, this.#remote, path, kind)
    this.#target = joined?.target
    // On all hosts that share it, the destination is what it was before the first of them wrote.
    const { roots, base, isMissing } = await this.#findRoots(path, this.#target?.kind ?? kind)
    this.#roots = roots
    if (joined === undefined) return await this.#copy(base, isMissing)
    const claim = async (file: SourceFile) => (await this.#lookAt(this.#pathOf(file), 'yes')).leftOver
    await joined.target.write(joined.suffix, { remote: this.#remote, claim }, async (isFirst) => {
      if (!isFirst) await this.#remote.call('R', parentOf(base), base)
      await this.#copy(base, isMissing)
    })
  }

  async #copy(base: BytePath, isMissing: boolean): Promise<void> {
    const { tree, isDryRun, smallFiles } = this.#task
    if (!isDryRun) {
      await this.#refuseClashes(base)
      if (isMissing) await this.#makeDestination(base)
    }
    if (tree.entries.some(({ owner }) => owner !== undefined)) await this.#askOwner()
    // For the directories too, where there are many files anyway.
    const helper = (smallFiles?.batches.length ?? 0) > 0 ? await this.#remote.orLost(this.#helper()) : undefined
    const directories = tree.entries.filter((entry) => entry.kind === 'directory')
    if (!isDryRun) await this.#makeDirectories(directories, helper)
    let files: readonly SourceFile[] = tree.entries.filter((entry) => entry.kind === 'file')
    if (helper !== undefined) files = await this.#copySmallFiles(files, helper)
    let next = 0
    const work = async () => {
      for (let file = files[next++]; file !== undefined; file = files[next++]) await this.#copyFile(file)
    }
    await Promise.all(Array.from({ length: FILES_AT_ONCE }, work))
    await Promise.all(
      tree.entries.map((entry) =>
        entry.kind !== 'link' ? undefined : isDryRun ? this.#lookAtLink(entry) : this.#makeLink(entry),
      ),
    )
    if (isDryRun) return
    await this.#dressDirectories(directories.toReversed(), helper)
  }

  async #helper(): Promise<RemoteHelper | undefined> {
    return await this.#task.helper
  }

  /** `base`: what holds all of it; `isMissing`: it is still to be made. */
  async #findRoots(
    path: BytePath,
    kind: DestinationKind,
  ): Promise<{ roots: readonly BytePath[]; base: BytePath; isMissing: boolean }> {
    const { tree, destination } = this.#task
    const isMany = tree.names.length > 1 || destination.endsWith('/') || tree.names.includes('')
    if (kind === 'other' && isMany) throw new RemoteRefusal(`${path}: Not a directory`)
    if (kind !== 'directory' && !isMany) {
      const parent = parentOf(path)
      const above = await this.#remote.call('D', parent)
      if (above !== 'directory') {
        throw new RemoteRefusal(`${parent}: ${above === 'none' ? 'No such directory' : 'Not a directory'}`)
      }
      return { roots: [path], base: path, isMissing: false }
    }
    const roots = tree.names.map((name) => joinPath(path, name))
    return { roots, base: path, isMissing: kind === 'none' }
  }

  async #makeDestination(path: BytePath): Promise<void> {
    await this.#remote.call('A', path).catch((error: unknown) => {
      throw error instanceof RemoteRefusal ? new RemoteRefusal(`${path}: ${reasonOf(error)}`) : error
    })
  }

  async #refuseClashes(base: BytePath): Promise<void> {
    const [root = base] = this.#roots
    const top = this.#roots.length === 1 ? root : base
    const clash = await findRealClash(
      this.#task.clashes,
      async (directory) => (await this.#remote.call('B', joinPath(top, directory === '.' ? '' : directory))) === 'yes',
    )
    if (clash !== undefined) throw new Error(`${describeClash(clash)}. Rename one of them.`)
  }

  #pathOf(entry: SourceEntry): BytePath {
    return joinPath(this.#roots[entry.root] ?? '', entry.below)
  }

  async #askOwner(): Promise<void> {
    const match = /^(\d+):(\d+)$/.exec(await this.#remote.call('O'))
    if (match !== null) this.#owner = { uid: Number(match[1]), gid: Number(match[2]) }
  }

  #modeOf({ mode, owner }: SourceEntry): number {
    return owner === undefined ? mode : modeOfCopy(mode, owner, this.#owner)
  }

  /** Below a directory that could not be made. */
  #isLeftOut(path: BytePath): boolean {
    if (this.#unusable.size === 0) return false
    for (let above = path; above !== '.' && above !== '/'; above = parentOf(above)) {
      if (this.#unusable.has(above)) return true
    }
    return false
  }

  async #makeDirectories(entries: readonly SourceEntry[], helper: RemoteHelper | undefined): Promise<void> {
    const order = { op: 'make', paths: entries.map((entry) => this.#pathOf(entry)) }
    const made = await this.#remote.orLost(unlessLost(helper?.ask(order)))
    await Promise.all(
      entries.map((entry, index) => {
        const path = this.#pathOf(entry)
        const said = made?.answers?.[index]
        const making = said === undefined ? this.#remote.call('K', path) : saidBy(said)
        return this.#guard(entry, async () => {
          await making.catch((error: unknown) => {
            const isBelow = this.#isLeftOut(parentOf(path))
            this.#unusable.add(path)
            if (!isBelow || !(error instanceof RemoteRefusal)) throw error
          })
        })
      }),
    )
  }

  async #dressDirectories(entries: readonly SourceEntry[], helper: RemoteHelper | undefined): Promise<void> {
    // The contents of a source go into a directory that is not its copy.
    const isIntoOther = ({ below, root }: SourceEntry) => below === '' && this.#task.tree.names[root] === ''
    const ours = entries.filter((entry) => !isIntoOther(entry) && !this.#isLeftOut(this.#pathOf(entry)))
    const order = ours.map((entry) => [this.#pathOf(entry), this.#modeOf(entry), String(entry.mtimeNs)])
    const dressed = await this.#remote.orLost(unlessLost(helper?.ask({ op: 'dress', paths: order })))
    await Promise.all(
      ours.map((entry, index) =>
        this.#guard(entry, () => {
          const said = dressed?.answers?.[index]
          if (said !== undefined) return saidBy(said)
          const mode = symbolicMode(this.#modeOf(entry))
          return this.#remote.call('M', this.#pathOf(entry), mode, ...touchTimes(entry.mtimeNs))
        }),
      ),
    )
  }

  /** Those that the helper can take; returns the others. */
  async #copySmallFiles(files: readonly SourceFile[], helper: RemoteHelper): Promise<readonly SourceFile[]> {
    const { smallFiles, isDryRun, onFile, onProgress } = this.#task
    const taken = new Set<SourceFile>()
    const task = {
      helper,
      isDryRun,
      pathOf: (file: SourceFile) => this.#pathOf(file),
      modeOf: (file: SourceFile) => this.#modeOf(file),
      onLeftOut: (file: SourceFile) => {
        taken.add(file)
        onProgress(file.sizeBytes, false)
      },
      onFile: (file: SourceFile, action: CopyAction, isSent: boolean, reason?: string) => {
        taken.add(file)
        onProgress(file.sizeBytes, isSent)
        onFile(this.#pathOf(file), action, file.sizeBytes, reason === undefined ? {} : { reason })
      },
      isLeftOut: (path: BytePath) => this.#isLeftOut(path),
    }
    const batches = smallFiles?.batches ?? []
    let next = 0
    const work = async () => {
      for (let batch = batches[next++]; batch !== undefined && !helper.isLost; batch = batches[next++]) {
        await sendBatch((await smallFiles?.load(batch)) ?? [], task)
      }
    }
    const all = Array.from({ length: BATCHES_AHEAD }, () => unlessLost(work()))
    await this.#remote.orLost(Promise.all(all))
    return files.filter((file) => !taken.has(file))
  }

  async #lookAtLink(entry: SourceEntry & { kind: 'link' }): Promise<void> {
    const path = this.#pathOf(entry)
    await this.#guard(entry, async () => {
      const { kind } = await this.#lookAt(path, 'no')
      refuseInPlace(kind)
      const isSame = kind === 'link' && (await this.#remote.call('I', path)).replace(/\n?\/$/, '') === entry.target
      this.#task.onFile(path, isSame ? 'identical' : 'would-copy', 0)
    })
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

  async #copyFile(file: SourceFile): Promise<void> {
    const path = this.#pathOf(file)
    if (this.#isLeftOut(path)) return this.#task.onProgress(file.sizeBytes, false)
    await this.#guard(file, async () => {
      const { reader, isDryRun, onFile, onProgress } = this.#task
      const temporary = temporaryOf(path)
      const found = await this.#lookAt(path, isDryRun ? 'no' : 'yes')
      const { kind, size, others } = found
      let { leftOver } = found
      refuseInPlace(kind)
      const times = touchTimes(file.mtimeNs)
      if (kind === 'file' && size === file.sizeBytes && (await this.#isSame(path, file))) {
        if (!isDryRun) await this.#remote.call('M', path, octal(this.#modeOf(file)), ...times)
        if (leftOver > 0 && !isDryRun) await this.#remote.call('Z', temporary)
        onProgress(file.sizeBytes, false)
        return onFile(path, 'identical', file.sizeBytes)
      }
      if (isDryRun) return onFile(path, 'would-copy', file.sizeBytes)
      if (leftOver === 0 && others.length > 0 && file.sizeBytes > BLOCK_BYTES)
        leftOver = (await this.#target?.takeOver(this.#remote, file, temporary, others)) ?? 0
      const isSent = await this.#sendSmallFile(file, temporary)
      const send = (isAlone: boolean) => this.#inTurn(() => this.#sender.send(file, temporary, leftOver, isAlone))
      const { resumedBytes, isRelayed } = isSent ? NOTHING_SENT : await send(false)
      const sha256 = await reader.digest(file)
      const finish = () => this.#remote.call('F', temporary, path, sha256, octal(this.#modeOf(file)), ...times)
      await finish().catch(async (error: unknown) => {
        // Another host has passed on something else: what comes from here can be trusted.
        if (!isRelayed || !(error instanceof RemoteRefusal) || !/checksum/.test(error.message)) throw error
        await send(true)
        await finish()
      })
      onFile(path, 'copied', file.sizeBytes, resumedBytes > 0 ? { resumedBytes } : {})
    })
  }

  /** What is there, and what earlier copies left: of this host's, so many bytes; of other machines, how its names end. */
  async #lookAt(path: BytePath, claims: 'yes' | 'no') {
    const [kind, size, leftOver, ...others] = (await this.#remote.call('P', path, temporaryOf(path), claims)).split(' ')
    return { kind, size: Number(size), leftOver: Number(leftOver), others }
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

/** What nothing can be renamed to. */
function refuseInPlace(kind: string | undefined): void {
  if (kind === 'directory') throw new RemoteRefusal('Is a directory')
  if (kind === 'special') throw new RemoteRefusal('Is a device, pipe or socket')
}

/** An answer of the helper, as if the shell had given it. */
async function saidBy(said: string): Promise<void> {
  if (said !== '') throw new RemoteRefusal(Buffer.from(said).toString('latin1'))
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
