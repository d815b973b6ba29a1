/** What has to be done for a job on its places, from its state alone. */
import type { BundleOrder } from './host-program.ts'
import { type BundlePlace, isActive, type Job } from './job.ts'

const GRACE_MS = 10_000
/** Where rank 0 listens (PyTorch and others); spread so that gangs do not collide. */
const FIRST_PORT = 20_000
const PORTS = 10_000

export type PlacedOrder = { readonly host: string; readonly rank: number; readonly order: BundleOrder }

export type BundleName = { readonly id: number; readonly attempt: number; readonly rank: number }

/** The name of a bundle's directory on its host, and of a job in its engine. */
export function bundleKey(storeId: string, { id, attempt }: Pick<Job, 'id' | 'attempt'>, rank: number): string {
  return `${storeId}-${id}-${attempt}-${rank}`
}

/** Undefined: not of this queue. */
export function parseBundleKey(storeId: string, key: string): BundleName | undefined {
  const [own, ...rest] = key.split('-')
  if (own !== storeId || rest.length !== 3 || !rest.every((word) => /^\d{1,15}$/.test(word))) return undefined
  const [id = 0, attempt = 0, rank = 0] = rest.map(Number)
  return { id, attempt, rank }
}

/** `addresses`: how hosts reach each other, by name. */
export function ordersFor(
  job: Job,
  storeId: string,
  addresses: ReadonlyMap<string, string>,
  nowMs: number,
): readonly PlacedOrder[] {
  const { state } = job
  if (!isActive(state)) return []
  return state.bundles.flatMap((bundle, rank): PlacedOrder[] => {
    const place = state.places[rank]
    if (bundle.kind === 'ended' || place === undefined) return []
    const key = bundleKey(storeId, job, rank)
    const on = (order: BundleOrder): PlacedOrder[] => [{ host: place.host, rank, order }]
    if (state.kind === 'ending')
      // Also where the clock was set back meanwhile.
      return on({ kind: 'stop', key, signal: Math.abs(nowMs - state.sinceMs) > GRACE_MS ? 'KILL' : 'TERM' })
    if (bundle.kind === 'begun') return on({ kind: 'check', key })
    const { command, directory, request, isUnlimited } = job.spec
    const isLimited = request.memoryBytes > 0 && !isUnlimited
    return on({
      kind: 'start',
      key,
      run: {
        command,
        directory,
        environment: environmentOf(job, rank, state.places, addresses),
        limits: isLimited ? request : undefined,
      },
    })
  })
}

function environmentOf(
  { id, attempt, spec }: Job,
  rank: number,
  places: readonly BundlePlace[],
  addresses: ReadonlyMap<string, string>,
): Readonly<Record<string, string>> {
  const devices = places[rank]?.devices.join() ?? ''
  const first = places[0]?.host ?? ''
  return {
    CUDA_VISIBLE_DEVICES: devices,
    ROCR_VISIBLE_DEVICES: devices,
    ...spec.environment,
    MUSTER_JOB: String(id),
    MUSTER_ATTEMPT: String(attempt),
    MUSTER_RANK: String(rank),
    MUSTER_WORLD_SIZE: String(places.length),
    MUSTER_HOSTS: places.map(({ host }) => host).join(),
    MUSTER_GPU_MILLI: String(spec.request.gpuCount === 0 ? 0 : spec.request.gpuMilli),
    RANK: String(rank),
    WORLD_SIZE: String(places.length),
    LOCAL_RANK: String(places.slice(0, rank).filter(({ host }) => host === places[rank]?.host).length),
    MASTER_ADDR: addresses.get(first) ?? first,
    MASTER_PORT: String(FIRST_PORT + ((id * 7 + attempt) % PORTS)),
  }
}
