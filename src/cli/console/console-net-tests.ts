/** Measurements between hosts over the connections of the console's shells: the code of `muster net`. */
import { writeFileSync } from 'node:fs'
import type { Command } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { kindOf, resultPaths } from '../../ops/net/kept-results.ts'
import { concludeTest, nfsTest, pairTest, readTest } from '../../ops/net/kept-test.ts'
import { iperfArea } from '../../ops/net/mesh/install-iperf.ts'
import { concludeMesh, readKept } from '../../ops/net/mesh/kept-mesh.ts'
import { inspectHosts, measureMesh } from '../../ops/net/mesh/measure-mesh.ts'
import { wayOf } from '../../ops/net/mesh/mesh-plan.ts'
import { measureNfs, type NfsEvent, takeNfsEvent } from '../../ops/net/nfs/measure-nfs.ts'
import { measurePair, type PairEvent } from '../../ops/net/pair/measure-pair.ts'
import { takePairEvent } from '../../ops/net/pair/pair-record.ts'
import type { NetTestsPort } from '../../ui/network/net-tests-port.ts'
import { readOptions } from '../command-line/read-options.ts'
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
import { unwritten } from '../output/written-file.ts'
import { type ConsoleConnections, createConsoleChanges } from './console-ops.ts'

/** `localPath`: a path as a local shell would read it. */
export function createConsoleNetTests(
  connections: ConsoleConnections,
  localPath: (path: string) => string,
): NetTestsPort {
  const { fleet, wires, context } = connections
  const { environment, now } = context
  const hosts = createFleetOpsHosts(fleet, wires)
  /** For each file of a console on several: the password for sudo goes only to hosts of its own. */
  const changes = new Map<string, ReturnType<typeof createConsoleChanges>>()
  const endpointsOf = (names: readonly string[]) => names.flatMap((name) => fleet.endpoint(name) ?? [])
  return {
    meshOptions: (words, names) =>
      meshOptionsOf(onlyOptions<MeshLinkOptions>(words, addMeshOptions), endpointsOf(names), connections.inventory),
    survey: async (order, signal) => await inspectHosts(order.hosts, order.options, { hosts, signal }),
    async installIperf({ hosts: names, options: { tool = 'iperf3' } }, signal, handlers) {
      if (tool === 'ssh') throw new MusterError('usage', 'ssh measures without iperf')
      const files = new Set(endpointsOf(names).map(({ passwordScope = '' }) => passwordScope))
      if (files.size > 1) {
        throw new MusterError('usage', 'these hosts are of several files, and sudo may ask for a password', {
          hint: 'Measure hosts of one file, and install it there.',
        })
      }
      const [file = ''] = files
      const own = getOrMake(changes, file, () => createConsoleChanges(connections))
      own.begin(names)
      const areas = [iperfArea(names, tool)]
      return (await own.change({ direction: 'up', areas, signal, isSelected: () => true }, handlers)).kind
    },
    async measureMesh({ hosts: names, options }, signal, onEvent) {
      const report = await measureMesh(names, options, { hosts, signal, clock: systemClock, onEvent })
      const declared = new Map(connections.inventory.hosts.map(({ name, address = name }) => [name, address]))
      const addresses = Object.fromEntries(names.map((name) => [name, declared.get(name) ?? name]))
      const place = { addresses, ...defined({ at: options.interface ?? options.network }) }
      return { report, ...concludeMesh(environment, report, wayOf(options), now(), place) }
    },
    pairOptions: (words, names) =>
      pairOptionsOf(onlyOptions<PairLinkOptions>(words, addPairOptions), endpointsOf(names), connections.inventory),
    async measurePair(record, options, signal, changed) {
      const onEvent = (event: PairEvent): void => {
        takePairEvent(record, event)
        changed()
      }
      await measurePair(record.first, record.second, options, { hosts, signal, clock: systemClock, onEvent })
      return concludeTest(environment, pairTest(record, wayOf(options), now()), now())
    },
    nfsSeconds: (words) => onlyOptions<NfsLinkOptions>(words, addNfsOptions).time,
    async measureNfs(record, options, signal, changed) {
      const onEvent = (event: NfsEvent): void => {
        takeNfsEvent(record, event)
        changed()
      }
      await measureNfs(record.host, options, { hosts, signal, clock: systemClock, onEvent })
      return concludeTest(environment, nfsTest(record, now()), now())
    },
    keptResults: () => resultPaths(environment),
    readKept: (path) => (kindOf(path) === 'mesh' ? readKept(path) : readTest(path)),
    save(path, text, overwrites) {
      const whole = localPath(path)
      try {
        writeFileSync(whole, text, { flag: overwrites ? 'w' : 'wx' })
        return whole
      } catch (error) {
        if (!overwrites && (error as NodeJS.ErrnoException).code === 'EEXIST') return undefined
        throw unwritten(whole, error)
      }
    },
  }
}

/** @throws MusterError */
function onlyOptions<T extends object>(words: readonly string[], add: (command: Command) => Command): T {
  const { options, rest } = readOptions<T>(words, add)
  const [first] = rest
  if (first !== undefined) throw new MusterError('usage', `unknown word: ${printable(first)}`)
  return options
}
