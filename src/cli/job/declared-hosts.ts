/** A scheduler keeps the hosts and resources that hosts.yaml declared when it started: what the file declares now, and where that differs. */
import { basename, dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import { defined } from '../../base/defined.ts'
import { watchDirectory } from '../../base/watch-directory.ts'
import type { Host } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { DriverHost } from '../../scheduler/jobs/driver-host.ts'
import { milliOf } from '../../scheduler/model/resources.ts'

/** As hosts.yaml declares it. */
export function driverHost({ name, address, resources = {}, labels = {} }: Host): DriverHost {
  const { cpu, gpu = 0, memoryBytes, custom = {} } = resources
  const pools = Object.entries(custom).map(
    ([key, amount]) => [key, { kind: 'pool', amount: Math.floor(amount) }] as const,
  )
  return {
    name,
    address: address ?? name,
    ...defined({ cpuMilli: cpu === undefined ? undefined : milliOf(cpu, 'down'), memoryBytes }),
    gpuCount: gpu,
    labels,
    ...defined({ custom: pools.length === 0 ? undefined : Object.fromEntries(pools) }),
  }
}

/** Hosts that were declared otherwise before, and those that are new or were removed; undefined: none. */
export function changedHosts(before: readonly DriverHost[], { hosts }: Inventory): string | undefined {
  const were = new Map(before.map((host) => [host.name, host]))
  const are = new Map(hosts.map((host) => [host.name, driverHost(host)]))
  const names = [...new Set([...are.keys(), ...were.keys()])]
  const changed = names.filter((name) => !isDeepStrictEqual(were.get(name), are.get(name)))
  return changed.length === 0 ? undefined : foldHostSet(changed)
}

/** Tells the scheduler's user. `load`: reads the file again. */
export function watchDeclared(own: Inventory, load: () => Promise<Inventory>, say: (text: string) => void): Disposable {
  const { file } = own
  if (file === undefined) return { [Symbol.dispose]() {} }
  const first = own.hosts.map(driverHost)
  let told: string | undefined
  const check = async () => {
    // While it is being edited it may be wrong: the next change is looked at again.
    const changed = await load().then(
      (now) => changedHosts(first, now),
      () => told,
    )
    if (changed === told) return
    told = changed
    if (changed !== undefined) say(`${file} has changed for ${changed}: restart this scheduler to use it`)
  }
  return watchDirectory(dirname(file), (name) => {
    if (name === null || name === basename(file)) void check()
  })
}
