/** One host's part: directories, files (compared first), links, times. A file gets its name once its checksum is verified. */
import { eachAtOnce } from '../../base/collections.ts'
import { type BytePath, joinPath, markOf, parentOf, partialOf, showPath, withoutDash } from './byte-path.ts'
import { type Clash, describeClash, findRealClash } from './clashes.ts'
import type { CopyAction } from './events.ts'
import { type RemoteFiles, RemoteRefusal, reasonOf } from './remote-files.ts'
import { type RemoteHelper, unlessLost } from './remote-helper.ts'
import { FileSender, type SendTask, type Sent } from './send-file.ts'
import type { DestinationKind, SharedTarget, SharedTargets } from './shared-targets.ts'
import { type SmallFiles, sendBatch } from './small-files.ts'
import {
  BLOCK_BYTES,
  type CopySource,
  modeOfCopy,
  type Owner,
  SourceChanged,
  type SourceEntry,
  type SourceTree,
  symbolicMode,
  systemReason,
  touchTimes,
} from './source.ts'

export type CopyTask = SendTask & {
  readonly tree: SourceTree
  /** Sources that would overwrite each other where the host's file system ignores case. */
  readonly clashes: readonly Clash[]
  /** A relative one starts in the home directory. With a slash at its end, or for several sources, it is a directory, which is made. */
  readonly destination: BytePath
  readonly isDryRun: boolean
  /** Below the destination, a link in place of a directory is replaced, even if root owns it. */
  readonly replacesLinks: boolean
  readonly smallFiles?: SmallFiles
  /** Finds hosts that share the destination; undefined for a single host. */
  readonly shared?: SharedTargets | undefined
  readonly host: string
  onFile(path: BytePath, action: CopyAction, sizeBytes: number, more?: { resumedBytes?: number; reason?: string }): void
}

/** Files up to this size go into an order, so that the host starts no program for their bytes. */
const WORD_BYTES = 2048
const BATCHES_AHEAD = 3
/** Files that are checked at once, so that small ones do not wait for a round trip each. */
const FILES_AT_ONCE = 16

const NOTHING_SENT: Sent = { resumedBytes: 0, isRelayed: false }

export class HostCopy {
  readonly #remote: RemoteFiles
  readonly #task: CopyTask
  #roots: readonly BytePath[] = []
  /** Directories that could not be made: everything below them is skipped. */
  readonly #unusable = new Set<BytePath>()
  #target: SharedTarget | undefined
  /** The user and group of new files there; undefined: not needed, or not known. */
  #owner: Owner | undefined
  readonly #sender: FileSender
  #hasFailures = false
  #sending: Promise<void> = Promise.resolve()

  constructor(remote: RemoteFiles, task: CopyTask) {
    this.#remote = remote
    this.#task = {
      ...task,
      onFile: (path, action, ...rest) => {
        this.#hasFailures ||= action === 'failed'
        task.onFile(path, action, ...rest)
      },
    }
    this.#sender = new FileSender(remote, task)
  }

  /** @throws RemoteRefusal the destination cannot be used; RemoteLost */
  async run(): Promise<void> {
    const { destination, host, isDryRun, shared } = this.#task
    const path = withoutDash(destination.replace(/^~(?=\/|$)/, '.').replace(/(?<=.)\/+$/, ''))
    const mark = this.#markFor(path)
    const marks = mark === undefined ? [] : [mark]
    const kind = (await this.#remote.call('D', path, ...marks)) as DestinationKind
    const joined = isDryRun ? undefined : await shared?.join(this.#remote, path, kind)
    this.#target = joined?.target
    // For all hosts that share it, the destination is what it was before the first of them wrote.
    const { roots, base, isMissing } = await this.#findRoots(path, this.#target?.kind ?? kind)
    this.#roots = roots
    const copy = async (isFirst: boolean) => {
      const isMarked = mark !== undefined && roots[0] === path && !isDryRun
      if (isMarked) await this.#remote.call('begin', mark, isFirst ? 'yes' : 'no')
      await this.#copy(base, isMissing)
      // With failures, the same command also continues.
      if (isMarked && !this.#hasFailures) await this.#remote.call('complete', mark)
    }
    if (joined === undefined) return await copy(true)
    const claim = async (file: CopySource) => (await this.#inspect(this.#pathOf(file), 'yes')).partialBytes
    await joined.target.write({ ...joined, host, remote: this.#remote, claim }, async (isFirst) => {
      if (!isFirst) await this.#remote.call('R', parentOf(base), base)
      await copy(isFirst)
    })
  }

  /** For one directory that gets a new name: what says until its end that it is incomplete, and no directory to copy into. */
  #markFor(path: BytePath): BytePath | undefined {
    const { tree, destination } = this.#task
    const [name = '', ...others] = tree.names
    const isNamed = name !== '' && others.length === 0 && !destination.endsWith('/')
    const isDirectory = tree.entries.some(({ below, kind }) => below === '' && kind === 'directory')
    return isNamed && isDirectory ? markOf(path, name) : undefined
  }

  async #copy(base: BytePath, isMissing: boolean): Promise<void> {
    const { tree, isDryRun, smallFiles } = this.#task
    if (!isDryRun) {
      await this.#refuseClashes(base)
      if (isMissing)
        await this.#remote.call('A', base).catch((error: unknown) => {
          throw error instanceof RemoteRefusal ? new RemoteRefusal(`${base}: ${reasonOf(error)}`) : error
        })
    }
    if (tree.entries.some(({ owner }) => owner !== undefined)) {
      const match = /^(\d+):(\d+)$/.exec(await this.#remote.call('O'))
      if (match !== null) this.#owner = { uid: Number(match[1]), gid: Number(match[2]) }
    }
    // Directories go through the helper, too, if it runs anyway.
    const helper =
      (smallFiles?.batches.length ?? 0) > 0 ? await this.#remote.orLost(Promise.resolve(this.#task.helper)) : undefined
    const directories = tree.entries.filter((entry) => entry.kind === 'directory')
    if (!isDryRun) {
      await this.#makeDirectories(directories, base, helper)
      await this.#remote.call('top', base)
    }
    let files: readonly CopySource[] = tree.entries.filter((entry) => entry.kind === 'file')
    if (helper !== undefined) files = await this.#copySmallFiles(files, helper)
    await eachAtOnce(files, FILES_AT_ONCE, (file) => this.#copyFile(file))
    await Promise.all(
      tree.entries.map((entry) =>
        entry.kind !== 'link' ? undefined : isDryRun ? this.#checkLink(entry) : this.#makeLink(entry),
      ),
    )
    if (isDryRun) return
    await this.#setDirectoryAttributes(directories.toReversed(), helper)
  }

  /** `base`: the directory that holds everything. `isMissing`: it has to be made. */
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
    return { roots: tree.names.map((name) => joinPath(path, name)), base: path, isMissing: kind === 'none' }
  }

  async #refuseClashes(base: BytePath): Promise<void> {
    const [root = base] = this.#roots
    const top = this.#roots.length === 1 ? root : base
    const clash = await findRealClash(this.#task.clashes, async (directory) => {
      // A directory may be a link that is to be replaced.
      const place = directory === '.' || this.#task.replacesLinks ? top : joinPath(top, directory)
      return (await this.#remote.call('B', place)) === 'yes'
    })
    if (clash !== undefined) throw new Error(`${describeClash(clash)}. Rename one of them.`)
  }

  #pathOf(entry: SourceEntry): BytePath {
    return joinPath(this.#roots[entry.root] ?? '', entry.below)
  }

  #modeOf({ mode, owner }: SourceEntry): number {
    return owner === undefined ? mode : modeOfCopy(mode, owner, this.#owner)
  }

  /** It is below a directory that could not be made. */
  #isLeftOut(path: BytePath): boolean {
    if (this.#unusable.size === 0) return false
    for (let above = path; above !== '.' && above !== '/'; above = parentOf(above)) {
      if (this.#unusable.has(above)) return true
    }
    return false
  }

  async #makeDirectories(
    entries: readonly SourceEntry[],
    base: BytePath,
    helper: RemoteHelper | undefined,
  ): Promise<void> {
    const replacesLink = (path: BytePath) => this.#task.replacesLinks && path !== base
    const paths = entries.map((entry) => this.#pathOf(entry))
    const order = { op: 'make', top: base, paths: paths.map((path) => [path, replacesLink(path)]) }
    const made = await this.#remote.orLost(unlessLost(helper?.ask(order)))
    await Promise.all(
      entries.map((entry, index) => {
        const path = this.#pathOf(entry)
        const said = made?.answers?.[index]
        const words = replacesLink(path) ? ['replace'] : []
        const making = said === undefined ? this.#remote.call('K', path, ...words) : asRefusal(said)
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

  async #setDirectoryAttributes(entries: readonly SourceEntry[], helper: RemoteHelper | undefined): Promise<void> {
    // With `source/.` the contents go into a directory that is not a copy of the source.
    const isIntoOther = ({ below, root }: SourceEntry) => below === '' && this.#task.tree.names[root] === ''
    const ours = entries.filter((entry) => !isIntoOther(entry) && !this.#isLeftOut(this.#pathOf(entry)))
    const order = ours.map((entry) => [this.#pathOf(entry), this.#modeOf(entry), String(entry.mtimeNs)])
    const done = await this.#remote.orLost(unlessLost(helper?.ask({ op: 'attributes', paths: order })))
    await Promise.all(
      ours.map((entry, index) =>
        this.#guard(entry, () => {
          const said = done?.answers?.[index]
          if (said !== undefined) return asRefusal(said)
          const mode = symbolicMode(this.#modeOf(entry))
          return this.#remote.call('M', this.#pathOf(entry), mode, ...touchTimes(entry.mtimeNs))
        }),
      ),
    )
  }

  /** Copies the files that the helper can take; returns the others. */
  async #copySmallFiles(files: readonly CopySource[], helper: RemoteHelper): Promise<readonly CopySource[]> {
    const { smallFiles, isDryRun, onFile, onProgress } = this.#task
    const taken = new Set<CopySource>()
    const task = {
      helper,
      isDryRun,
      pathOf: (file: CopySource) => this.#pathOf(file),
      modeOf: (file: CopySource) => this.#modeOf(file),
      onLeftOut: (file: CopySource) => {
        taken.add(file)
        onProgress(file.sizeBytes, false)
      },
      onFile: (file: CopySource, action: CopyAction, isSent: boolean, reason?: string) => {
        taken.add(file)
        onProgress(file.sizeBytes, isSent)
        onFile(this.#pathOf(file), action, file.sizeBytes, reason === undefined ? {} : { reason })
      },
      isLeftOut: (path: BytePath) => this.#isLeftOut(path),
    }
    const send = eachAtOnce(smallFiles?.batches ?? [], BATCHES_AHEAD, async (batch) => {
      if (!helper.isLost) await sendBatch((await smallFiles?.load(batch)) ?? [], task)
    })
    await this.#remote.orLost(unlessLost(send))
    return files.filter((file) => !taken.has(file))
  }

  async #checkLink(entry: SourceEntry & { kind: 'link' }): Promise<void> {
    const path = this.#pathOf(entry)
    await this.#guard(entry, async () => {
      const { kind } = await this.#inspect(path, 'no')
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
      const said = await this.#remote.call('L', entry.target, path, partialOf(path), time)
      this.#task.onFile(path, said === 'same' ? 'identical' : 'copied', 0)
    })
  }

  async #copyFile(file: CopySource): Promise<void> {
    const path = this.#pathOf(file)
    if (this.#isLeftOut(path)) return this.#task.onProgress(file.sizeBytes, false)
    await this.#guard(file, async () => {
      const { reader, isDryRun, onFile, onProgress } = this.#task
      const partial = partialOf(path)
      const found = await this.#inspect(path, isDryRun ? 'no' : 'yes')
      const { kind, size, others } = found
      let { partialBytes } = found
      refuseInPlace(kind)
      const times = touchTimes(file.mtimeNs)
      if (kind === 'file' && size === file.sizeBytes && (await this.#isSame(path, file))) {
        if (!isDryRun) await this.#remote.call('M', path, octal(this.#modeOf(file)), ...times)
        if (partialBytes > 0 && !isDryRun) await this.#remote.call('Z', partial)
        onProgress(file.sizeBytes, false)
        return onFile(path, 'identical', file.sizeBytes)
      }
      if (isDryRun) return onFile(path, 'would-copy', file.sizeBytes)
      if (partialBytes === 0 && others.length > 0 && file.sizeBytes > BLOCK_BYTES)
        partialBytes = (await this.#target?.takeOver(this.#remote, file, partial, others)) ?? 0
      const isSent = await this.#sendSmallFile(file, partial)
      const send = (isAlone: boolean) => this.#inTurn(() => this.#sender.send(file, partial, partialBytes, isAlone))
      const sent = isSent ? NOTHING_SENT : await send(false)
      const { resumedBytes, isRelayed } = sent
      const sha256 = await reader.digest(file)
      const finish = (sha: string) =>
        this.#remote.callFor(file.sizeBytes, 'F', partial, path, sha, octal(this.#modeOf(file)), ...times)
      // The shell need not read the file again if the helper's checksum is right.
      await finish(sent.sha256 === sha256 ? '' : sha256).catch(async (error: unknown) => {
        // Another host relayed something else: send it from this machine.
        if (!isRelayed || !(error instanceof RemoteRefusal) || !/checksum/.test(error.message)) throw error
        await send(true)
        await finish(sha256)
      })
      onFile(path, 'copied', file.sizeBytes, resumedBytes > 0 ? { resumedBytes } : {})
    })
  }

  /** `partialBytes`: bytes that an earlier copy left on this host; `others`: how the names end that other machines left. */
  async #inspect(path: BytePath, claims: 'yes' | 'no') {
    const [kind, size, partialBytes, ...others] = (await this.#remote.call('P', path, partialOf(path), claims)).split(
      ' ',
    )
    return { kind, size: Number(size), partialBytes: Number(partialBytes), others }
  }

  async #isSame(path: BytePath, file: CopySource): Promise<boolean> {
    const [theirs, ours] = await Promise.all([
      this.#remote.callFor(file.sizeBytes, 'S', path).catch((error: unknown) => {
        if (error instanceof RemoteRefusal) return ''
        throw error
      }),
      this.#task.reader.digest(file),
    ])
    return theirs === ours
  }

  /** One file at a time, so that all hosts read the same file at the same time. */
  #inTurn<T>(send: () => Promise<T>): Promise<T> {
    const turn = this.#sending.then(send)
    this.#sending = turn.then(
      () => {},
      () => {},
    )
    return turn
  }

  /** Sends the file within the order: a shell word holds no NUL, and the host reads it byte by byte. */
  async #sendSmallFile(file: CopySource, partial: BytePath): Promise<boolean> {
    if (file.sizeBytes > WORD_BYTES) return false
    const block = file.sizeBytes === 0 ? Buffer.alloc(0) : await this.#task.reader.read(file, 0)
    if (block.includes(0)) return false
    try {
      await this.#remote.call('V', partial, block.toString('latin1'))
    } catch (error) {
      if (error instanceof RemoteRefusal) await this.#remote.call('Z', partial)
      throw error
    }
    this.#task.onProgress(block.length, true)
    return true
  }

  /** Reports what a host refuses for one entry, and continues with the rest. */
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

/** @throws RemoteRefusal where nothing can be renamed to it */
function refuseInPlace(kind: string | undefined): void {
  if (kind === 'directory') throw new RemoteRefusal('Is a directory')
  if (kind === 'special') throw new RemoteRefusal('Is a device, pipe or socket')
}

/** Turns an answer of the helper into the refusal that the shell would give. */
async function asRefusal(said: string): Promise<void> {
  if (said !== '') throw new RemoteRefusal(Buffer.from(said).toString('latin1'))
}

function octal(mode: number): string {
  return mode.toString(8).padStart(4, '0')
}
