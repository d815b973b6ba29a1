/** What is known of the hosts without asking them. */
import type { HostSpec } from '../../scheduler/model/resources.ts'
import { driverHost, type OpenQueue } from './open-queue.ts'

/** Hosts as the driver saw them last, else as hosts.yaml declares them. */
export function hostsOf({ store, inventory }: OpenQueue): readonly HostSpec[] {
  const seen = new Map(store.view()?.hosts.map((host) => [host.name, host]))
  return inventory.hosts.map((host) => {
    const { name, cpuMilli = 0, memoryBytes = 0, gpuCount, labels, custom } = driverHost(host)
    const gpus = Array.from({ length: gpuCount }, () => '')
    return seen.get(name) ?? { name, cpuMilli, memoryBytes, gpus, labels, ...(custom === undefined ? {} : { custom }) }
  })
}
