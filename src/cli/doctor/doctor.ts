/** `muster doctor [TARGET]`: what would make the next step fail, on every host, with the command that fixes it. */

import { type Clock, systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { messageOf } from '../../base/errors.ts'
import { LineReader } from '../../base/line-reader.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { type Examination, examineHost } from '../../ops/doctor/examine-host.ts'
import type { CommandOptions, CommandResult, DoctorEnd, DoctorHost, Exchange } from '../../ops/doctor/host-port.ts'
import {
  countHealth,
  type DoctorReport,
  findingEvent,
  fleetFindings,
  formatFindings,
  formatSummary,
  hostEvent,
  hostFindings,
  summaryEvent,
} from '../../ops/doctor/report.ts'
import { prepareAreas } from '../../ops/kernel/area.ts'
import { gatherAreaFacts } from '../../ops/kernel/bring-up.ts'
import type { Finding } from '../../ops/kernel/finding.ts'
import { makePlan } from '../../ops/kernel/plan.ts'
import { checkHosts, type LoginCheck } from '../../ssh/check-hosts.ts'
import type { Connection, RemoteProcess } from '../../ssh/transport.ts'
import { loadAreas } from '../bring-up/areas.ts'
import { limitFactorOf, newMark } from '../bring-up/prepare.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { endpointOptions, selectEndpoints } from '../connect/endpoints.ts'
import { createOpsHosts, type OpsHostsOptions } from '../connect/ops-hosts.ts'
import { createVerbWires, fanOutFor } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { painterOf } from '../output/colour.ts'
import { writeEvent } from '../output/json-lines.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { progressOf } from '../output/progress.ts'

export const verb: VerbCode = {
  define: (command) => command.argument('[target]', 'hosts to examine (default: all)'),
  help: `
Examples:
  muster doctor                     every host of hosts.yaml
  muster doctor @workers --json     one JSON object per finding, and one per host
  muster doctor root@h1,h2:2222     no file needed

If hosts.yaml declares areas for muster up, doctor also checks what they need: packages or wheels, Ray in the environment,
permissions and disk space. It changes nothing. For slow hosts, set a longer --connect-timeout.
blocker: work on the host fails · risk: work may fail · note: good to know.
Exit codes: 0 no blocker, 1 a host has a blocker, 4 a host could not be reached, 130 interrupted.
`,
  run: doctor,
}

/** What the limits of an examination are made for. */
const USUAL_CONNECT_TIMEOUT_MS = 10_000

async function doctor(target: string | undefined, options: GlobalOptions, context: CliContext): Promise<number> {
  const { signal, stdout, stderr } = context
  const { inventory, hosts, endpoints } = await selectEndpoints(target, options, context)
  const order = endpoints.map(({ host }) => host)
  // Not those of the inventory: a host that the target names with two logins has other names here.
  const declared = new Map(
    hosts.flatMap(({ name, resources }) => (resources === undefined ? [] : [[name, resources.gpu ?? 0] as const])),
  )
  const locals = new Set(endpoints.flatMap(({ host, transport }) => (transport === 'local' ? [host] : [])))
  const writeFindings = (findings: readonly Finding[]): void => {
    if (options.json) for (const finding of findings) writeEvent(findingEvent(finding), context)
  }

  const waiting = new Set(order)
  using screen = new LiveScreen({
    ...context,
    live: () => (options.json ? [] : [progressOf('examined', [...waiting], order.length)]),
  })
  // A connection that is kept open would not show whether the user can log in.
  using wires = createVerbWires(context, 0, screen.quietly(new TtyDialog()))
  const examinations = new Map<string, Examination>()
  const reports: DoctorReport[] = []
  const findings: Finding[] = []
  const fanOut = fanOutFor(endpoints.length, options, context)
  for await (const check of checkHosts(endpoints, {
    ...wires,
    clock: systemClock,
    fanOut,
    signal,
    onConnected: async ({ host, connectTimeoutMs }, connection) => {
      const mark = newMark()
      // A host that may take long to connect may take long to answer.
      const limitFactor = Math.max(1, connectTimeoutMs / USUAL_CONNECT_TIMEOUT_MS)
      const doctorHost = createDoctorHost(connection, systemClock)
      examinations.set(host, await examineHost(doctorHost, { signal, mark, limitFactor }))
    },
  })) {
    if (signal.aborted) break
    const report = asReport(check, examinations.get(check.host), locals.has(check.host), declared.get(check.host))
    reports.push(report)
    const own = hostFindings(report)
    findings.push(...own)
    writeFindings(own)
    waiting.delete(check.host)
    screen.refresh()
  }
  screen[Symbol.dispose]()
  if (declaresAreas(inventory) && !signal.aborted) {
    const answered = new Set(reports.flatMap((report) => ('examination' in report ? [report.host] : [])))
    const isWhole = hosts.length === inventory.hosts.length
    const ofUp = await upFindings({
      ...wires,
      inventory,
      endpoints: isWhole
        ? endpoints
        : await resolveEndpoints(inventory, inventory.hosts, endpointOptions(options, context)),
      answered,
      limitFactor: limitFactorOf(options),
      fanOut,
      signal,
      now: context.now,
    })
    findings.push(...ofUp)
    writeFindings(ofUp)
  }
  if (signal.aborted) {
    stderr.write(`muster: stopped; examined ${reports.length} of ${order.length} hosts\n`)
    if (reports.length === 0) return EXIT.interrupted
  }
  reports.sort((one, other) => order.indexOf(one.host) - order.indexOf(other.host))
  const together = fleetFindings(reports)
  findings.push(...together)
  writeFindings(together)

  const paint = painterOf(options, context)
  const counts = countHealth(reports, findings)
  if (options.json) {
    for (const report of reports) writeEvent(hostEvent(report, findings), context)
    writeEvent(summaryEvent(counts), context)
  } else {
    stdout.write(
      formatFindings(findings, order, paint && ((gravity, text) => paint(COLOURS[gravity], text))) +
        formatSummary(counts),
    )
  }
  if (signal.aborted) return EXIT.interrupted
  if (counts.unreachable > 0) return EXIT.unreachable
  return counts.blocked > 0 ? EXIT.failed : EXIT.ok
}

function asReport(
  check: LoginCheck,
  examination: Examination | undefined,
  isLocal: boolean,
  declaredGpus: number | undefined,
): DoctorReport {
  const { host, failure, outcome } = check
  const known = {
    host,
    connectMs: check.durationMs,
    ...(isLocal ? {} : { inventoryName: host }),
    ...defined({ declaredGpus }),
  }
  if (failure !== undefined || examination === undefined) {
    const { kind, phase, reason, hint } = failure ?? {
      kind: 'unreachable',
      phase: 'shell',
      reason: 'nothing was examined',
    }
    const trouble = { outcome: outcome === 'ok' ? ('unreachable' as const) : outcome, kind, phase, reason }
    return { ...known, trouble: hint === undefined ? trouble : { ...trouble, hint } }
  }
  return { ...known, examination }
}

const COLOURS = { blocker: 'red', risk: 'yellow', note: 'dim' } as const

export type UpFindingsOptions = Omit<OpsHostsOptions, 'sudoPassword'> & {
  readonly inventory: Inventory
  /** Of all hosts of the inventory. */
  readonly endpoints: readonly Endpoint[]
  /** The hosts that answered: only these are asked. */
  readonly answered: ReadonlySet<string>
  readonly limitFactor: number
  now(): number
}

const ASK_LIMIT_MS = 15_000
/** About another host, which the doctor examines by itself or was not asked about. */
const OF_OTHERS = ['away', 'needs-other', 'not-reached']

export function declaresAreas({ sections }: Inventory): boolean {
  return (sections?.size ?? 0) > 0
}

export async function upFindings(options: UpFindingsOptions): Promise<Finding[]> {
  const { inventory, endpoints, answered, limitFactor, signal, now } = options
  const { areas } = await prepareAreas(await loadAreas(), inventory, endpoints)
  if (areas.length === 0 || answered.size === 0) return []
  using hosts = createOpsHosts(endpoints, options)
  const factsByArea = await gatherAreaFacts(areas, {
    hosts,
    signal,
    mark: newMark(),
    now,
    limitFactor,
    before: async (host) =>
      answered.has(host) ? undefined : { kind: 'away', host, outcome: 'unreachable', reason: 'it was not examined' },
  })
  const plan = makePlan('up', areas, factsByArea, { isSelected: (host) => answered.has(host) })
  const blocked = plan.operations.flatMap(({ area, verdict }) =>
    verdict.kind === 'blocked'
      ? verdict.findings.map((finding) => ({ ...finding, cause: `up ${area}: ${finding.cause}` }))
      : [],
  )
  const asked = await Promise.all(
    areas
      .flatMap((area) => area.preflights(plan.operations))
      .map(async ({ host, script, findingsOf }) => {
        const { stdout } = await hosts.exec(host, script, {
          timeoutMs: ASK_LIMIT_MS * limitFactor,
          signal,
          isBrief: true,
        })
        return findingsOf(Buffer.from(stdout).toString())
      }),
  )
  const own = blocked.filter(({ host, id }) => answered.has(host) && !OF_OTHERS.includes(id))
  return [...own, ...asked.flat()]
}

/** No expected answer is longer. */
const STDOUT_LIMIT_BYTES = 1024 * 1024
const FLOOD: DoctorEnd = { kind: 'flood', moreThanBytes: STDOUT_LIMIT_BYTES }
const STDERR_LIMIT_BYTES = 64 * 1024

export function createDoctorHost(connection: Connection, clock: Clock): DoctorHost {
  return {
    async exec(command, options) {
      const stdout: Uint8Array[] = []
      const stderr: Uint8Array[] = []
      const sizes = { stdout: 0, stderr: 0 }
      const until = options.until === undefined ? undefined : Buffer.from(options.until)
      let tail = Buffer.alloc(0)
      const startedAtMs = clock.now()
      const end = await runUntil(connection, clock, command, options, (stop) => ({
        onStdout(bytes) {
          sizes.stdout += bytes.length
          if (sizes.stdout > STDOUT_LIMIT_BYTES) return stop(FLOOD)
          stdout.push(bytes)
          if (until === undefined) return
          // The words may be cut in two between packets.
          tail = Buffer.concat([tail.subarray(Math.max(0, tail.length - until.length + 1)), bytes])
          if (tail.includes(until)) stop({ kind: 'enough' })
        },
        onStderr(bytes) {
          sizes.stderr += bytes.length
          if (sizes.stderr <= STDERR_LIMIT_BYTES) stderr.push(bytes)
        },
      }))
      const result: CommandResult = {
        stdout: Buffer.concat(stdout),
        stderr: Buffer.concat(stderr),
        end,
        durationMs: clock.now() - startedAtMs,
      }
      return result
    },

    async converse(command, questions, options) {
      const exchanges: Exchange[] = []
      let sentAtMs = clock.now()
      let isReady = false
      const lines = new LineReader(STDOUT_LIMIT_BYTES)
      let received = 0
      await runUntil(connection, clock, command, options, (stop, write) => ({
        onStdout(bytes) {
          const receivedAtMs = clock.now()
          received += bytes.length
          if (received > STDOUT_LIMIT_BYTES) return stop(FLOOD)
          for (const line of lines.push(Buffer.from(bytes).toString('latin1'))) {
            if (!isReady && !line.startsWith(options.ready)) continue
            isReady = true
            if (exchanges.length > questions.length) return
            exchanges.push({ answer: line, sentAtMs, receivedAtMs })
            const question = questions[exchanges.length - 1]
            if (question === undefined) return stop({ kind: 'enough' })
            sentAtMs = clock.now()
            write(Buffer.from(`${question}\n`))
          }
        },
        onStderr() {},
      }))
      return exchanges
    },
  }
}

type Listeners = { onStdout(bytes: Uint8Array): void; onStderr(bytes: Uint8Array): void }
type Listen = (stop: (end: DoctorEnd) => void, write: (bytes: Uint8Array) => void) => Listeners

/** Runs until the command ends or `stop` is called; the channel is closed in any case. */
function runUntil(
  connection: Connection,
  clock: Clock,
  command: string,
  { timeoutMs, silenceMs, signal, stdin }: CommandOptions,
  listen: Listen,
): Promise<DoctorEnd> {
  return new Promise((resolve) => {
    let remote: RemoteProcess | undefined
    let isOver = false
    const stop = (end: DoctorEnd): void => {
      if (isOver) return
      isOver = true
      timer[Symbol.dispose]()
      silence?.[Symbol.dispose]()
      signal.removeEventListener('abort', handleAbort)
      // A hanging command is killed; where a server does not pass signals on, its stdin ends.
      if (end.kind === 'timeout' || end.kind === 'cancelled') remote?.signal('KILL')
      remote?.close()
      resolve(end)
    }
    const handleAbort = (): void => stop({ kind: 'cancelled' })
    const timer = clock.after(timeoutMs, () => stop({ kind: 'timeout' }))
    let silence: Disposable | undefined
    const listenOn = (): void => {
      if (silenceMs === undefined) return
      silence?.[Symbol.dispose]()
      silence = clock.after(silenceMs, () => stop({ kind: 'timeout' }))
    }
    listenOn()
    signal.addEventListener('abort', handleAbort, { once: true })
    if (signal.aborted) return handleAbort()
    const listeners = listen(stop, (bytes) => remote?.write(bytes))
    connection
      .exec(command, {
        onStdout: (bytes) => {
          if (isOver) return
          listenOn()
          listeners.onStdout(bytes)
        },
        onStderr: (bytes) => {
          if (!isOver) listeners.onStderr(bytes)
        },
        onEnd: stop,
      })
      .then(
        (started) => {
          remote = started
          if (isOver) {
            started.signal('KILL')
            started.close()
          } else if (stdin !== undefined) started.write(Buffer.from(stdin))
        },
        (error: unknown) => stop({ kind: 'refused', reason: messageOf(error) }),
      )
  })
}
