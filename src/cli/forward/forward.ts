/** `muster forward`: port forwards to hosts, until Ctrl-C. */
import { spawn } from 'node:child_process'
import type { Command } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { createFleet, type FleetEvent } from '../../ssh/create-fleet.ts'
import { leadsTo, listensOn, noteOn, urlOfForward } from '../../ssh/forward/describe-forward.ts'
import { type Forward, type ForwardEvent, Forwards } from '../../ssh/forward/forwards.ts'
import {
  DASHBOARDS,
  type ForwardWords,
  isDashboard,
  type KnownDashboard,
  planForwards,
} from '../../ssh/forward/plan-forwards.ts'
import { withHint } from '../../ssh/transport.ts'
import { repeatable } from '../command-line/options.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { createVerbWires, fanOutFor, requireRoomFor } from '../connect/transports.ts'
import { writeEvent } from '../output/json-lines.ts'
import { readKnownDashboards } from './known-dashboards.ts'

type ForwardOptions = GlobalOptions & {
  readonly local: readonly string[]
  readonly remote: readonly string[]
  readonly dynamic: readonly string[]
  readonly open?: boolean
}

export const verb: VerbCode = {
  define: (command: Command) =>
    command
      .argument('<target>', 'the hosts; or a dashboard alone, if hosts.yaml or the job queue says where it is')
      .argument(
        '[ports...]',
        `ports of the hosts: 8265, 9000:80, 9000:other:80; or dashboards: ${DASHBOARDS.join(', ')}`,
      )
      .addOption(repeatable('-L, --local <spec>', 'listen here, connect from the host: [bind:]port:host:port'))
      .addOption(repeatable('-R, --remote <spec>', 'listen on the host, connect from here: [bind:]port:host:port'))
      .addOption(
        repeatable('-D, --dynamic <spec>', 'listen here as a SOCKS 5 proxy, connect from the host: [bind:]port'),
      )
      .option('--open', 'open dashboards and other local ports in the browser'),
  help: `
Examples:
  muster forward m8 8265                 this machine's port 8265 leads to port 8265 of m8
  muster forward m8 9000:db:5432         port 9000 leads to db:5432, as m8 sees it
  muster forward ray --open              the Ray dashboard, on the head that hosts.yaml names
  muster forward m8 jupyter tensorboard  port 8888 and port 6006 of m8
  muster forward 'm[8-10]' 9100          a local port for each host
  muster forward m8 -R 9000:localhost:80 port 9000 of m8 leads to port 80 of this machine
  muster forward m8 -D 1080              a SOCKS 5 proxy; m8 resolves the names

Local ports listen on 127.0.0.1 unless an address is given. If a port is in use here, Muster takes the next free one,
except with -L and -D. It reconnects lost hosts. Ctrl-C closes everything; the exit code is then 130.
`,
  async run(target: string, ports: readonly string[], options: ForwardOptions, context: CliContext) {
    const { local, remote, dynamic } = options
    const words: ForwardWords = { plain: ports, local, remote, dynamic }
    const isAlone = ports.length + local.length + remote.length + dynamic.length === 0
    const known = [target, ...ports].some(isDashboard) ? await readKnownDashboards(options, context) : []
    if (isAlone && isDashboard(target)) {
      const host = known.find(({ name }) => name === target)?.host
      if (host === undefined)
        throw new MusterError(
          'usage',
          `neither ${printable(options.hosts ?? 'hosts.yaml')} nor a running job says where ${target} is`,
          {
            hint: `Name its host: muster forward HOST ${target}`,
          },
        )
      return await forward(host, { plain: [target] }, known, options, context)
    }
    return await forward(target, words, known, options, context)
  },
}

async function forward(
  target: string,
  words: ForwardWords,
  known: readonly KnownDashboard[],
  options: ForwardOptions,
  context: CliContext,
): Promise<number> {
  const { endpoints } = await selectEndpoints(target, options, context)
  const hosts = endpoints.map(({ host }) => host)
  const requests = planForwards(hosts, words, known)
  requireRoomFor(endpoints)
  using wires = createVerbWires(context, options.persist)
  const fanOut = fanOutFor(hosts.length, options, context)
  using fleet = createFleet({ ...wires, clock: systemClock, random: Math.random, fanOut })
  using forwards = new Forwards(fleet, systemClock)
  const report = new ForwardReport(endpoints, options, context)
  using _events = forwards.on((event) => report.takeForward(event))
  using _sessions = fleet.on((event) => report.takeFleet(event))
  for (const endpoint of endpoints) fleet.add(endpoint)
  // Before any host is asked: a port that is in use here ends it at once.
  await forwards.open(requests)
  context.signal.addEventListener('abort', () => report.stop(EXIT.interrupted), { once: true })
  if (context.signal.aborted) report.stop(EXIT.interrupted)
  fleet.connect(hosts)
  return await report.ended
}

/** Reports forwards and hosts, and ends the verb when none of them can work any more. */
class ForwardReport {
  readonly #options: ForwardOptions
  readonly #context: CliContext
  readonly #end = Promise.withResolvers<number>()
  /** Hosts that may still work, and forwards that do or may, each with its host. */
  readonly #hopeful: Set<string>
  readonly #hopefulForwards = new Map<number, string>()
  /** Where each listens, as shown. */
  readonly #shown = new Map<number, string>()
  /** Hosts whose loss was reported. */
  readonly #away = new Set<string>()
  /** Hosts that were connected. */
  readonly #known = new Set<string>()

  constructor(endpoints: readonly Endpoint[], options: ForwardOptions, context: CliContext) {
    this.#options = options
    this.#context = context
    this.#hopeful = new Set(endpoints.map(({ host }) => host))
  }

  get ended(): Promise<number> {
    return this.#end.promise
  }

  stop(code: number): void {
    this.#end.resolve(code)
  }

  takeFleet(event: FleetEvent): void {
    if (event.type !== 'session') return
    const { host, state } = event
    if (state.kind === 'ready') {
      this.#hopeful.add(host)
      if (this.#away.delete(host)) this.#say(host, 'connected', this.#known.has(host) ? 'connected again' : 'connected')
      this.#known.add(host)
    } else if (state.kind === 'failed') {
      this.#hopeful.delete(host)
      this.#say(host, 'failed', withHint(state.failure))
    } else if (state.kind === 'lost' || (state.kind === 'waiting' && !this.#away.has(host))) {
      // A host that was never connected does not keep the verb running by itself.
      if (state.kind === 'waiting') this.#hopeful.delete(host)
      this.#away.add(host)
      const words = state.kind === 'lost' ? `connection lost: ${state.reason}` : state.reason
      this.#say(host, 'lost', this.#hopelessCode === undefined ? `${words}; trying again` : words)
    }
    this.#endWithoutHope()
  }

  takeForward(event: ForwardEvent): void {
    const { forward } = event
    switch (event.type) {
      case 'opened':
        this.#hopefulForwards.set(forward.id, forward.host)
        return
      case 'served':
        this.#hopefulForwards.set(forward.id, forward.host)
        if (this.#shown.get(forward.id) !== listensOn(forward)) this.#show(forward)
        return
      case 'refused':
        this.#say(forward.host, 'refused', event.reason)
        this.#hopefulForwards.delete(forward.id)
        return this.#endWithoutHope()
      case 'trouble':
        return this.#say(forward.host, 'trouble', event.reason)
      default:
    }
  }

  /** Also where one host refuses its forwards and the others cannot be reached. */
  #endWithoutHope(): void {
    const code = this.#hopelessCode
    if (code !== undefined) this.stop(code)
  }

  get #hopelessCode(): number | undefined {
    if (this.#hopeful.size === 0) return EXIT.unreachable
    return [...this.#hopefulForwards.values()].some((host) => this.#hopeful.has(host)) ? undefined : EXIT.failed
  }

  #show(forward: Forward): void {
    const { json, open } = this.#options
    const { stdout } = this.#context
    this.#shown.set(forward.id, listensOn(forward))
    const url = urlOfForward(forward)
    const note = noteOn(forward)
    if (json === true) writeEvent({ type: 'forward', ...eventOf(forward) }, this.#context)
    else {
      const from = forward.title === undefined ? listensOn(forward) : (url ?? '')
      const words = `${printable(forward.host)}: ${from} → ${leadsTo(forward)}`
      stdout.write(`${words}${note === undefined ? '' : `; ${note}`}\n`)
    }
    if (open === true && url !== undefined) openInBrowser(url, this.#context)
  }

  #say(host: string, type: string, text: string): void {
    const words = printable(text)
    if (this.#options.json === true) writeEvent({ type, host, reason: words }, this.#context)
    else this.#context.stderr.write(`muster: ${printable(host)}: ${words}\n`)
  }
}

function eventOf(forward: Forward): object {
  const { host, spec, listen, title } = forward
  const url = urlOfForward(forward)
  return {
    host,
    kind: spec.kind,
    listen,
    ...(spec.kind === 'dynamic' ? {} : { to: spec.to }),
    ...(url === undefined ? {} : { url }),
    ...(title === undefined ? {} : { title }),
  }
}

/** Not waited for: the browser may stay open. */
function openInBrowser(url: string, { environment, stderr }: CliContext): void {
  const program = process.platform === 'darwin' ? 'open' : 'xdg-open'
  const child = spawn(program, [url], { env: environment, stdio: 'ignore', detached: true })
  child.on('error', () => stderr.write(`muster: cannot start ${program}: open ${url} yourself\n`))
  child.unref()
}
