/** Hosts whose destination is one directory (a home over NFS), shown by proof files: one writes, then the others check every file. */
import type { Clock } from '../../base/clock.ts'
import { newProofName } from '../../base/proof-file.ts'
import { type BytePath, showPath } from './byte-path.ts'
import type { RemoteFiles } from './remote-files.ts'
import type { CopySource } from './source.ts'

/** The destination on a host: a directory, something else, or nothing yet. */
export type DestinationKind = 'directory' | 'other' | 'none'

export type SharedTargetsOptions = {
  readonly hosts: readonly string[]
  readonly clock: Clock
  /** `host` checks what `writer` writes. */
  onShared(host: string, writer: Member): void
}

/** What a host learns about its destination. */
type Place = {
  readonly target: SharedTarget
  /** How the names of its partial files end. */
  readonly suffix: string
  /** The nearest existing directory, by its path on this host; printable. */
  readonly directory: string
}

/** One of the hosts that share a target. */
type Member = Pick<Place, 'suffix' | 'directory'> & {
  readonly host: string
  readonly remote: RemoteFiles
  /** Takes over the partial file that a dead process of this host left; resolves with its size in bytes. */
  claim(file: CopySource): Promise<number>
}

type Proof = { readonly name: string; readonly rest: BytePath; target: SharedTarget }

/** For hosts that have not connected yet, and for a host that does not answer. */
const CLAIM_LIMIT_MS = 3_000

export class SharedTargets {
  readonly #options: SharedTargetsOptions
  /** In the order in which they were written: a host follows only earlier ones. */
  readonly #proofs: Proof[] = []
  readonly #awaited: Set<string>
  readonly #everyone = Promise.withResolvers<void>()

  constructor(options: SharedTargetsOptions) {
    this.#options = options
    this.#awaited = new Set(options.hosts)
  }

  /** Resolves when every host is a member of its target, or has ended. */
  get everyone(): Promise<void> {
    return this.#everyone.promise
  }

  /** `kind`: what the host saw at `path` before it wrote anything. @throws RemoteRefusal, RemoteLost */
  async join(remote: RemoteFiles, path: BytePath, kind: DestinationKind): Promise<Place> {
    const name = newProofName()
    const answer = await remote.call('H', path, name)
    const [, length = '0', suffix = '', directory = ''] = /^(\d+) (\S+) (.*)$/s.exec(answer) ?? []
    const own = { name, rest: restOf(path, length), target: new SharedTarget(this, kind) }
    const before = [...this.#proofs]
    this.#proofs.push(own)
    const seen = before.length === 0 ? '' : await remote.call('J', path, ...before.map((proof) => proof.name))
    const rests = new Map(
      seen.split('\n').map((line) => {
        const [seenName = '', seenLength = '0'] = line.split(' ')
        return [seenName, restOf(path, seenLength)]
      }),
    )
    const first = before.find((proof) => rests.get(proof.name) === proof.rest)
    if (first !== undefined) own.target = first.target
    // The proof file of a follower is removed at once, the others when all hosts have looked.
    void (first === undefined ? this.everyone : Promise.resolve()).then(() => remote.call('Q')).catch(() => {})
    return { target: own.target, suffix, directory: showPath(directory) }
  }

  handleShared(host: string, writer: Member): void {
    this.#options.onShared(host, writer)
  }

  /** The host is a member of its target, or has ended. */
  handleArrival(host: string): void {
    this.#awaited.delete(host)
    if (this.#awaited.size === 0) this.#everyone.resolve()
  }

  /** Resolves when the work is over, has failed, or takes too long. */
  async limited(work: Promise<unknown>): Promise<void> {
    const late = Promise.withResolvers<void>()
    using _limit = this.#options.clock.after(CLAIM_LIMIT_MS, late.resolve)
    await Promise.race([work.catch(() => {}), late.promise])
  }
}

/** The part of a path after an existing directory, whose path has this length. */
function restOf(path: BytePath, length: string): BytePath {
  return path.slice(Number(length)).replace(/^\/+/, '')
}

export class SharedTarget {
  /** What was at the destination before any host wrote there. */
  readonly kind: DestinationKind
  readonly #targets: SharedTargets
  /** By the names of their machines. */
  readonly #members = new Map<string, Member>()
  /** The first host that writes. */
  #writer: Member | undefined
  #writing: Promise<void> | undefined
  #isWritten = false

  constructor(targets: SharedTargets, kind: DestinationKind) {
    this.#targets = targets
    this.kind = kind
  }

  /** One member at a time until one has finished, then all others at once. `isFirst`: nothing was written. Rejects as `work` does. */
  async write(member: Member, work: (isFirst: boolean) => Promise<void>): Promise<void> {
    this.#members.set(nodeOf(member.suffix), member)
    this.#targets.handleArrival(member.host)
    this.#writer ??= member
    if (this.#writer !== member) this.#targets.handleShared(member.host, this.#writer)
    while (!this.#isWritten && this.#writing !== undefined) await member.remote.orLost(this.#writing)
    if (this.#isWritten) return await work(false)
    const writing = work(this.#writer === member)
    this.#writing = writing.then(
      () => {
        this.#isWritten = true
      },
      () => {
        this.#writing = undefined
      },
    )
    await writing
  }

  /**
   * Takes over a partial file that an earlier copy wrote through another host: only that host can tell whether the process is dead.
   * `suffixes`: of the partial files there. Resolves with the size in bytes of the partial file that `remote` owns afterwards.
   */
  async takeOver(remote: RemoteFiles, file: CopySource, partial: BytePath, suffixes: readonly string[]) {
    for (const node of new Set(suffixes.map(nodeOf))) {
      if (!this.#members.has(node)) await this.#targets.limited(this.#targets.everyone)
      const member = this.#members.get(node)
      if (member === undefined || member.remote === remote) continue
      let claimed = 0
      await this.#targets.limited(member.claim(file).then((size) => (claimed = size)))
      if (claimed > 0) return Number(await remote.call('adopt', `${partial}.${member.suffix}`, partial))
    }
    return 0
  }
}

/** `m8.cluster.4711` → `m8.cluster` */
function nodeOf(suffix: string): string {
  return suffix.replace(/\.\d+$/, '')
}
