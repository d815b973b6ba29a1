/**
 * Measures every ordered pair of a host set, in slots in which no host is in two pairs. The servers of the next slot start
 * during the current one. A failure is the outcome of its pair; the others continue.
 */
import type { Clock } from '../../../base/clock.ts'
import { defined } from '../../../base/defined.ts'
import { formatBitRate } from '../../../base/format-bit-rate.ts'
import type { OpsHosts, ScriptResult } from '../../kernel/host-port.ts'
import { formatOutcome } from '../../run/outcome.ts'
import { isDeclared, refusedClaims } from './claims.ts'
import {
  type AddressWish,
  type ChosenAddress,
  chooseAddress,
  MESH_FACTS,
  type MeshFacts,
  parseMeshFacts,
} from './host-facts.ts'
import {
  failed,
  type LinkFailure,
  type LinkOutcome,
  type LinkResult,
  type MeasureOptions,
  type NetTool,
  type OrderedPair,
  type Slot,
  type SlotOptions,
  slotsAmong,
  slotsOf,
} from './link.ts'
import { measureOverSsh } from './over-ssh.ts'
import { type IperfFailure, parseIperf2, parseIperf3 } from './parse-iperf.ts'
import {
  clientScript,
  limitSeconds,
  type PingResult,
  PROBE_S,
  parsePings,
  pingScript,
  probeScript,
  type SshTarget,
  serverScript,
  serverSeconds,
} from './scripts.ts'
import { type ServerEnd, type ServerStart, type StartOptions, startServer } from './server.ts'

const FACTS_TIMEOUT_MS = 20_000
const PING_TIMEOUT_MS = 30_000
/** How long a slot takes beyond the measurement; a first guess. */
const GUESSED_OVERHEAD_MS = 400
/** How long a server may take to print its report and end after its client. */
const SERVER_END_MS = 4_000

export type InspectOptions = AddressWish & {
  /** Of each host of the inventory: where hosts.yaml or ssh_config says that it is, an address or a name. */
  readonly declared: ReadonlyMap<string, string>
}

export type MeshOptions = MeasureOptions &
  SlotOptions &
  InspectOptions & {
    /** Undefined: the best that both ends have. */
    readonly tool?: NetTool
    /** Where servers may listen, both included. */
    readonly ports: { readonly first: number; readonly last: number }
    /** How hosts log in to each other where there is no iperf. */
    sshTarget(host: string): Omit<SshTarget, 'address'>
  }

/** `isOwnWord`: it alone gives its address; another one, or only a name, is declared for it. */
export type ReadyHost = {
  readonly name: string
  readonly facts: MeshFacts
  readonly place: ChosenAddress
  readonly isOwnWord?: boolean
}

export type MeshHost =
  | ReadyHost
  | {
      readonly name: string
      readonly cause: 'away' | 'no-address'
      readonly reason: string
      readonly isRefused?: boolean
    }

export type MeshEvent =
  /** It has answered, or cannot be reached. */
  | { readonly type: 'examined'; readonly host: string }
  | { readonly type: 'host'; readonly host: MeshHost }
  | { readonly type: 'ping'; readonly ping: PingResult }
  | { readonly type: 'slot'; readonly index: number; readonly count: number; readonly remainingMs: number }
  | { readonly type: 'link'; readonly link: LinkResult }
  /** The port was in use, so another one was taken. */
  | { readonly type: 'port-taken'; readonly host: string; readonly port: number }

export type MeshReport = {
  readonly hosts: readonly MeshHost[]
  readonly pings: readonly PingResult[]
  readonly links: readonly LinkResult[]
  /** The rate at which UDP was sent, in bits a second: no link can be faster. Undefined: it was TCP. */
  readonly udpBitsPerSecond?: number
}

export type MeshContext = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  readonly clock: Clock
  onEvent(event: MeshEvent): void
}

export async function measureMesh(
  names: readonly string[],
  options: MeshOptions,
  context: MeshContext,
): Promise<MeshReport> {
  return await new Mesh(options, context).run(names)
}

type Ready = {
  readonly kind: 'ready'
  readonly from: ReadyHost
  readonly to: ReadyHost
  readonly tool: NetTool
  readonly server?: Extract<ServerStart, { kind: 'listening' }>
}
type Prepared = { readonly pair: OrderedPair } & (Extract<LinkOutcome, { kind: 'failed' }> | Ready)

class Mesh {
  readonly #options: MeshOptions
  readonly #context: MeshContext
  #hosts = new Map<string, MeshHost>()
  /** The port to try next, by host. */
  readonly #ports = new Map<string, number>()

  constructor(options: MeshOptions, context: MeshContext) {
    this.#options = options
    this.#context = context
  }

  async run(names: readonly string[]): Promise<MeshReport> {
    const { onEvent, signal } = this.#context
    const onExamined = (host: string) => onEvent({ type: 'examined', host })
    const inspected = await inspectHosts(names, this.#options, this.#context, onExamined)
    for (const host of inspected) onEvent({ type: 'host', host })
    this.#hosts = new Map(inspected.map((host) => [host.name, host]))
    const pings = signal.aborted ? [] : (await Promise.all(inspected.map((host) => this.#ping(host)))).flat()
    const links = await this.#measure(slotsOf(names, this.#options))
    return { hosts: inspected, pings, links, ...defined({ udpBitsPerSecond: this.#options.udpBitsPerSecond }) }
  }

  async #ping(host: MeshHost): Promise<readonly PingResult[]> {
    if (!('facts' in host) || !host.facts.hasPing) return []
    const { hosts, signal, onEvent } = this.#context
    const others = [...this.#hosts.values()].flatMap((other) => ('facts' in other && other !== host ? [other] : []))
    if (others.length === 0) return []
    const targets = others.map(({ place }) => {
      const sizes = [host.place, place].flatMap(({ card }) => (card?.name === 'lo' ? [] : (card?.mtuBytes ?? [])))
      return { address: place.address, ...(sizes.length < 2 ? {} : { mtuBytes: Math.min(...sizes) }) }
    })
    const { stdout } = await hosts.exec(host.name, pingScript(targets), { timeoutMs: PING_TIMEOUT_MS, signal })
    const names = others.map(({ name }) => name)
    const pings = parsePings(Buffer.from(stdout).toString(), host.name, names)
    for (const ping of pings) onEvent({ type: 'ping', ping })
    return pings
  }

  async #measure(all: readonly Slot[]): Promise<readonly LinkResult[]> {
    const { signal, clock, onEvent } = this.#context
    if (signal.aborted) return all.flat().map((pair) => ({ ...pair, outcome: CANCELLED }))
    const links: LinkResult[] = []
    const finish = async (each: Prepared): Promise<void> => {
      const outcome = each.kind === 'failed' ? failed(each.cause, each.reason) : plausible(await this.#run(each))
      const link = { ...each.pair, outcome }
      links.push(link)
      onEvent({ type: 'link', link })
    }
    const ready = new Set([...this.#hosts.values()].flatMap((host) => ('facts' in host ? [host.name] : [])))
    const isReady = ({ from, to }: OrderedPair) => ready.has(from) && ready.has(to)
    // They take no time, so they are no steps.
    for (const each of await this.#prepare(all.flat().filter((pair) => !isReady(pair)))) await finish(each)
    const slots = slotsAmong(all, ready)
    const beganMs = clock.now()
    const slotMs = this.#options.seconds * 1000 + GUESSED_OVERHEAD_MS
    let prepared = this.#prepare(slots[0] ?? [])
    for (const index of slots.keys()) {
      const eachMs = index === 0 ? slotMs : (clock.now() - beganMs) / index
      onEvent({ type: 'slot', index, count: slots.length, remainingMs: eachMs * (slots.length - index) })
      const now = await prepared
      prepared = signal.aborted ? Promise.resolve([]) : this.#prepare(slots[index + 1] ?? [])
      await Promise.all(now.map(finish))
      if (signal.aborted) {
        for (const pair of slots.slice(index + 1).flat()) links.push({ ...pair, outcome: CANCELLED })
        break
      }
    }
    for (const each of await prepared) if (each.kind === 'ready') each.server?.stop()
    return links
  }

  async #prepare(slot: Slot): Promise<readonly Prepared[]> {
    return await Promise.all(slot.map((pair) => this.#preparePair(pair)))
  }

  async #preparePair(pair: OrderedPair): Promise<Prepared> {
    const fail = (cause: LinkFailure, reason: string): Prepared => ({ pair, ...failed(cause, reason) })
    const from = this.#hosts.get(pair.from)
    const to = this.#hosts.get(pair.to)
    if (from === undefined || !('facts' in from)) return fail(from?.cause ?? 'away', `${pair.from}: ${from?.reason}`)
    if (to === undefined || !('facts' in to)) return fail(to?.cause ?? 'away', `${pair.to}: ${to?.reason}`)
    const tool = chooseTool(from.facts, to.facts, this.#options)
    if (typeof tool !== 'string') return fail('no-tool', tool.reason(pair))
    const ready = { kind: 'ready', pair, from, to, tool } as const
    if (tool === 'ssh') return ready
    const { hosts, signal, clock, onEvent } = this.#context
    const start = (this.#ports.get(pair.to) ?? this.#options.ports.first) - this.#options.ports.first
    const unproven = await probeAddress(tool, from, to, { ...this.#options, start }, this.#context)
    if (unproven !== undefined) return { pair, ...unproven }
    const server = await startServer(hosts, {
      host: pair.to,
      ...serverOptions(tool, to, start, this.#options),
      signal,
      clock,
      onTaken: (port) => onEvent({ type: 'port-taken', host: pair.to, port }),
    })
    if (server.kind === 'failed') {
      if (signal.aborted) return { pair, ...CANCELLED }
      if (server.isAway) this.#lose(pair.to, server.reason)
      return fail(server.isAway ? 'away' : 'no-server', `${pair.to}: ${server.reason}`)
    }
    this.#ports.set(pair.to, server.port + 1)
    return { ...ready, server }
  }

  /** Its remaining pairs are not tried. */
  #lose(name: string, reason: string): void {
    const host = this.#hosts.get(name)
    if (host !== undefined && 'facts' in host) this.#hosts.set(name, { name, cause: 'away', reason })
  }

  async #run(ready: Extract<Prepared, { kind: 'ready' }>): Promise<LinkOutcome> {
    const { pair, from, to, tool, server } = ready
    const { hosts, signal, clock } = this.#context
    const { address } = to.place
    if (tool === 'ssh') {
      const target = { ...this.#options.sshTarget(pair.to), address }
      const outcome = await measureOverSsh(pair, target, this.#options, this.#context)
      if (signal.aborted) return CANCELLED
      if (outcome.kind === 'failed' && outcome.cause === 'away') this.#lose(pair.from, outcome.reason)
      return outcome
    }
    const place = { address, facts: from.facts, port: server?.port ?? 0, ownAddress: from.place.address }
    const script = clientScript(tool, place, this.#options)
    const timeoutMs = limitSeconds(this.#options) * 1000
    const result = await hosts.exec(pair.from, script, { timeoutMs, signal })
    using _overdue = clock.after(SERVER_END_MS, () => server?.stop())
    const { outcome } = result
    const isUdp = this.#options.udpBitsPerSecond !== undefined
    // There will be no report of the server, or it waits for a client that will not come.
    const hasFailed = outcome.kind !== 'exit' || (tool === 'iperf3' && parseIperf3(text(result)).kind === 'failed')
    if (hasFailed || (tool === 'iperf2' && isUdp)) server?.stop()
    const served = await server?.ended
    if (signal.aborted || outcome.kind === 'cancelled') return CANCELLED
    for (const [name, ended] of [
      [pair.from, outcome],
      [pair.to, served?.result.outcome],
    ] as const) {
      if (ended?.kind !== 'unreachable') continue
      this.#lose(name, ended.reason)
      return failed('away', `${name}: ${ended.reason}`)
    }
    if (outcome.kind === 'timeout') return failed('broken', `no result within ${timeoutMs / 1000} s`)
    const [stdout, stderr] = [result.stdout, result.stderr].map((bytes) => Buffer.from(bytes).toString())
    const parsed =
      tool === 'iperf3'
        ? parseIperf3(text(result), { text: served?.text ?? '', isUdp })
        : parseIperf2(`${stdout}\n${stderr}`, served?.text ?? '', isUdp)
    if (parsed.kind === 'measured') return { kind: 'measured', tool, ...parsed.measured }
    return explainFailure(parsed, { from: pair.from, to }, { port: server?.port ?? 0, tool, end: served })
  }
}

/** Faster than any network card: a host that reports more is not believed, or it would make all others look slow. */
const MOST_BITS_PER_SECOND = 1e13

function plausible(outcome: LinkOutcome): LinkOutcome {
  if (outcome.kind !== 'measured' || outcome.bitsPerSecond <= MOST_BITS_PER_SECOND) return outcome
  return failed('broken', `the reported ${formatBitRate(outcome.bitsPerSecond)} cannot be true`)
}

const NO_ANSWER = 'no answer to a probe'

/**
 * iperf 2 sends UDP without a handshake. So where an address is the host's own word, a few packets go first, and an iperf server
 * there has to answer the sender. Undefined: it does, or this is not needed.
 */
export async function probeAddress(
  tool: NetTool,
  from: ReadyHost,
  to: ReadyHost,
  options: MeasureOptions & Pick<MeshOptions, 'ports'> & { readonly start: number },
  { hosts, signal, clock }: Omit<MeshContext, 'onEvent'>,
): Promise<Extract<LinkOutcome, { kind: 'failed' }> | undefined> {
  if (tool !== 'iperf2' || options.udpBitsPerSecond === undefined || to.isOwnWord !== true) return undefined
  // By itself: a server of 2.1.8 that has served one client often sends the next one no report.
  const own = serverOptions(tool, to, options.start, options)
  const server = await startServer(hosts, { host: to.name, ...own, signal, clock, onTaken() {} })
  if (signal.aborted) return CANCELLED
  if (server.kind === 'failed') return failed(server.isAway ? 'away' : 'no-server', `${to.name}: ${server.reason}`)
  const { port } = server
  const place = { address: to.place.address, port, ownAddress: from.place.address, facts: from.facts }
  const result = await hosts.exec(from.name, probeScript(place), { timeoutMs: 2 * PROBE_S * 1000, signal })
  server.stop()
  const end = await server.ended
  if (signal.aborted) return CANCELLED
  if (result.outcome.kind === 'unreachable') return failed('away', `${from.name}: ${result.outcome.reason}`)
  const parsed = parseIperf2(text(result), '', true)
  if (parsed.kind === 'measured') return undefined
  const failure = parsed.saidBy === undefined ? { reason: NO_ANSWER } : parsed
  return explainFailure(failure, { from: from.name, to }, { port, tool, end })
}

/** Their programs and addresses, or why they cannot be measured. */
export async function inspectHosts(
  names: readonly string[],
  options: InspectOptions,
  context: Pick<MeshContext, 'hosts' | 'signal'>,
  onExamined: (name: string) => void = () => {},
): Promise<readonly MeshHost[]> {
  const hosts = await Promise.all(
    names.map(async (name) => {
      const host = await inspectHost(name, options, context)
      onExamined(name)
      return host
    }),
  )
  if (options.isThisMachineOnly) return hosts
  const claims = hosts.flatMap((host) => ('facts' in host ? [{ name: host.name, address: host.place.address }] : []))
  const refused = refusedClaims(claims, options.declared)
  return hosts.map((host) => {
    const reason = refused.get(host.name)
    return reason === undefined ? host : { name: host.name, cause: 'no-address', reason }
  })
}

async function inspectHost(
  name: string,
  options: InspectOptions,
  { hosts, signal }: Pick<MeshContext, 'hosts' | 'signal'>,
): Promise<MeshHost> {
  const result = await hosts.exec(name, MESH_FACTS, { timeoutMs: FACTS_TIMEOUT_MS, signal })
  const { outcome, stdout } = result
  if (outcome.kind !== 'exit') {
    const reason =
      outcome.kind === 'unreachable' || outcome.kind === 'refused' ? outcome.reason : formatOutcome(outcome)
    return { name, cause: 'away', reason, isRefused: outcome.kind === 'refused' }
  }
  const facts = parseMeshFacts(Buffer.from(stdout).toString())
  const place = chooseAddress(facts, options)
  if ('reason' in place) return { name, cause: 'no-address', reason: place.reason }
  const isOwnWord = !options.isThisMachineOnly && !isDeclared({ name, address: place.address }, options.declared)
  return { name, facts, place, isOwnWord }
}

/** stdout, or stderr if stdout is blank. */
function text({ stdout, stderr }: ScriptResult): string {
  return Buffer.from(stdout.some((byte) => byte > 32) ? stdout : stderr).toString()
}

const CANCELLED = failed('cancelled', 'stopped before it was measured')

/** `start`: the first of the ports to try, counted from the first of all. */
export function serverOptions(
  tool: Exclude<NetTool, 'ssh'>,
  { place: { address }, facts }: ReadyHost,
  start: number,
  options: MeasureOptions & Pick<MeshOptions, 'ports'> & { readonly isLive?: boolean },
): Pick<StartOptions, 'script' | 'ports' | 'limitMs'> {
  const { first, last } = options.ports
  const count = last - first + 1
  return {
    script: (port) => serverScript(tool, { address, port, facts }, options),
    ports: Array.from({ length: count }, (_, index) => first + ((start + index) % count)),
    limitMs: (serverSeconds(options) + 5) * 1000,
  }
}

export function chooseTool(
  from: MeshFacts,
  to: MeshFacts,
  { tool, udpBitsPerSecond, streams }: MeasureOptions & { readonly tool?: NetTool },
): NetTool | { reason(pair: OrderedPair): string } {
  if ((tool ?? 'iperf3') === 'iperf3' && from.iperf3 !== undefined && to.iperf3 !== undefined) return 'iperf3'
  if ((tool ?? 'iperf2') === 'iperf2' && from.iperf2 !== undefined && to.iperf2 !== undefined) return 'iperf2'
  const isPlain = udpBitsPerSecond === undefined && streams === 1
  if ((tool ?? 'ssh') === 'ssh' && isPlain) return 'ssh'
  return {
    reason: (pair) =>
      `${pair.from} and ${pair.to} have no ${tool === undefined ? 'iperf3 and no iperf' : tool} in common${isPlain ? '' : ', and ssh measures neither UDP nor several streams'}`,
  }
}

/** The time that is left, in ms, `elapsedMs` after the step began: it may take longer than the others, which still follow. */
export function remainingOf(
  { index, count, remainingMs }: Omit<Extract<MeshEvent, { type: 'slot' }>, 'type'>,
  elapsedMs: number,
): number {
  return Math.max(remainingMs - elapsedMs, remainingMs * (1 - 1 / (count - index)))
}

/** Explains messages of iperf and of the kernel. `end`: of the server, which Muster stops after the client has failed. */
export function explainFailure(
  { reason, saidBy }: IperfFailure,
  {
    from,
    to: { name: to, place, isOwnWord = false },
  }: { readonly from: string; readonly to: Omit<ReadyHost, 'facts'> },
  {
    port,
    tool,
    end,
  }: { readonly port: number; readonly tool: Exclude<NetTool, 'ssh'>; readonly end?: ServerEnd | undefined },
): ReturnType<typeof failed> {
  const program = tool === 'iperf2' ? 'iperf' : tool
  const said = saidBy === undefined ? reason : `${saidBy === 'client' ? from : to}'s ${program} said: “${reason}”`
  const { address } = place
  const subject = isOwnWord ? `${to}, which gives ${address} as its address,` : `${to} (${address})`
  const listens = `${subject} says that it listens on port ${port}`
  if (/timed out|in progress|no route|unreachable/i.test(reason) || reason === NO_ANSWER) {
    const why = `a firewall drops it, or there is no route${isOwnWord ? ', or the address is wrong' : ''}`
    return failed('no-answer', `${listens}, but nothing from ${from} arrives: ${why} (${said})`)
  }
  if (/refused/i.test(reason) && end?.result.outcome.kind === 'exit') {
    return failed('no-server', `${to}'s server on port ${port} ended before ${from} connected to ${address} (${said})`)
  }
  if (/refused|prohibited|reset/i.test(reason)) {
    // Where the address may be another host's, nothing is known of a firewall.
    const why = isOwnWord ? '' : ': a firewall may reject it'
    return failed('refused', `${listens}, but ${address} refuses ${from}${why} (${said})`)
  }
  return failed('broken', said)
}
