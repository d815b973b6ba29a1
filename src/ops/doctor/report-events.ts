/** The doctor's report as data for scripts: an event for each finding and each host, and a summary. Text is as the host wrote it. */
import { type Finding, GRAVITIES, type Gravity } from '../kernel/finding.ts'
import type { DoctorReport } from './host-report.ts'

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
    standing: healthOf(report, findings),
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
