/** The doctor's report on one host, and the findings that follow from it. Pure. */

import { type Complaint, type Finding, GRAVITIES, type Gravity } from '../kernel/finding.ts'
import type { Examination } from './examine-host.ts'
import { clockComplaints, ownClockFindings } from './findings/clock.ts'
import { connectionComplaints } from './findings/connection.ts'
import { differenceFindings } from './findings/differences.ts'
import { diskComplaints } from './findings/disks.ts'
import { machineComplaints } from './findings/machine.ts'

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
  readonly connectMs: number
} & ({ readonly trouble: ConnectTrouble } | { readonly examination: Examination })

/** Findings of one host by itself, the gravest first. */
export function hostFindings(report: DoctorReport): Finding[] {
  const { host } = report
  const complaints = 'trouble' in report ? [connectComplaint(report.trouble)] : examinationComplaints(report)
  return sortByGravity(complaints.map((complaint) => ({ host, ...complaint })))
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
}: DoctorReport & { examination: Examination }): Complaint[] {
  const { facts, clock } = examination
  return [
    ...connectionComplaints(examination),
    ...(clock === undefined ? [] : clockComplaints(clock, facts?.timeService, facts?.system?.isRoot)),
    ...(facts === undefined ? [] : [...diskComplaints(facts), ...machineComplaints(facts, inventoryName)]),
  ]
}

/** If the hint ends in a command, that is the fix; the words before it say when to use it. */
function connectComplaint({ outcome, kind, phase, reason, hint }: ConnectTrouble): Complaint {
  const command = /: (ssh(?:-keygen|-copy-id)? .+)$/.exec(hint ?? '')?.[1]
  const word = kind === 'authentication' || kind === 'host-key' ? kind : outcome
  return {
    gravity: 'blocker',
    id: word,
    cause: `${outcome} (${phase}): ${reason}`,
    ...(command === undefined ? {} : { fix: { where: 'here', command } }),
    ...(hint === undefined ? {} : { hint }),
  }
}

export function sortByGravity<T extends { readonly gravity: Gravity }>(items: readonly T[]): T[] {
  return items.toSorted((one, other) => GRAVITIES.indexOf(one.gravity) - GRAVITIES.indexOf(other.gravity))
}
