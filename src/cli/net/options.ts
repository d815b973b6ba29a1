/** Options of the measurements between hosts, and what they mean for both verbs. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { defined } from '../../base/defined.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { parseNetwork } from '../../ops/net/mesh/host-facts.ts'
import type { NetTool } from '../../ops/net/mesh/link.ts'
import type { MeshOptions } from '../../ops/net/mesh/measure-mesh.ts'
import type { PairOptions } from '../../ops/net/pair/measure-pair.ts'
import { wholeNumber } from '../command-line/options.ts'
import type { GlobalOptions } from '../command-line/verb.ts'

type LinkOptions<Tool extends NetTool = NetTool> = GlobalOptions & {
  readonly time: number
  readonly parallelStreams: number
  readonly udp?: number
  readonly interface?: string
  readonly network?: string
  readonly ports: { readonly first: number; readonly last: number }
  readonly tool?: Tool
}

function addLinkOptions(command: Command, defaultSeconds: number, tools: readonly NetTool[]): Command {
  return (
    command
      // iperf3 takes anything below 1 for no end at all.
      .option('--time <s>', 'measure for S seconds', wholeNumber(1, 86_400), defaultSeconds)
      .option('--parallel-streams <n>', 'open N connections in each direction', wholeNumber(1, 86_400), 1)
      .option('--udp <rate>', 'send UDP at this bit rate, such as 100M', bitRate)
      .option('--interface <name>', 'measure at the addresses of this network interface')
      .option('--network <cidr>', 'measure at the addresses in this network', network)
      .addOption(
        new Option('--ports <first-last>', 'ports where servers may listen')
          .argParser(ports)
          .default({ first: 5301, last: 5399 }, '5301-5399'),
      )
      .addOption(new Option('--tool <name>', 'measure with this tool only').choices(tools))
  )
}

/** As `measureMesh` and `measurePair` take them. */
function measurementOf<Tool extends NetTool>(
  options: LinkOptions<Tool>,
  endpoints: readonly Endpoint[],
  { hosts }: Pick<Inventory, 'hosts'>,
) {
  const { time, parallelStreams, ports: range, udp, interface: card, network: cidr, tool } = options
  return {
    seconds: time,
    streams: parallelStreams,
    isThisMachineOnly: endpoints.every(({ transport }) => transport === 'local'),
    declared: new Map([
      ...hosts.map(({ name, address = name }) => [name, address] as const),
      ...endpoints.map(({ host, address }) => [host, address] as const),
    ]),
    ports: range,
    ...defined({ udpBitsPerSecond: udp, interface: card, network: cidr, tool }),
  }
}

export type MeshLinkOptions = LinkOptions & { readonly serial?: boolean; readonly bidirectional?: boolean }

export function addMeshOptions(command: Command): Command {
  return addLinkOptions(command, 5, ['iperf3', 'iperf2', 'ssh'])
    .option('--serial', 'measure one link at a time')
    .option('--bidirectional', 'measure both directions of a pair at the same time')
}

export function meshOptionsOf(
  options: MeshLinkOptions,
  endpoints: readonly Endpoint[],
  inventory: Pick<Inventory, 'hosts'>,
): MeshOptions {
  const byName = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
  return {
    ...measurementOf(options, endpoints, inventory),
    isSerial: options.serial === true,
    isBidirectional: options.bidirectional === true,
    sshTarget: (host) => ({ user: byName.get(host)?.user ?? '', port: byName.get(host)?.port ?? 22 }),
  }
}

export type PairLinkOptions = LinkOptions<'iperf3' | 'iperf2'> & { readonly oneWay?: boolean }

export const addPairOptions = (command: Command): Command =>
  addLinkOptions(command, 30, ['iperf3', 'iperf2']).option(
    '--one-way',
    'measure from the first host to the second only',
  )

export const pairOptionsOf = (
  options: PairLinkOptions,
  endpoints: readonly Endpoint[],
  inventory: Pick<Inventory, 'hosts'>,
): PairOptions => ({
  ...measurementOf(options, endpoints, inventory),
  isOneWay: options.oneWay === true,
})

export type NfsLinkOptions = GlobalOptions & { readonly time: number }

export const addNfsOptions = (command: Command): Command =>
  command.option('--time <s>', 'write for S seconds, and read for S seconds', wholeNumber(1, 3600), 5)

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9 }

function bitRate(text: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)([kmg]?)$/i.exec(text) ?? []
  const value = Number(digits) * (FACTORS[unit.toLowerCase()] ?? 1)
  if (!(value >= 1000)) throw new InvalidArgumentError('It must be bits per second, such as 500k, 100M or 1.5G.')
  return value
}

function ports(text: string): { first: number; last: number } {
  const [, first, last] = (/^(\d+)-(\d+)$/.exec(text) ?? []).map(Number)
  if (first === undefined || last === undefined || first < 1 || last > 65_535 || last <= first)
    throw new InvalidArgumentError('It must be a range of two or more ports, such as 5301-5399.')
  return { first, last }
}

function network(text: string): string {
  const value = parseNetwork(text)
  if (value === undefined) throw new InvalidArgumentError('It must be a network, such as 10.0.0.0/24.')
  return value
}
