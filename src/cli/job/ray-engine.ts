/** Jobs of the queue on the Ray cluster that hosts.yaml declares. */
import type { Inventory } from '../../inventory/inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import { askForRound, logPieceScript, type RoundOrder } from '../../ops/ray/job-rounds.ts'
import { type RayWanted, wantedRay } from '../../ops/ray/wanted.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { bundleKey } from '../../scheduler/jobs/orders.ts'
import type { RayEngine, RayOrder } from '../../scheduler/jobs/ray-jobs.ts'
import type { CliContext } from '../command-line/context.ts'
import type { OpenQueue } from './open-queue.ts'

/** Undefined: hosts.yaml declares no Ray cluster. */
export async function rayOf(inventory: Inventory, { environment, signal }: CliContext): Promise<RayWanted | undefined> {
  if (inventory.ray === undefined) return undefined
  const endpoints = await resolveEndpoints(inventory, inventory.hosts, { env: environment, signal })
  return wantedRay({ inventory, endpoints: new Map(endpoints.map((endpoint) => [endpoint.host, endpoint])) })
}

export function createRayEngine(wanted: RayWanted, hosts: OpsHosts): RayEngine {
  return { round: (orders, signal) => askForRound(wanted, orders.map(roundOrderOf), { hosts, signal }) }
}

function roundOrderOf(order: RayOrder): RoundOrder {
  if (order.kind !== 'start') return order
  const { kind, key, run, job } = order
  const { request, bundles, strategy, environment } = job.spec
  const { MUSTER_JOB = '', MUSTER_ATTEMPT = '', MUSTER_GPU_MILLI = '' } = run.environment
  return {
    kind,
    key,
    command: run.command,
    directory: run.directory,
    environment: { ...environment, MUSTER_JOB, MUSTER_ATTEMPT, MUSTER_GPU_MILLI },
    bundle: {
      CPU: request.cpuMilli / 1000,
      GPU: (request.gpuCount * request.gpuMilli) / 1000,
      memory: request.memoryBytes,
    },
    count: bundles,
    strategy,
  }
}

/** A script for the head that prints a piece of what a bundle has printed. */
export function rayLogScript(
  wanted: RayWanted,
  { store }: Pick<OpenQueue, 'store'>,
  job: Job,
  { rank, fromByte, mostBytes }: { readonly rank: number; readonly fromByte: number; readonly mostBytes: number },
): string {
  const isGang = job.spec.bundles > 1
  return logPieceScript(wanted, {
    key: bundleKey(store.id, job, 0),
    rank: isGang ? rank : undefined,
    fromByte,
    mostBytes,
  })
}
