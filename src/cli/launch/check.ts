/** `muster launch check KIND`: asks the hosts on which a job would start what its launcher asks, and more; starts nothing. */
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { findingEvent, formatFindings } from '../../ops/doctor/report.ts'
import type { Finding } from '../../ops/kernel/finding.ts'
import { reasonOfResult } from '../../ops/kernel/host-port.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { MARK } from '../../scheduler/jobs/host-program.ts'
import { isActive, type Job } from '../../scheduler/jobs/job.ts'
import { asQuestion, launchedGang, type PlacedJob, preflightOf } from '../../scheduler/jobs/orders.ts'
import { ANSWERED, portsOf } from '../../scheduler/launch/asking.ts'
import type { LaunchedGang, Launcher } from '../../scheduler/launch/launcher.ts'
import { LAUNCHERS } from '../../scheduler/launch/launchers.ts'
import { slowFacts } from '../../scheduler/launch/preflight.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { type ConnectedHosts, connectHosts } from '../job/hosts.ts'
import { readQueue } from '../job/open-queue.ts'
import { COMMAND_WORDS, placeNow, prepareJob, type SubmitOptions, withJobOptions } from '../job/submit.ts'
import { painterOf } from '../output/colour.ts'
import { jsonLine, writeEvent } from '../output/json-lines.ts'
import { formatTable } from '../output/table.ts'
import { ABSENT } from './launch.ts'
import { findLauncher, withLaunchOptions } from './launch-options.ts'

export const verb: VerbCode = {
  define: (command) =>
    withJobOptions(
      withLaunchOptions(command, LAUNCHERS)
        .argument('<kind>', `launcher: ${LAUNCHERS.map(({ name }) => name).join(', ')}, or a row of hosts.yaml`)
        .argument('<command...>', COMMAND_WORDS),
    ),
  help: `
Examples:
  muster launch check torchrun --bundles 2 --gpu 4 -- train.py

It looks for hosts as --dry-run does, and asks them: programs, versions and imports, the script, network cards and ports, whether
all hosts reach the first one, clocks, GPUs, shared memory, and what earlier jobs left running.
blocker: the job cannot start · risk: it may fail · note: good to know.
Exit codes: 0 no blocker, 1 a blocker or no room now, 4 a host could not be reached.
`,
  async run(kind: string, words: readonly string[], options: SubmitOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    // Nothing is copied, so what would be copied cannot be looked for.
    const asked = await prepareJob(words, { ...options, ...ABSENT, launch: kind, dryRun: true }, queue, context)
    const { directory: _, ...rest } = asked
    const spec = options.copyDir === undefined ? asked : { ...rest, command: 'true' }
    const { places, why } = placeNow(spec, queue, context)
    if (places === undefined) {
      if (options.json) context.stdout.write(jsonLine({ type: 'trial', fits: false, why }, context))
      else context.stdout.write(`It does not fit right now.\n${why.map((line) => `${printable(line)}\n`).join('')}`)
      return EXIT.failed
    }
    using hosts = await connectHosts(queue.inventory, options, context)
    const launcher = findLauncher(kind, queue.inventory)
    const interview = new Interview({ id: 0, attempt: 1, spec, places }, hosts.addresses, launcher, hosts, context)
    await interview.run(queue.store.id, queue.store.active())
    const findings = interview.findings()
    const order = interview.names
    if (options.json) {
      for (const finding of findings) writeEvent(findingEvent(finding), context)
      for (const row of interview.rows()) writeEvent({ type: 'host', ...row }, context)
    } else {
      const paint = painterOf(options, context)
      const rows = interview.rows().map((row) => COLUMNS.map(([key]) => String(row[key] ?? '')))
      context.stdout.write(
        `${formatTable(
          COLUMNS.map(([, title]) => title),
          rows,
          context.stdout,
        )}\n${formatFindings(findings, order, paint && ((gravity, text) => paint(COLOURS[gravity], text)))}`,
      )
      const blocked = new Set(findings.flatMap(({ gravity, host }) => (gravity === 'blocker' ? [host] : [])))
      context.stdout.write(
        blocked.size === 0
          ? `${foldHostSet(order)}: ready to start\n`
          : `${foldHostSet(order.filter((host) => blocked.has(host)))}: blocked\n`,
      )
    }
    if (findings.some(({ id }) => id === UNREACHABLE)) return EXIT.unreachable
    return findings.some(({ gravity }) => gravity === 'blocker') ? EXIT.failed : EXIT.ok
  },
}

const COLOURS = { blocker: 'red', risk: 'yellow', note: 'dim' } as const
const UNREACHABLE = 'unreachable'

const MPI4PY: Readonly<Record<string, string>> = { yes: 'mpi4py', no: 'no mpi4py' }

type HostRow = Readonly<Record<string, string | number | null>>

const COLUMNS: readonly (readonly [key: string, title: string])[] = [
  ['host', 'HOST'],
  ['bundles', 'BUNDLES'],
  ['card', 'CARD'],
  ['mtu', 'MTU'],
  ['python', 'PYTHON'],
  ['library', 'LIBRARY'],
  ['nccl', 'NCCL'],
  ['port', 'PORT'],
  ['reaches', 'REACHES FIRST'],
  ['clock', 'CLOCK'],
]

const MOST_FACTS = 64
const MOST_CHARACTERS = 4096
/** Clocks that differ by more than this say little about which rank failed first. */
const CLOCKS_MS = 500

/** Questions and answers until no host has anything left to be asked. */
class Interview {
  readonly #job: PlacedJob
  readonly #addresses: ReadonlyMap<string, string>
  readonly #launcher: Launcher
  readonly #hosts: ConnectedHosts
  readonly #context: CliContext
  /** By bundle. */
  readonly #said: Record<string, string>[]
  readonly #asked = new Set<string>()
  readonly #reasons = new Set<string>()
  readonly #troubles = new Map<string, string>()
  /** Ahead of this machine's, and the error of that. */
  readonly #clocks = new Map<string, { readonly offsetMs: number; readonly errorMs: number }>()
  readonly #over = Promise.withResolvers<void>()
  #running = 0

  constructor(
    job: PlacedJob,
    addresses: ReadonlyMap<string, string>,
    launcher: Launcher,
    hosts: ConnectedHosts,
    context: CliContext,
  ) {
    this.#job = job
    this.#addresses = addresses
    this.#launcher = launcher
    this.#hosts = hosts
    this.#context = context
    this.#said = job.places.map(() => ({}))
  }

  get names(): readonly string[] {
    return [...new Set(this.#job.places.map(({ host }) => host))]
  }

  /** `active`: jobs of the queue; what runs of them is not left over. */
  async run(storeId: string, active: readonly Job[]): Promise<void> {
    this.#pump()
    await this.#over.promise
    const { options } = this.#gang().spec
    const { module, python } = this.#launcher.imports?.(options) ?? {}
    await Promise.all(
      this.names.map(async (host) => {
        if (this.#troubles.has(host)) return
        const running = active.flatMap(({ id, attempt, state }) =>
          isActive(state) && state.places.some((place) => place.host === host) ? [`${id}-${attempt}`] : [],
        )
        const program = slowFacts(module, python, `${MARK}=${storeId}-`, running)
        const bundle = this.#job.places.findIndex((place) => place.host === host)
        await this.#exec(bundle, program)
        await this.#readClock(host)
      }),
    )
  }

  findings(): readonly Finding[] {
    const { places } = this.#job
    const bundles = this.#said.map((said) => ({ kind: 'sent' as const, said }))
    const found: Finding[] = [...preflightOf({ ...this.#job, bundles }, this.#addresses)]
    const own = new Set(this.#said.map(({ refuse }, index) => `${places[index]?.host}: ${refuse}`))
    for (const reason of this.#reasons)
      if (!own.has(reason))
        for (const host of this.names) found.push({ host, gravity: 'blocker', id: 'refused', cause: reason })
    for (const [host, cause] of this.#troubles) found.push({ host, gravity: 'blocker', id: UNREACHABLE, cause })
    for (const [index, { refuse, ...facts }] of this.#said.entries()) {
      const host = places[index]?.host ?? ''
      if (refuse !== undefined || facts[ANSWERED] !== undefined || this.#troubles.has(host)) continue
      if (!this.#asked.has(`${index} ${ANSWERED}`)) continue
      found.push({ host, gravity: 'blocker', id: 'unknown', cause: 'its answer could not be read' })
    }
    return [...found, ...this.#clockFindings()]
  }

  rows(): readonly HostRow[] {
    return this.names.map((host): HostRow => {
      const own = this.#job.places.flatMap((place, index) => (place.host === host ? [index] : []))
      const said: Readonly<Record<string, string>> = Object.assign({}, ...own.map((index) => this.#said[index]))
      const { interpreter = '', module = '' } = said
      const clock = this.#clocks.get(host)
      return {
        host,
        bundles: own.join(),
        card: said.card ?? null,
        mtu: said.mtu ?? null,
        python: interpreter.split(' ')[0] || null,
        library: module.startsWith('version ') ? module.slice('version '.length) : (MPI4PY[said.mpi4py ?? ''] ?? null),
        nccl: said.nccl ?? null,
        port: portsOf(said)[0] ?? null,
        reaches: own.includes(0) ? null : said.reached === undefined ? 'unknown' : 'yes',
        clock:
          clock === undefined
            ? null
            : `${clock.offsetMs >= 0 ? '+' : ''}${(clock.offsetMs / 1000).toFixed(2)} s ± ${(clock.errorMs / 1000).toFixed(2)}`,
      }
    })
  }

  #clockFindings(): readonly Finding[] {
    const sorted = [...this.#clocks.values()].map(({ offsetMs }) => offsetMs).sort((one, other) => one - other)
    const middle = sorted[sorted.length >> 1] ?? 0
    return [...this.#clocks].flatMap(([host, { offsetMs, errorMs }]): readonly Finding[] => {
      const byMs = offsetMs - middle
      if (Math.abs(byMs) <= CLOCKS_MS + errorMs) return []
      return [
        {
          host,
          gravity: 'risk',
          id: 'clock-off',
          cause: 'its clock differs from that of the other hosts',
          detail: `${(byMs / 1000).toFixed(1)} s`,
          hint: 'Times in logs do not tell which rank failed first. Run: muster doctor',
        },
      ]
    })
  }

  #gang(): LaunchedGang {
    const bundles = this.#said.map((said) => ({ kind: 'sent' as const, said: { ...said } }))
    const gang = launchedGang({ ...this.#job, bundles }, this.#addresses)
    if (gang === undefined) throw new Error('a job without a launcher is checked')
    return gang
  }

  #pump(): void {
    const gang = this.#gang()
    for (const index of gang.bundles.keys()) {
      const step = this.#launcher.next(gang, index)
      if (step.kind === 'refuse') this.#reasons.add(step.reason)
      if (step.kind !== 'ask' || this.#asked.has(`${index} ${step.name}`)) continue
      this.#asked.add(`${index} ${step.name}`)
      this.#running += 1
      void this.#exec(index, step.program).then(() => {
        this.#running -= 1
        this.#pump()
      })
    }
    if (this.#running === 0) this.#over.resolve()
  }

  /** Never rejects. */
  async #exec(index: number, program: string): Promise<void> {
    const host = this.#job.places[index]?.host ?? ''
    let rest = ''
    const take = (text: string) => {
      const lines = `${rest}${text}`.split('\n')
      rest = (lines.pop() ?? '').slice(0, MOST_CHARACTERS)
      for (const line of lines) this.#note(index, line)
      if (lines.length > 0) this.#pump()
    }
    const result = await this.#hosts.exec(host, asQuestion(this.#job.spec, program), this.#context.signal, take)
    if (result.outcome.kind !== 'exit') this.#troubles.set(host, reasonOfResult(result, formatOutcome))
  }

  /** A host is believed about itself alone; the first answer counts. */
  #note(index: number, line: string): void {
    const said = this.#said[index]
    const [, name = '', value = ''] = /^([\w.:-]{1,300}) (.*)$/s.exec(line) ?? []
    if (said === undefined || name === '' || value.length > MOST_CHARACTERS) return
    if (!Object.hasOwn(said, name) && Object.keys(said).length < MOST_FACTS) said[name] = printable(value)
  }

  async #readClock(host: string): Promise<void> {
    const { now, signal } = this.#context
    const sinceMs = now()
    const { stdout, outcome } = await this.#hosts.exec(host, 'date +%s.%N', signal)
    const text = Buffer.from(stdout).toString().trim()
    if (outcome.kind !== 'exit' || !/^\d{1,11}\.\d{9}$/.test(text)) return
    const errorMs = (now() - sinceMs) / 2
    this.#clocks.set(host, {
      offsetMs: Math.round(Number(text) * 1000 - sinceMs - errorMs),
      errorMs: Math.ceil(errorMs),
    })
  }
}
