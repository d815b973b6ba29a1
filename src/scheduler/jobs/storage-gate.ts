/**
 * Holds back jobs with `--storage` until their directory is proved to be the same one on all nodes of their engine, or on the
 * hosts of a launched job. What it
 * remembers may be lost: a job that the engine already has is never held back, and a proof can be repeated.
 */
import type { EngineOrder, EngineReport, EngineRoom, JobEngine, ProveStorage, StorageProblem } from './engine.ts'
import { type BundleEnd, isActive, isPlaced, type Job, type SeenBundle } from './job.ts'
import { bundleKey } from './orders.ts'

/** Jobs that start within this time share a proof. */
const VALID_MS = 30_000
const MOST_SHOWN = 5

/** `keys`: jobs that wait for it; a later one may have come because the problem was fixed. */
type Proof = { atMs: number; problems: readonly StorageProblem[] | undefined; readonly keys: Set<string> }

type Round = {
  readonly trouble: string | undefined
  readonly reports: ReadonlyMap<string, EngineReport>
  readonly room?: EngineRoom | undefined
  /** What is told of bundles, by key; those of jobs that it holds back are changed. */
  readonly bundles: Map<string, SeenBundle>
}

type ProofOptions = {
  readonly prove: ProveStorage
  readonly signal: AbortSignal
  now(): number
  /** A proof has ended: more jobs can begin. */
  onProved(): void
}

export type StorageGateOptions = Omit<ProofOptions, 'prove'> & { readonly engine: JobEngine }

/** Proofs under way, and those that jobs which start together share. */
export class StorageProofs {
  readonly #options: ProofOptions
  readonly #proofs = new Map<string, Proof>()

  constructor(options: ProofOptions) {
    this.#options = options
  }

  /** Undefined: not known yet; it is under way. */
  problems(key: string, path: string, hosts: readonly string[]): readonly StorageProblem[] | undefined {
    const { prove, signal, now, onProved } = this.#options
    for (const [name, { atMs, problems }] of this.#proofs)
      if (problems !== undefined && Math.abs(now() - atMs) > VALID_MS) this.#proofs.delete(name)
    const name = JSON.stringify([path, ...hosts.toSorted()])
    const known = this.#proofs.get(name)
    if (known !== undefined && (known.problems === undefined || known.problems.length === 0 || known.keys.has(key))) {
      known.keys.add(key)
      return known.problems
    }
    const proof: Proof = { atMs: now(), problems: undefined, keys: new Set([key]) }
    this.#proofs.set(name, proof)
    void prove(path, hosts, signal).then((problems) => {
      proof.problems = problems
      proof.atMs = now()
      if (!signal.aborted) onProved()
    })
    return undefined
  }
}

export type HostGateOptions = ProofOptions & { readonly storeId: string }

/** The same for launched jobs: nothing of them begins before their hosts have proved the directory. */
export class HostStorageGate {
  readonly #storeId: string
  readonly #proofs: StorageProofs
  #open = new Set<string>()

  constructor({ storeId, ...options }: HostGateOptions) {
    this.#storeId = storeId
    this.#proofs = new StorageProofs(options)
  }

  /** Which of these have to wait, and for those that cannot begin the end of their first bundle, which ends the others. */
  judge(active: readonly Job[]) {
    const waiting = new Set<Job>()
    const ends = new Map<string, { readonly host: string; readonly end: BundleEnd }>()
    const open = new Set<string>()
    for (const job of active) {
      const { spec, state } = job
      if (spec.storage === undefined || spec.engine !== undefined || !isActive(state)) continue
      const key = bundleKey(this.#storeId, job, 0)
      const hosts = [...new Set(state.places.map(({ host }) => host))]
      const isBegun = !isPlaced(state) || state.bundles.some(({ kind }) => kind !== 'sent')
      const problems = isBegun || this.#open.has(key) ? [] : this.#proofs.problems(key, spec.storage, hosts)
      if (problems?.length === 0) open.add(key)
      else waiting.add(job)
      if (problems !== undefined && problems.length > 0) ends.set(key, { host: hosts[0] ?? '', end: endOf(problems) })
    }
    this.#open = open
    return { waiting, ends }
  }
}

export class StorageGate {
  readonly #options: StorageGateOptions
  /** Keys of jobs that are proved, or that the engine has. */
  #open = new Set<string>()
  readonly #proofs: StorageProofs

  constructor(options: StorageGateOptions) {
    const { engine } = options
    const prove: ProveStorage = (...given) => (engine.proveStorage ?? cannotProve)(...given)
    this.#options = options
    this.#proofs = new StorageProofs({ ...options, prove })
  }

  /** A job that is held back is only asked about. */
  replace(orders: readonly EngineOrder[]): readonly EngineOrder[] {
    const keys = new Set(orders.map(({ key }) => key))
    this.#open = new Set([...this.#open].filter((key) => keys.has(key)))
    return orders.map((order) => (this.#pathOf(order) === undefined ? order : { kind: 'check', key: order.key }))
  }

  holdsAny(orders: readonly EngineOrder[]): boolean {
    return orders.some((order) => this.#pathOf(order) !== undefined)
  }

  /** After a round with `replace(orders)`. */
  judge(orders: readonly EngineOrder[], { trouble, reports, room, bundles }: Round): void {
    for (const order of orders) {
      const path = this.#pathOf(order)
      if (path === undefined) continue
      const { key } = order
      const report = reports.get(key)
      if (trouble === undefined && report !== undefined && report !== 'forgotten') {
        this.#open.add(key)
        continue
      }
      bundles.delete(key)
      if (trouble !== undefined || report === undefined || room === undefined) continue
      const hosts = room.nodes.map(({ host }) => host)
      const problems = this.#proofs.problems(key, path, hosts)
      if (problems === undefined) continue
      if (problems.length > 0) bundles.set(key, { kind: 'ended', end: endOf(problems) })
      else {
        this.#open.add(key)
        this.#options.onProved()
      }
    }
  }

  #pathOf(order: EngineOrder): string | undefined {
    return order.kind === 'start' && !this.#open.has(order.key) ? order.spec.storage : undefined
  }
}

export const cannotProve: ProveStorage = async () => [
  { words: 'its engine cannot prove that a directory is shared', isUnsure: false },
]

function endOf(problems: readonly StorageProblem[]): BundleEnd {
  const more = problems.length - MOST_SHOWN
  const words = problems.slice(0, MOST_SHOWN).map((problem) => problem.words)
  const reason = [...words, ...(more > 0 ? [`and ${more} more hosts`] : [])].join('; ')
  // What could not be asked may be all right the next time.
  return { kind: problems.every(({ isUnsure }) => isUnsure) ? 'unable' : 'refused', reason }
}
