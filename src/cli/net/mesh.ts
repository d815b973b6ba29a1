/** `muster net mesh`: measures every link, shows and keeps the result, and compares it with the last one. */

import { systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { formatDuration } from '../../base/time-text.ts'
import {
  formatMesh,
  type Heat,
  type MeshPaint,
  meshCsv,
  meshSvg,
  meshTitle,
  PLAIN_PAINT,
} from '../../ops/net/mesh/format-mesh.ts'
import { measuredOf, median, type NetFinding } from '../../ops/net/mesh/judge.ts'
import { concludeMesh } from '../../ops/net/mesh/kept-mesh.ts'
import type { LinkResult } from '../../ops/net/mesh/link.ts'
import {
  type MeshEvent,
  type MeshHost,
  type MeshOptions,
  type MeshReport,
  measureMesh,
  remainingOf,
} from '../../ops/net/mesh/measure-mesh.ts'
import { planMesh, slotWords, wayOf } from '../../ops/net/mesh/mesh-plan.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { painterOf } from '../output/colour.ts'
import { writeEvent } from '../output/json-lines.ts'
import { LiveScreen, type TerminalDialog } from '../output/live-screen.ts'
import { notice } from '../output/notices.ts'
import { checkWritable, writeText } from '../output/written-file.ts'
import { addMeshOptions, type MeshLinkOptions, meshOptionsOf } from './options.ts'

type MeshCommandOptions = MeshLinkOptions & {
  readonly csv?: string
  readonly svg?: string
  readonly install?: boolean
}

export const verb: VerbCode = {
  define: (command) =>
    addMeshOptions(command.argument('[target]', 'hosts (default: all)'))
      .option('--csv <file>', 'write one line for each link to this file')
      .option('--svg <file>', 'write an SVG image to this file')
      .option('--install', 'install iperf3 on hosts where it is missing; asks first')
      .option('--dry-run', 'show what would be measured, and how long it takes'),
  help: `
Examples:
  muster net mesh                              every pair of hosts, both directions, 5 s each
  muster net mesh @gpus --time 10 --serial     one link at a time, with no load on the others
  muster net mesh @gpus --interface eth1       at the addresses of another interface (or --network 10.0.0.0/24)
  muster net mesh all --udp 100M               jitter and loss at this bit rate
  muster net mesh all --svg net.svg --csv net.csv
  muster net mesh all --install                install iperf3 first where it is missing; muster net uninstall removes it

Muster uses iperf3 or iperf2 if both hosts have it, otherwise ssh between the hosts. A server listens at the measured address for
one measurement, and then exits. Results are stored in $XDG_STATE_HOME/muster/net and compared with the previous ones. After
Ctrl-C, the finished measurements are kept.
Exit codes: 0 all measured, 1 a link could not be measured or a file not written, 4 a host could not be reached, 130 interrupted.
`,
  async run(target: string | undefined, options: MeshCommandOptions, context: CliContext) {
    for (const path of [options.csv, options.svg]) if (path !== undefined) checkWritable(path, context)
    const { inventory, hosts, endpoints } = await selectEndpoints(target, options, context)
    const names = endpoints.map(({ host }) => host)
    if (names.length < 2) throw new MusterError('usage', 'a measurement needs two or more hosts')
    const meshOptions = meshOptionsOf(options, endpoints, inventory)
    using screen = new MeshScreen(options, context)
    using opened = openOpsHosts(endpoints, options, context, screen.quietly(new TtyDialog()))
    let installed: number = EXIT.ok
    if (options.install === true) {
      const { tool = 'iperf3' } = options
      if (tool === 'ssh') throw new MusterError('usage', '--install installs iperf, which --tool ssh does not use')
      const { changeIperf } = await import('./install.ts')
      installed = await changeIperf('up', names, tool, opened, options, context)
    }
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
    const addresses = Object.fromEntries(hosts.map(({ name, address = name }) => [name, address]))
    const place = { addresses, ...defined({ at: meshOptions.interface ?? meshOptions.network }) }
    const way = wayOf(meshOptions)
    const { findings, problem } = concludeMesh(context.environment, report, way, context.now(), place)
    if (problem !== undefined) context.stderr.write(`muster: cannot keep the result: ${problem}\n`)
    const files = [
      [options.csv, () => meshCsv(report)],
      [options.svg, () => meshSvg(report, findings, meshTitle(names.length, context.now()))],
    ] as const
    const unwritten = files.flatMap(([path, text]) => (path === undefined ? [] : (write(path, text(), context) ?? [])))
    screen.report(report, findings)
    for (const why of unwritten) context.stderr.write(`muster: ${why}\n`)
    const measured = exitCodeOf(report, context)
    return measured !== EXIT.ok ? measured : unwritten.length > 0 ? EXIT.failed : installed
  },
}

/** Why it could not be written: the result of minutes is still shown. */
function write(path: string, text: string, context: CliContext): string | undefined {
  try {
    writeText(path, text, context)
    return undefined
  } catch (error) {
    return messageOf(error)
  }
}

function printPlan(names: readonly string[], options: MeshOptions, isJson: boolean, context: CliContext): number {
  const { stdout } = context
  const { slots, links, seconds, words } = planMesh(names, options)
  if (isJson) {
    for (const [index, slot] of slots.entries())
      writeEvent({ type: 'would-measure', step: index + 1, links: slot }, context)
    writeEvent({ type: 'plan', hosts: names.length, links, steps: slots.length, seconds }, context)
    return EXIT.ok
  }
  for (const [index, slot] of slots.entries()) stdout.write(`${index + 1}: ${slotWords(slot)}\n`)
  stdout.write(`${words}\n`)
  return EXIT.ok
}

function exitCodeOf({ hosts, links }: MeshReport, { signal }: CliContext): number {
  if (signal.aborted) return EXIT.interrupted
  const failed = links.flatMap(({ outcome }) => (outcome.kind === 'failed' ? [outcome.cause] : []))
  if (failed.includes('away') || hosts.some((host) => 'cause' in host && host.cause === 'away')) return EXIT.unreachable
  return failed.length > 0 ? EXIT.failed : EXIT.ok
}

/** Where stdout is no terminal. */
const WIDE = 240

const HEATS = { best: 'green', good: 'reset', poor: 'yellow', worst: 'red', failed: 'dim' } as const satisfies Record<
  Heat,
  string
>
const GRAVITIES = { blocker: 'red', risk: 'yellow', note: 'dim' } as const

class MeshScreen implements Disposable {
  readonly #options: GlobalOptions
  readonly #context: CliContext
  readonly #screen: LiveScreen
  #isMeasuring = false
  #hosts = 0
  #pings = 0
  #links = 0
  #last = ''
  #slot: Extract<MeshEvent, { type: 'slot' }> | undefined
  #slotAtMs = 0
  /** Moves the time that is left. */
  readonly #ticking: NodeJS.Timeout

  constructor(options: GlobalOptions, context: CliContext) {
    this.#options = options
    this.#context = context
    this.#screen = new LiveScreen({ ...context, live: () => (this.#isMeasuring ? [this.#progress()] : []) })
    this.#ticking = setInterval(() => this.#screen.refresh(), 1000)
  }

  quietly(dialog: TerminalDialog): TerminalDialog {
    return this.#screen.quietly(dialog)
  }

  begin(): void {
    this.#isMeasuring = true
    this.#screen.refresh()
  }

  event(event: MeshEvent): void {
    if (this.#options.json === true) this.#json(event)
    switch (event.type) {
      case 'examined':
        this.#hosts += 1
        break
      case 'ping':
        this.#pings += 1
        break
      case 'slot':
        this.#slot = event
        this.#slotAtMs = this.#context.now()
        break
      case 'link': {
        this.#links += 1
        const { from, to, outcome } = event.link
        this.#last = `${from} → ${to} ${outcome.kind === 'measured' ? formatBitRate(outcome.bitsPerSecond) : 'failed'}`
        break
      }
      case 'port-taken':
        if (this.#options.verbose === true)
          this.#screen.notice(`muster: ${event.host}: port ${event.port} is taken, trying the next\n`)
    }
    this.#screen.refresh()
  }

  report(report: MeshReport, findings: readonly NetFinding[]): void {
    this[Symbol.dispose]()
    const { stdout, stderr, signal } = this.#context
    const counts = countLinks(report)
    if (this.#options.json === true) {
      for (const finding of findings) this.#write({ type: 'finding', ...finding })
      const { hosts, links } = report
      const unreachable = hosts.filter((host) => 'cause' in host && host.cause === 'away').length
      this.#write({ type: 'summary', hosts: hosts.length, unreachable, links: links.length, ...counts })
      return
    }
    stdout.write(formatMesh(report, findings, stdout.columns ?? WIDE, this.#paint()))
    const failed = counts.failed > 0 ? `, ${counts.failed} not` : ''
    if (signal.aborted) stderr.write(`muster: stopped; measured ${counts.measured} of ${report.links.length} links\n`)
    else notice(this.#context, `muster: ${report.links.length} links: ${counts.measured} measured${failed}\n`)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#ticking)
    this.#screen[Symbol.dispose]()
  }

  #progress(): string {
    if (this.#slot === undefined) {
      return this.#pings > 0 ? `round-trip times: ${this.#pings}` : `hosts examined: ${this.#hosts}`
    }
    const { index, count } = this.#slot
    const left = remainingOf(this.#slot, this.#context.now() - this.#slotAtMs)
    const last = this.#last === '' ? '' : `, ${this.#last}`
    const leftText = formatDuration(Math.round(left / 1000) * 1000)
    return `step ${index + 1} of ${count}, about ${leftText} left, ${this.#links} links measured${last}`
  }

  #paint(): MeshPaint {
    const paint = painterOf(this.#options, this.#context)
    if (paint === undefined) return PLAIN_PAINT
    return {
      heat: (heat, text) => paint(HEATS[heat], text),
      gravity: (gravity, text) => paint(GRAVITIES[gravity], text),
      muted: (text) => paint('dim', text),
    }
  }

  #json(event: MeshEvent): void {
    if (event.type === 'host') this.#write(hostEvent(event.host))
    else if (event.type === 'ping') this.#write({ type: 'ping', ...event.ping })
    else if (event.type === 'link') this.#write(linkEvent(event.link))
    else if (event.type === 'port-taken') this.#write(event)
  }

  #write(event: object): void {
    writeEvent(event, this.#context)
  }
}

function countLinks({ links }: MeshReport) {
  const measured = measuredOf(links)
  const cancelled = links.filter(({ outcome }) => outcome.kind === 'failed' && outcome.cause === 'cancelled').length
  return {
    measured: measured.length,
    cancelled,
    failed: links.length - measured.length - cancelled,
    medianBitsPerSecond: median(measured.map(({ outcome }) => outcome.bitsPerSecond)),
  }
}

/** Events as docs/schema/net-mesh.schema.json says; what is not known is left out. */
export function hostEvent(host: MeshHost): object {
  const { name } = host
  if (!('facts' in host)) {
    const outcome = host.cause === 'no-address' ? 'no-address' : host.isRefused === true ? 'refused' : 'unreachable'
    return { type: 'host', host: name, outcome, reason: host.reason }
  }
  const { place, facts } = host
  const { address, card } = place
  return {
    type: 'host',
    host: name,
    outcome: 'ok',
    address,
    interface: card?.name,
    mtuBytes: card?.mtuBytes,
    linkBitsPerSecond: card?.linkBitsPerSecond,
    iperf3: facts.iperf3,
    iperf2: facts.iperf2,
  }
}

export function linkEvent({ from, to, outcome }: LinkResult): object {
  const { kind, ...rest } = outcome
  if (outcome.kind === 'measured') return { type: 'link', from, to, outcome: kind, ...rest }
  return { type: 'link', from, to, outcome: outcome.cause, reason: outcome.reason }
}
