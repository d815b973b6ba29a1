/** What is known of the hosts without asking them. */
import type { KnownHost } from '../../scheduler/jobs/packing.ts'
import { driverHost, type OpenQueue } from './open-queue.ts'

/** Hosts as the driver saw them last, else as hosts.yaml declares them. */
export function hostsOf({ store, inventory }: OpenQueue): readonly KnownHost[] {
  const seen = new Map(store.report()?.hosts.map((host) => [host.name, host]))
  return inventory.hosts.map((host) => {
    const declared = driverHost(host)
    const { name, cpuMilli = 0, memoryBytes = 0, gpuCount, labels, custom } = declared
    const gpus = Array.from({ length: gpuCount }, () => '')
    const known = seen.get(name) ?? {
      name,
      cpuMilli,
      memoryBytes,
      gpus,
      labels,
      ...(custom === undefined ? {} : { custom }),
    }
    // No machine has none: it has not told yet.
    const unknown = [
      ...(declared.cpuMilli === undefined && known.cpuMilli === 0 ? ['cores' as const] : []),
      ...(declared.memoryBytes === undefined && known.memoryBytes === 0 ? ['memory' as const] : []),
    ]
    return unknown.length === 0 ? known : { ...known, unknown }
  })
}
