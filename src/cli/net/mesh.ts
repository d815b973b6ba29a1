/** `muster net mesh`: measures every link, shows and keeps the result, and compares it with the last one. */
import { writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { fileReason, MusterError, notKept } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { formatDuration } from '../../ops/kernel/finding.ts'
import { meshCsv, meshSvg } from '../../ops/net/mesh/format-mesh.ts'
import { judgeMesh } from '../../ops/net/mesh/judge.ts'
import { compareMesh, type KeptMesh, keepMesh, lastMesh, meshDirectory } from '../../ops/net/mesh/kept-mesh.ts'
import { slotsOf } from '../../ops/net/mesh/link.ts'
import { type MeshOptions, type MeshReport, measureMesh } from '../../ops/net/mesh/measure-mesh.ts'
import { type CliContext, EXIT } from '../command-line/context.ts'
import type { VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { type OpenedHosts, openOpsHosts } from '../connect/ops-hosts.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { writeEvent } from '../output/json-lines.ts'
import { MeshScreen } from './mesh-screen.ts'
import { addLinkOptions, type LinkOptions, measurementOf } from './options.ts'

type MeshCommandOptions = LinkOptions & {
  readonly serial?: boolean
  readonly bidirectional?: boolean
  readonly csv?: string
  readonly svg?: string
  readonly install?: boolean
}

export const verb: VerbCode = {
  define: (command) =>
    addLinkOptions(command.argument('[target]', 'hosts (default: all)'), 5, ['iperf3', 'iperf2', 'ssh'])
      .option('--serial', 'measure one link at a time')
      .option('--bidirectional', 'measure both directions of a pair at the same time')
      .option('--csv <file>', 'write one line for each link to this file')
      .option('--svg <file>', 'write an SVG image to this file')
      .option('--install', 'install iperf3 where it is missing, after asking')
      .option('--dry-run', 'show what would be measured, and how long it takes'),
  help: `
Examples:
  muster net mesh                              every pair of hosts, both directions, 5 s each
  muster net mesh m[8-10] --time 10 --serial   one link at a time, with no load on the others
  muster net mesh @gpus --interface eth1       at the addresses of another interface (or --network 10.0.0.0/24)
  muster net mesh all --udp 100M               jitter and loss at this bit rate
  muster net mesh all --svg net.svg --csv net.csv
  muster net mesh all --install                install iperf3 first where it is missing; muster net uninstall removes it

Muster uses iperf3 or iperf2 if both hosts have it, otherwise ssh between the hosts. A server listens at the measured address for
one measurement, and then exits. Results are stored in $XDG_STATE_HOME/muster/net and compared with the previous ones. After
Ctrl-C, the finished measurements are kept.
Exit codes: 0 all measured, 1 a link could not be measured, 4 a host could not be reached, 130 interrupted.
`,
  run: netMesh,
}

/** What a step takes beyond its measurement, for the estimate. */
const OVERHEAD_S = 0.5

/** @throws MusterError */
async function netMesh(target: string | undefined, options: MeshCommandOptions, context: CliContext): Promise<number> {
  const { endpoints } = await selectEndpoints(target, options, context)
  const names = endpoints.map(({ host }) => host)
  if (names.length < 2) throw new MusterError('usage', 'a measurement needs two or more hosts')
  const meshOptions = optionsOf(options, endpoints)
  using screen = new MeshScreen(options, context)
  using opened = openOpsHosts(endpoints, options, context, screen.quietly(new TtyDialog()))
  const installed = options.install === true ? await install(names, opened, options, context) : EXIT.ok
  // Where the installation failed on a host, the others are measured anyway.
  if (installed === EXIT.interrupted) return installed
  if (options.dryRun === true) return printPlan(names, meshOptions, options.json === true, context)
  screen.begin()
  const report = await measureMesh(names, meshOptions, {
    hosts: opened.hosts,
    signal: context.signal,
    clock: systemClock,
    onEvent: (event) => screen.event(event),
  })
  const way = wayOf(meshOptions)
  const last = lastMesh(context.environment, way, names)
  const findings = [...judgeMesh(report), ...(last === undefined ? [] : compareMesh(report.links, last))]
  keep(report, way, context)
  if (options.csv !== undefined) write(context, '--csv', options.csv, meshCsv(report))
  if (options.svg !== undefined) {
    const time = new Date(context.now()).toISOString()
    const title = `${names.length} hosts, ${time.slice(0, 10)} ${time.slice(11, 16)} UTC`
    write(context, '--svg', options.svg, meshSvg(report, findings, title))
  }
  screen.report(report, findings)
  const measured = exitCodeOf(report, context)
  return measured === EXIT.ok ? installed : measured
}

async function install(
  names: readonly string[],
  opened: OpenedHosts,
  options: MeshCommandOptions,
  context: CliContext,
): Promise<number> {
  const { tool = 'iperf3' } = options
  if (tool === 'ssh') throw new MusterError('usage', '--install installs iperf, which --tool ssh does not use')
  const { changeIperf } = await import('./install.ts')
  return await changeIperf('up', names, tool, opened, options, context)
}

function optionsOf(options: MeshCommandOptions, endpoints: readonly Endpoint[]): MeshOptions {
  const byName = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
  return {
    ...measurementOf(options, endpoints),
    isSerial: options.serial === true,
    isBidirectional: options.bidirectional === true,
    sshTarget: (host) => ({ user: byName.get(host)?.user ?? '', port: byName.get(host)?.port ?? 22 }),
  }
}

/** Only results that were measured in the same way are compared. */
function wayOf(options: MeshOptions): KeptMesh['way'] {
  const { udpBitsPerSecond, streams, isSerial, isBidirectional, tool } = options
  return [
    udpBitsPerSecond === undefined ? 'tcp' : `udp ${udpBitsPerSecond}`,
    `${streams} streams`,
    ...(isSerial ? ['serial'] : []),
    ...(isBidirectional ? ['both ways'] : []),
    ...[options.interface, options.network, tool].flatMap((word) => word ?? []),
  ].join(', ')
}

function keep(report: MeshReport, way: string, { environment, stderr, now }: CliContext): void {
  if (!report.links.some(({ outcome }) => outcome.kind === 'measured')) return
  try {
    keepMesh(environment, report, way, now())
  } catch (error) {
    stderr.write(`muster: cannot keep the result: ${notKept(meshDirectory(environment), error)}\n`)
  }
}

function write({ workingDirectory, stderr }: CliContext, option: string, path: string, text: string): void {
  try {
    writeFileSync(resolve(workingDirectory, path), text)
  } catch (error) {
    // The result of minutes is still shown.
    stderr.write(`muster: cannot write ${option} ${printable(path)}: ${fileReason(error)}\n`)
  }
}

function printPlan(names: readonly string[], options: MeshOptions, isJson: boolean, context: CliContext): number {
  const { stdout } = context
  const slots = slotsOf(names, options)
  const links = slots.flat().length
  const seconds = slots.length * (options.seconds + OVERHEAD_S)
  if (isJson) {
    for (const [index, slot] of slots.entries())
      writeEvent({ type: 'would-measure', step: index + 1, links: slot }, context)
    writeEvent({ type: 'plan', hosts: names.length, links, steps: slots.length, seconds }, context)
    return EXIT.ok
  }
  for (const [index, slot] of slots.entries()) {
    stdout.write(`${index + 1}: ${slot.map(({ from, to }) => `${from} → ${to}`).join(', ')}\n`)
  }
  const took = formatDuration(seconds * 1000)
  stdout.write(`${links} links in ${slots.length} steps of ${options.seconds} s, about ${took}\n`)
  return EXIT.ok
}

function exitCodeOf({ hosts, links }: MeshReport, { signal }: CliContext): number {
  if (signal.aborted) return EXIT.interrupted
  const failed = links.flatMap(({ outcome }) => (outcome.kind === 'failed' ? [outcome.cause] : []))
  if (failed.includes('away') || hosts.some((host) => 'cause' in host && host.cause === 'away')) return EXIT.unreachable
  return failed.length > 0 ? EXIT.failed : EXIT.ok
}
