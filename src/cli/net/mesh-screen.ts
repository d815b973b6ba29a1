/** What `muster net mesh` prints: events as JSON, or a line of progress and the picture at the end. */
import { formatDuration } from '../../ops/kernel/finding.ts'
import { formatMesh, type Heat, type MeshPaint, PLAIN_PAINT } from '../../ops/net/mesh/format-mesh.ts'
import { measuredOf, median, type NetFinding } from '../../ops/net/mesh/judge.ts'
import { formatBitRate, type LinkResult } from '../../ops/net/mesh/link.ts'
import type { MeshEvent, MeshHost, MeshReport } from '../../ops/net/mesh/measure-mesh.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { painterOf } from '../output/colour.ts'
import { writeEvent } from '../output/json-lines.ts'
import { LiveScreen, type TerminalDialog } from '../output/live-screen.ts'

/** Where stdout is no terminal. */
const WIDE = 240

const HEATS = { best: 'green', good: 'reset', poor: 'yellow', worst: 'red', failed: 'dim' } as const satisfies Record<
  Heat,
  string
>
const GRAVITIES = { blocker: 'red', risk: 'yellow', note: 'dim' } as const

export class MeshScreen implements Disposable {
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
    const { stdout, stderr } = context
    this.#screen = new LiveScreen({ stdout, stderr, live: () => (this.#isMeasuring ? [this.#progress()] : []) })
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
      case 'host':
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
          this.#screen.err(`muster: ${event.host}: port ${event.port} is taken, trying the next\n`)
    }
    this.#screen.refresh()
  }

  report(report: MeshReport, findings: readonly NetFinding[]): void {
    this[Symbol.dispose]()
    const { stdout, stderr, signal } = this.#context
    const counts = countLinks(report)
    if (this.#options.json === true) {
      for (const finding of findings) this.#write({ type: 'finding', ...finding })
      this.#write(summaryEvent(report, counts))
      return
    }
    stdout.write(formatMesh(report, findings, stdout.columns ?? WIDE, this.#paint()))
    const failed = counts.failed > 0 ? `, ${counts.failed} not` : ''
    if (signal.aborted) stderr.write(`muster: stopped; measured ${counts.measured} of ${report.links.length} links\n`)
    else stderr.write(`muster: ${report.links.length} links: ${counts.measured} measured${failed}\n`)
  }

  [Symbol.dispose](): void {
    clearInterval(this.#ticking)
    this.#screen[Symbol.dispose]()
  }

  #progress(): string {
    if (this.#slot === undefined) {
      return this.#pings > 0 ? `round-trip times: ${this.#pings}` : `hosts examined: ${this.#hosts}`
    }
    const { index, count, remainingMs } = this.#slot
    const left = Math.max(0, remainingMs - (this.#context.now() - this.#slotAtMs))
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
    switch (event.type) {
      case 'host':
        return this.#write(hostEvent(event.host))
      case 'ping':
        return this.#write({ type: 'ping', ...event.ping })
      case 'link':
        return this.#write(linkEvent(event.link))
      case 'port-taken':
        return this.#write({ type: 'port-taken', host: event.host, port: event.port })
      case 'slot':
    }
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

/** Events as docs/schema/net.schema.json says; what is not known is left out. */
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

function summaryEvent({ hosts, links }: MeshReport, counts: ReturnType<typeof countLinks>): object {
  return {
    type: 'summary',
    hosts: hosts.length,
    unreachable: hosts.filter((host) => 'cause' in host && host.cause === 'away').length,
    links: links.length,
    ...counts,
  }
}
