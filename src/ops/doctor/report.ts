/** The doctor's report on a host, as events for programs, and as lines for a terminal. */

import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { type Complaint, complaint, type Finding, GRAVITIES, type Gravity, sortByGravity } from '../kernel/finding.ts'
import type { Examination } from './examine-host.ts'
import { connectionComplaints } from './findings/connection.ts'
import { differenceFindings } from './findings/differences.ts'
import { diskComplaints } from './findings/disks.ts'
import { gpuComplaints } from './findings/gpus.ts'
import { clockComplaints, machineComplaints, ownClockFindings } from './findings/machine.ts'

/** Why there is no connection: the phase that failed, and the reason. */
export type ConnectTrouble = {
  readonly outcome: 'unreachable' | 'refused'
  readonly kind: string
  readonly phase: string
  readonly reason: string
  readonly hint?: string
}

export type DoctorReport = {
  readonly host: string
  /** Undefined: the host is this machine, so its name need not match. */
  readonly inventoryName?: string
  /** GPUs that hosts.yaml says jobs may use; undefined: it declares no resources of the host. */
  readonly declaredGpus?: number
  readonly connectMs: number
} & ({ readonly trouble: ConnectTrouble } | { readonly examination: Examination })

/** Findings of one host by itself, the gravest first. */
export function hostFindings(report: DoctorReport): Finding[] {
  const { host } = report
  const complaints = 'trouble' in report ? [connectComplaint(report.trouble)] : examinationComplaints(report)
  return sortByGravity(complaints.map((each) => ({ host, ...each })))
}

/** Findings that need all hosts to be compared. */
export function fleetFindings(reports: readonly DoctorReport[]): Finding[] {
  const examinations = reports.flatMap((report) =>
    'examination' in report ? [[report.host, report.examination] as const] : [],
  )
  const facts = examinations.flatMap(([host, { facts }]) => (facts === undefined ? [] : [[host, facts] as const]))
  const clocks = examinations.flatMap(([host, { clock }]) => (clock === undefined ? [] : [[host, clock] as const]))
  return sortByGravity([...ownClockFindings(new Map(clocks)), ...differenceFindings(new Map(facts))])
}

function examinationComplaints({
  examination,
  inventoryName,
  declaredGpus,
}: DoctorReport & { examination: Examination }): Complaint[] {
  const { facts, clock } = examination
  return [
    ...connectionComplaints(examination),
    ...(clock === undefined ? [] : clockComplaints(clock, facts?.timeService, facts?.system?.isRoot)),
    ...(facts === undefined
      ? []
      : [...diskComplaints(facts), ...machineComplaints(facts, inventoryName), ...gpuComplaints(facts, declaredGpus)]),
  ]
}

/** If the hint ends in a command, that is the fix; the words before it say when to use it. */
function connectComplaint({ outcome, kind, phase, reason, hint }: ConnectTrouble): Complaint {
  const command = /: (ssh(?:-keygen|-copy-id)? .+)$/.exec(hint ?? '')?.[1]
  const word = kind === 'authentication' || kind === 'host-key' ? kind : outcome
  const fix = command === undefined ? undefined : ({ where: 'here', command } as const)
  return complaint('blocker', word, `${outcome} (${phase}): ${reason}`, defined({ fix, hint }))
}

/** The health of a host, by its gravest finding, notes not counted. */
type Health = 'well' | 'risk' | 'blocked' | 'unreachable'

export type Counts = Readonly<Record<Health, number>>

function gravitiesOf(host: string, findings: readonly Finding[]): Gravity[] {
  return findings.filter((finding) => finding.host === host).map(({ gravity }) => gravity)
}

function healthOf(report: DoctorReport, findings: readonly Finding[]): Health {
  if ('trouble' in report) return 'unreachable'
  const gravities = gravitiesOf(report.host, findings)
  const worst = GRAVITIES.find((gravity) => gravities.includes(gravity))
  return worst === 'blocker' ? 'blocked' : worst === 'risk' ? 'risk' : 'well'
}

export function countHealth(reports: readonly DoctorReport[], findings: readonly Finding[]): Counts {
  const all = reports.map((report) => healthOf(report, findings))
  const count = (wanted: Health) => all.filter((health) => health === wanted).length
  return { well: count('well'), risk: count('risk'), blocked: count('blocked'), unreachable: count('unreachable') }
}

export function findingEvent(finding: Finding): object {
  return { type: 'finding', ...finding }
}

/** What is unknown is null, never zero. */
export function hostEvent(report: DoctorReport, findings: readonly Finding[]): object {
  const { host, connectMs } = report
  const gravities = gravitiesOf(host, findings)
  const count = (wanted: Gravity) => gravities.filter((gravity) => gravity === wanted).length
  const base = {
    type: 'host',
    host,
    outcome: 'trouble' in report ? report.trouble.outcome : 'ok',
    status: healthOf(report, findings),
    blockers: count('blocker'),
    risks: count('risk'),
    notes: count('note'),
    connectMs: Math.round(connectMs),
  }
  if ('trouble' in report) return { ...base, phase: report.trouble.phase, reason: report.trouble.reason }
  const { clock, facts } = report.examination
  const known = facts && Object.fromEntries(Object.entries(facts).map(([name, value]) => [name, value ?? null]))
  return {
    ...base,
    clockOffsetMs: clock === undefined ? null : Number(clock.offsetMs.toFixed(1)),
    clockUncertaintyMs: clock === undefined ? null : Number(clock.uncertaintyMs.toFixed(1)),
    facts: known ?? null,
  }
}

export function summaryEvent(counts: Counts): object {
  return { type: 'summary', hosts: Object.values(counts).reduce((sum, count) => sum + count, 0), ...counts }
}

export type Paint = (gravity: Gravity, text: string) => string

const PLAIN: Paint = (_, text) => text
const MAX_DETAILS = 4

/** `order`: all hosts, as the inventory has them. */
export function formatFindings(findings: readonly Finding[], order: readonly string[], paint: Paint = PLAIN): string {
  const place = new Map(order.map((host, index) => [host, index]))
  const placeOf = ({ host }: Finding) => place.get(host) ?? 0
  const inOrder = findings.toSorted((one, other) => placeOf(one) - placeOf(other))
  const groups = Map.groupBy(sortByGravity(inOrder), ({ gravity, id, cause, fix, hint }) =>
    JSON.stringify([gravity, id, cause, fix, hint]),
  )
  const width = Math.max(...GRAVITIES.map((word) => word.length))
  return [...groups.values()]
    .map((group) => {
      const { gravity, cause, fix, hint } = group[0] as Finding
      const hosts = foldHostSet(group.map(({ host }) => host))
      const details = describeDetails(group)
      const command = fix && `${fix.where === 'here' ? 'here' : `on ${hosts}`}: ${fix.command}`
      const remedy = hint ?? command
      const label = paint(gravity, gravity.padEnd(width))
      const line = `${label}  ${printable(`${hosts}: ${cause}${details === '' ? '' : ` [${details}]`}`)}\n`
      return remedy === undefined ? line : `${line}${' '.repeat(width + 4)}${printable(remedy)}\n`
    })
    .join('')
}

/** One detail if it is the same for all hosts, else the first few by host. */
function describeDetails(findings: readonly Finding[]): string {
  const detailed = findings.filter(({ detail }) => detail !== undefined)
  const byDetail = Map.groupBy(detailed, ({ detail = '' }) => detail)
  const groups = [...byDetail].map(([detail, group]) => ({ detail, hosts: group.map(({ host }) => host) }))
  const [only] = groups
  if (only === undefined) return ''
  if (groups.length === 1 && only.hosts.length === findings.length) return only.detail
  const shown = groups.slice(0, MAX_DETAILS).map(({ detail, hosts }) => `${foldHostSet(hosts)} ${detail}`)
  const left = groups.length - shown.length
  return left === 0 ? shown.join('; ') : `${shown.join('; ')}; ${left} more`
}

/** `9 hosts: 6 ok, 1 at risk, 1 blocked, 1 unreachable` */
export function formatSummary(counts: Counts): string {
  const { well, risk, blocked, unreachable } = counts
  const total = well + risk + blocked + unreachable
  const others = Object.entries({ 'at risk': risk, blocked, 'not reached': unreachable })
  const words = [`${well} ok`, ...others.flatMap(([word, count]) => (count > 0 ? [`${count} ${word}`] : []))]
  return `${counted(total, 'host')}: ${words.join(', ')}\n`
}
