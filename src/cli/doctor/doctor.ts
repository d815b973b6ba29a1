/** `muster doctor [TARGET]`: what would make the next step fail, on every host, with the command that fixes it. */

import { randomBytes } from 'node:crypto'
import { systemClock } from '../../base/clock.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { resolveEndpoints } from '../../inventory/resolve-endpoints.ts'
import { type Examination, examineHost } from '../../ops/doctor/examine-host.ts'
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
import { loadAreas } from '../bring-up/areas.ts'
import { limitFactorOf, newMark } from '../bring-up/prepare.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/context.ts'
import type { VerbCode } from '../command-line/verb.ts'
import { endpointOptions, selectEndpoints } from '../connect/endpoints.ts'
import { fanOutFor } from '../connect/fan-out.ts'
import { createOpsHosts, type OpsHostsOptions } from '../connect/ops-hosts.ts'
import { createVerbWires } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { painterOf } from '../output/colour.ts'
import { writeEvent } from '../output/json-lines.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { createDoctorHost } from './doctor-host.ts'

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
  const locals = new Set(endpoints.flatMap(({ host, transport }) => (transport === 'local' ? [host] : [])))
  const writeFindings = (findings: readonly Finding[]): void => {
    if (options.json) for (const finding of findings) writeEvent(findingEvent(finding), context)
  }

  const waiting = new Set(order)
  using screen = new LiveScreen({
    stdout,
    stderr,
    live: () => (options.json ? [] : [progressOf(waiting, order.length)]),
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
    const report = asReport(check, examinations.get(check.host), locals.has(check.host))
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

function asReport(check: LoginCheck, examination: Examination | undefined, isLocal: boolean): DoctorReport {
  const { host, failure, outcome } = check
  const known = { host, connectMs: check.durationMs, ...(isLocal ? {} : { inventoryName: host }) }
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

function progressOf(waiting: ReadonlySet<string>, count: number): string {
  const names = waiting.size > 8 ? `${waiting.size} hosts` : foldHostSet([...waiting])
  return `examined ${count - waiting.size} of ${count}${waiting.size === 0 ? '' : `, waiting for ${names}`}`
}

export type UpFindingsOptions = Omit<OpsHostsOptions, 'token' | 'sudoPassword'> & {
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
  const token = randomBytes(8).toString('hex')
  using hosts = createOpsHosts(endpoints, { ...options, token, sudoPassword: async () => undefined })
  const factsByArea = await gatherAreaFacts(areas, {
    hosts,
    signal,
    mark: `m${token}`,
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
