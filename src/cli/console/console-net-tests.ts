/** Measurements between hosts over the connections of the console's shells: the code of `muster net`. */
import { writeFileSync } from 'node:fs'
import { Command } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { fileReason, MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { concludeMesh, keptMeshes, readKept } from '../../ops/net/mesh/kept-mesh.ts'
import { inspectHost, measureMesh } from '../../ops/net/mesh/measure-mesh.ts'
import { wayOf } from '../../ops/net/mesh/mesh-plan.ts'
import { measureNfs } from '../../ops/net/nfs/measure-nfs.ts'
import { measurePair } from '../../ops/net/pair/measure-pair.ts'
import type { NetTestsPort } from '../../ui/network/net-tests-port.ts'
import { createFleetOpsHosts } from '../connect/ops-hosts.ts'
import {
  addMeshOptions,
  addNfsOptions,
  addPairOptions,
  type MeshLinkOptions,
  meshOptionsOf,
  type NfsLinkOptions,
  type PairLinkOptions,
  pairOptionsOf,
} from '../net/options.ts'
import type { ConsoleConnections } from './console-ops.ts'

/** `localPath`: a path as a local shell would read it. */
export function createConsoleNetTests(
  connections: ConsoleConnections,
  localPath: (path: string) => string,
): NetTestsPort {
  const { fleet, wires, context } = connections
  const { environment, now } = context
  const hosts = createFleetOpsHosts(fleet, wires)
  const endpointsOf = (names: readonly string[]) => names.flatMap((name) => fleet.endpoint(name) ?? [])
  return {
    meshOptions: (words, names) =>
      meshOptionsOf(readOptions<MeshLinkOptions>(words, addMeshOptions), endpointsOf(names)),
    survey: async (order, signal) =>
      await Promise.all(order.hosts.map((name) => inspectHost(name, order.options, { hosts, signal }))),
    async measureMesh({ hosts: names, options }, signal, onEvent) {
      const report = await measureMesh(names, options, { hosts, signal, clock: systemClock, onEvent })
      const declared = new Map(connections.inventory.hosts.map(({ name, address = name }) => [name, address]))
      const addresses = Object.fromEntries(names.map((name) => [name, declared.get(name) ?? name]))
      const place = { addresses, ...defined({ at: options.interface ?? options.network }) }
      return { report, ...concludeMesh(environment, report, wayOf(options), now(), place) }
    },
    pairOptions: (words, names) =>
      pairOptionsOf(readOptions<PairLinkOptions>(words, addPairOptions), endpointsOf(names)),
    measurePair: async (first, second, options, signal, onEvent) =>
      await measurePair(first, second, options, { hosts, signal, clock: systemClock, onEvent }),
    nfsSeconds: (words) => readOptions<NfsLinkOptions>(words, addNfsOptions).time,
    measureNfs: async (host, options, signal, onEvent) => await measureNfs(host, options, { hosts, signal, onEvent }),
    keptMeshes: () => keptMeshes(environment),
    readKept,
    save(path, text, overwrites) {
      const whole = localPath(path)
      try {
        writeFileSync(whole, text, { flag: overwrites ? 'w' : 'wx' })
        return whole
      } catch (error) {
        if (!overwrites && (error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
        throw new MusterError('usage', `cannot write ${printable(whole)}: ${fileReason(error)}`)
      }
    },
  }
}

/** @throws MusterError */
function readOptions<T extends object>(words: readonly string[], add: (command: Command) => Command): T {
  const command = add(new Command())
    .exitOverride()
    .helpOption(false)
    .configureOutput({ writeErr() {}, outputError() {} })
  try {
    command.parse(words, { from: 'user' })
  } catch (error) {
    throw new MusterError('usage', printable(messageOf(error).replace(/^error: /, '')))
  }
  const [first] = command.args
  if (first !== undefined) throw new MusterError('usage', `unknown word: ${printable(first)}`)
  return command.opts<T>()
}
