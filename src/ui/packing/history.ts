/** The last ten minutes of devices: which jobs held them, and how busy they were while the console sampled their hosts. */
import { getOrMake } from '../../base/collections.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import type { DeviceHold, PackedHost } from '../../scheduler/jobs/packing.ts'
import type { RealGpu } from '../jobs/queue-view.ts'

export const HISTORY_MS = 600_000
const STEP_MS = 10_000
const STEPS = HISTORY_MS / STEP_MS + 1
/** Of one host, which may name other GPUs whenever its script starts again. */
const MOST_PARTS = 512
/** Less is idle. */
const IDLE = 0.05

/** A program that only waits for others, such as the server of MPS, uses less; one that has opened CUDA uses more. */
const LEAST_MEMORY = 2 ** 28

/** Whether programs compute on this GPU now, as far as samples say. */
export const isInUse = (gpu: RealGpu | undefined): boolean =>
  gpu !== undefined &&
  ((gpu.busy ?? 0) >= IDLE || ((gpu.processes ?? []).length > 0 && (gpu.usedBytes ?? 0) >= LEAST_MEMORY))

/** Means of ten seconds; `steps`: which ten seconds since the epoch each one is. */
type Ring = { readonly steps: Float64Array; readonly sums: Float64Array; readonly counts: Uint32Array }

/** The cores of a host, or a GPU by its index. */
export type UsedPart = number | 'cores'

/** How busy GPUs and cores were, from 0 to 1; nothing before the first sample of their host. */
export class UseHistory {
  readonly #hosts = new Map<string, Map<UsedPart, Ring>>()

  note(host: string, { atMs, cpu, gpus }: Sample): void {
    const parts = getOrMake(this.#hosts, host, () => new Map<UsedPart, Ring>())
    addTo(parts, 'cores', atMs, cpu)
    for (const { id, busy } of gpus) if (busy !== undefined) addTo(parts, Number(id), atMs, busy)
  }

  /** Forgets other hosts. */
  keep(hosts: ReadonlySet<string>): void {
    for (const host of this.#hosts.keys()) if (!hosts.has(host)) this.#hosts.delete(host)
  }

  has(host: string): boolean {
    return this.#hosts.has(host)
  }

  /** The mean of this time; undefined: there are no samples of it. */
  between(host: string, part: UsedPart, fromMs: number, toMs: number): number | undefined {
    const ring = this.#hosts.get(host)?.get(part)
    if (ring === undefined) return undefined
    let [sum, count] = [0, 0]
    const last = Math.max(Math.floor(fromMs / STEP_MS), Math.ceil(toMs / STEP_MS) - 1)
    for (let step = Math.floor(fromMs / STEP_MS); step <= last; step++) {
      const at = step % STEPS
      if (ring.steps[at] !== step) continue
      sum += ring.sums[at] ?? 0
      count += ring.counts[at] ?? 0
    }
    return count === 0 ? undefined : sum / count
  }
}

function addTo(parts: Map<UsedPart, Ring>, part: UsedPart, atMs: number, busy: number): void {
  if (parts.size >= MOST_PARTS && !parts.has(part)) return
  const make = () => ({
    steps: new Float64Array(STEPS),
    sums: new Float64Array(STEPS),
    counts: new Uint32Array(STEPS),
  })
  const { steps, sums, counts } = getOrMake(parts, part, make)
  const step = Math.floor(atMs / STEP_MS)
  const at = step % STEPS
  if (steps[at] !== step) [steps[at], sums[at], counts[at]] = [step, 0, 0]
  sums[at] = (sums[at] ?? 0) + busy
  counts[at] = (counts[at] ?? 0) + 1
}

/** Of a cluster whose history is not known: what the console has seen of it since it first showed it. */
export class HoldHistory {
  readonly #holds = new Map<string, DeviceHold[]>()
  #sinceMs: number | undefined

  get sinceMs(): number | undefined {
    return this.#sinceMs
  }

  get holds(): readonly DeviceHold[] {
    return [...this.#holds.values()].flat()
  }

  see(hosts: readonly PackedHost[], nowMs: number): void {
    this.#sinceMs ??= nowMs
    const names = new Set(hosts.map(({ name }) => name))
    for (const host of this.#holds.keys()) if (!names.has(host)) this.#holds.delete(host)
    for (const { name, devices, jobs } of hosts) {
      const now = new Map(
        jobs.map((job) => [
          job,
          devices.flatMap((shares, at) => (shares.some((share) => share.job === job) ? [at] : [])),
        ]),
      )
      const known = this.#holds.get(name) ?? []
      const lasting = known.filter(({ toMs }) => toMs === undefined || toMs > nowMs - HISTORY_MS)
      const next = lasting.map((hold) => {
        if (hold.toMs !== undefined) return hold
        const own = now.get(hold.job)
        if (own === undefined || own.join() !== hold.devices.join()) return { ...hold, toMs: nowMs }
        now.delete(hold.job)
        return hold
      })
      for (const [job, own] of now) next.push({ job, host: name, devices: own, fromMs: nowMs })
      this.#holds.set(name, next)
    }
  }
}

/** `taken`: it was busy, but no job held it. */
export type Past = 'unknown' | 'free' | 'held' | 'idle' | 'used' | 'taken'

/** `busy`: from 0 to 1, where it is known. */
export type PastCell = { readonly past: Past; readonly busy: number; readonly job: number | undefined }

export type Histories = {
  readonly use: UseHistory
  /** By host. */
  readonly holds: ReadonlyMap<string, readonly DeviceHold[]>
  /** Nothing is known of holds before. */
  readonly sinceMs: number | undefined
}

/** The last ten minutes in this many columns, the oldest first. `machine`: the name of the host in the inventory. */
export function pastCells(
  { use, holds, sinceMs = 0 }: Histories,
  host: string,
  machine: string,
  part: UsedPart,
  columns: number,
  nowMs: number,
): readonly PastCell[] {
  const endMs = Math.floor(nowMs / STEP_MS) * STEP_MS
  const own = (holds.get(host) ?? []).filter(({ devices }) => part === 'cores' || devices.includes(part))
  const isSampled = use.has(machine)
  return Array.from({ length: columns }, (_, column): PastCell => {
    const fromMs = endMs - HISTORY_MS + (column * HISTORY_MS) / columns
    const toMs = fromMs + HISTORY_MS / columns
    const middleMs = (fromMs + toMs) / 2
    // The newest column shows the current state.
    const atMs = column === columns - 1 ? nowMs : middleMs
    const job = own.find((hold) => hold.fromMs <= atMs && (hold.toMs ?? Number.POSITIVE_INFINITY) > atMs)?.job
    const busy = isSampled ? use.between(machine, part, fromMs, toMs) : undefined
    if (part === 'cores' && busy !== undefined)
      return { past: busy >= IDLE || job === undefined ? 'used' : 'idle', busy, job }
    if (job === undefined)
      return {
        past: busy !== undefined && busy >= IDLE ? 'taken' : atMs < sinceMs ? 'unknown' : 'free',
        busy: busy ?? 0,
        job,
      }
    if (busy === undefined) return { past: 'held', busy: 0, job }
    return { past: busy < IDLE ? 'idle' : 'used', busy, job }
  })
}
