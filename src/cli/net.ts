/** `muster net`: what the network really does. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import { parseNetwork } from '../ops/net/mesh/choose-address.ts'
import type { CliContext, Outcome } from './command-line/context.ts'
import type { InstallOptions } from './net/install.ts'
import type { MeshCommandOptions } from './net/mesh.ts'
import type { PairCommandOptions } from './net/pair.ts'
import type { WatchCommandOptions } from './net/watch.ts'

const MESH_EXAMPLES = `
Examples:
  muster net mesh                              every pair of hosts.yaml, both ways, 5 s each
  muster net mesh m[8-10] --time 10 --serial   one link at a time: what the switch does to the rest shows in the difference
  muster net mesh @gpus --interface eth1       at the addresses of another card (or --network 10.0.0.0/24)
  muster net mesh all --udp 100M               jitter and loss at a rate
  muster net mesh all --svg net.svg --csv net.csv
  muster net mesh all --install                iperf3 first, where it is missing; muster net uninstall takes it away again

It uses iperf3, or iperf (2), whichever both ends have, else ssh from host to host. Servers are started for one measurement, at the measured address, and end by themselves.
Results are kept in $XDG_STATE_HOME/muster/net and compared with the last. Ctrl-C keeps what was measured.
Exit codes: 0 all measured, 1 some link could not be measured, 4 some host could not be reached, 130 interrupted.
`

const WATCH_EXAMPLES = `
Examples:
  muster net watch                             all hosts of hosts.yaml: processors, memory, network, disks, NFS, GPUs
  muster net watch @gpus --record today.jsonl  and keeps it; --replay today.jsonl shows it again
  muster net watch --count 5 --json            five samples of each host for a script

Keys: s sorts, Enter shows the charts of a host, q leaves. Nothing is installed on the hosts: one line of sh reads /proc once a second.
`

export function registerNet(program: Command, context: CliContext, outcome: Outcome): void {
  const net = program.command('net').description('what the network really does: bandwidth, round trips, losses')
  const mesh = net
    .command('mesh')
    .description('bandwidth, round-trip time and losses of every link between hosts, and who is to blame')
    .argument('[target]', 'hosts (default: all)')
    .option('--time <s>', 'seconds for each measurement', wholeNumber, 5)
    .option('--serial', 'one measurement at a time')
    .option('--bidirectional', 'both directions of a pair at the same time')
    .option('--parallel-streams <n>', 'connections for each measurement', wholeNumber, 1)
    .option('--udp <rate>', 'UDP at this rate, as 100M: jitter and loss', bitRate)
    .option('--interface <name>', 'measure at the addresses of this card')
    .option('--network <cidr>', 'measure at the addresses in this network', network)
    .addOption(portsOption())
    .addOption(new Option('--tool <name>', 'measure with this only').choices(['iperf3', 'iperf2', 'ssh']))
    .option('--csv <file>', 'writes one line a link there')
    .option('--svg <file>', 'writes a picture there')
    .option('--install', 'installs iperf3 where it is missing, after asking')
    .option('--dry-run', 'says what would be measured, and how long it takes')
    .addHelpText('after', MESH_EXAMPLES)
  mesh.action(async (target: string | undefined) => {
    const { netMesh } = await import('./net/mesh.ts')
    outcome.exitCode = await netMesh(target, mesh.optsWithGlobals<MeshCommandOptions>(), context)
  })
  registerPair(net, context, outcome)
  registerWatch(net, context, outcome)
  const uninstall = net
    .command('uninstall')
    .description('removes what mesh --install has installed, and nothing else')
    .argument('[target]', 'hosts (default: all)')
    .option('--dry-run', 'shows the plan and does nothing')
  uninstall.action(async (target: string | undefined) => {
    const { netUninstall } = await import('./net/install.ts')
    outcome.exitCode = await netUninstall(target, uninstall.optsWithGlobals<InstallOptions>(), context)
  })
}

const PAIR_EXAMPLES = `
Examples:
  muster net pair m8 m9                        both directions at once for 30 s, as a chart
  muster net pair m8 m9 --one-way --json       from m8 to m9, one JSON object a second
`

function registerPair(net: Command, context: CliContext, outcome: Outcome): void {
  const pair = net
    .command('pair')
    .description('throughput in both directions and round-trip time of two hosts, live')
    .argument('<a>', 'a host')
    .argument('<b>', 'another')
    .option('--time <s>', 'seconds', wholeNumber, 30)
    .option('--one-way', 'from the first to the second only')
    .option('--parallel-streams <n>', 'connections for each direction', wholeNumber, 1)
    .option('--udp <rate>', 'UDP at this rate, as 100M', bitRate)
    .option('--interface <name>', 'measure at the addresses of this card')
    .option('--network <cidr>', 'measure at the addresses in this network', network)
    .addOption(portsOption())
    .addOption(new Option('--tool <name>', 'measure with this only').choices(['iperf3', 'iperf2']))
    .addHelpText('after', PAIR_EXAMPLES)
  pair.action(async (a: string, b: string) => {
    const { netPair } = await import('./net/pair.ts')
    outcome.exitCode = await netPair([a, b], pair.optsWithGlobals<PairCommandOptions>(), context)
  })
}

function registerWatch(net: Command, context: CliContext, outcome: Outcome): void {
  const watch = net
    .command('watch')
    .description('live resources of all hosts')
    .argument('[target]', 'hosts (default: all)')
    .option('--count <n>', 'prints so many samples of each host as JSON, and ends', wholeNumber)
    .option('--record <file>', 'keeps what is seen')
    .option('--replay <file>', 'shows a recording')
    .option('--speed <n>', 'of the replay', wholeNumber, 1)
    .addHelpText('after', WATCH_EXAMPLES)
  watch.action(async (target: string | undefined) => {
    const { netWatch } = await import('./net/watch.ts')
    outcome.exitCode = await netWatch(target, watch.optsWithGlobals<WatchCommandOptions>(), context)
  })
}

function wholeNumber(text: string): number {
  const value = Number(text)
  // iperf3 takes anything below 1 for no end at all.
  if (!Number.isInteger(value) || value < 1 || value > 86_400) {
    throw new InvalidArgumentError('It has to be a whole number from 1 on.')
  }
  return value
}

const FACTORS: Readonly<Record<string, number>> = { '': 1, k: 1e3, m: 1e6, g: 1e9 }

function bitRate(text: string): number {
  const [, digits, unit = ''] = /^(\d+(?:\.\d+)?)([kmg]?)$/i.exec(text) ?? []
  const value = Number(digits) * (FACTORS[unit.toLowerCase()] ?? 1)
  if (!(value >= 1000)) throw new InvalidArgumentError('It has to be bits a second, as 500k, 100M or 1.5G.')
  return value
}

function portsOption(): Option {
  return new Option('--ports <first-last>', 'where servers may listen')
    .argParser(ports)
    .default({ first: 5301, last: 5399 }, '5301-5399')
}

function ports(text: string): { first: number; last: number } {
  const [, first, last] = (/^(\d+)-(\d+)$/.exec(text) ?? []).map(Number)
  if (first === undefined || last === undefined || first < 1 || last > 65_535 || last <= first) {
    throw new InvalidArgumentError('It has to be two ports or more, as 5301-5399.')
  }
  return { first, last }
}

function network(text: string): string {
  const value = parseNetwork(text)
  if (value === undefined) throw new InvalidArgumentError('It has to be a network, as 10.0.0.0/24.')
  return value
}
