/**
 * Holds back jobs with `--storage` until their directory is proved to be the same one on all nodes of their engine. What it
 * remembers may be lost: a job that the engine already has is never held back, and a proof can be repeated.
 */
import type { EngineOrder, EngineReport, EngineRoom, JobEngine, StorageProblem } from './engine.ts'
import type { BundleEnd, SeenBundle } from './job.ts'

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

export type StorageGateOptions = {
  readonly engine: JobEngine
  readonly signal: AbortSignal
  now(): number
  /** A proof has ended: the engine can be given more. */
  onProved(): void
}

export class StorageGate {
  readonly #options: StorageGateOptions
  /** Keys of jobs that are proved, or that the engine has. */
  #open = new Set<string>()
  readonly #proofs = new Map<string, Proof>()

  constructor(options: StorageGateOptions) {
    this.#options = options
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
      const problems = this.#problems(key, path, room)
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

  /** Undefined: not known yet. */
  #problems(key: string, path: string, { nodes }: EngineRoom): readonly StorageProblem[] | undefined {
    const { engine, signal, now, onProved } = this.#options
    for (const [name, { atMs, problems }] of this.#proofs)
      if (problems !== undefined && Math.abs(now() - atMs) > VALID_MS) this.#proofs.delete(name)
    const hosts = nodes.map(({ host }) => host)
    const name = JSON.stringify([path, ...hosts.toSorted()])
    const known = this.#proofs.get(name)
    if (known !== undefined && (known.problems === undefined || known.problems.length === 0 || known.keys.has(key))) {
      known.keys.add(key)
      return known.problems
    }
    const proof: Proof = { atMs: now(), problems: undefined, keys: new Set([key]) }
    this.#proofs.set(name, proof)
    const ended = engine.proveStorage?.(path, hosts, signal) ?? Promise.resolve([CANNOT])
    void ended.then((problems) => {
      proof.problems = problems
      proof.atMs = now()
      if (!signal.aborted) onProved()
    })
    return undefined
  }
}

const CANNOT: StorageProblem = { words: 'its engine cannot prove that a directory is shared', isUnsure: false }

function endOf(problems: readonly StorageProblem[]): BundleEnd {
  const more = problems.length - MOST_SHOWN
  const words = problems.slice(0, MOST_SHOWN).map((problem) => problem.words)
  const reason = [...words, ...(more > 0 ? [`and ${more} more hosts`] : [])].join('; ')
  // What could not be asked may be all right the next time.
  return { kind: problems.every(({ isUnsure }) => isUnsure) ? 'unable' : 'refused', reason }
}
