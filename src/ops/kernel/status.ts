/** The status of each host in each area, from a plan for `up` and the findings of verification. Pure. */
import type { Area } from './area.ts'
import type { AreaFinding, FactsByArea } from './bring-up.ts'
import type { Plan } from './plan.ts'

export type StatusWord =
  /** As declared, and verified. */
  | 'good'
  /** Nothing of it exists. */
  | 'missing'
  /** It exists, but differs from what is declared. */
  | 'differs'
  /** As declared, but it does not work. */
  | 'failed'
  /** `up` cannot bring it up now. */
  | 'blocked'
  /** The host did not answer. */
  | 'away'
  /** The host was not asked: there is no connection to it. */
  | 'unasked'

export type HostStatus = {
  readonly area: string
  readonly host: string
  readonly status: StatusWord
  /** The reasons, from operations and findings; not printable yet. */
  readonly because: readonly string[]
  readonly findings: readonly AreaFinding[]
  /** When the host was asked; undefined: it was not asked, or did not answer. */
  readonly atMs?: number
}

/** Of every area, in the order of its hosts. `plan` is one for `up`. */
export function statusesOf(
  areas: readonly Area[],
  factsByArea: FactsByArea,
  plan: Plan,
  findings: readonly AreaFinding[],
): HostStatus[] {
  return areas.flatMap((area) => area.hosts.map((host) => statusOf(area.name, host, factsByArea, plan, findings)))
}

function statusOf(
  area: string,
  host: string,
  factsByArea: FactsByArea,
  plan: Plan,
  findings: readonly AreaFinding[],
): HostStatus {
  const areaFacts = factsByArea.get(area)
  const away = areaFacts?.away.get(host)
  if (away !== undefined) return { area, host, status: 'away', because: [away], findings: [] }
  const atMs = areaFacts?.facts.get(host)?.atMs
  const own = plan.operations.filter((operation) => operation.area === area && operation.host === host)
  const blocking = own.flatMap(({ verdict }) =>
    verdict.kind === 'blocked' ? verdict.findings.map((finding) => ({ ...finding, area })) : [],
  )
  const seen = findings.filter((finding) => finding.area === area && finding.host === host)
  const of = (status: StatusWord, because: readonly string[]): HostStatus => ({
    area,
    host,
    status,
    because,
    findings: [...blocking, ...seen],
    ...(atMs === undefined ? {} : { atMs }),
  })
  if (blocking.length > 0)
    return of(
      'blocked',
      blocking.map(({ cause }) => cause),
    )
  const open = own.flatMap(({ verdict, title }) => (verdict.kind === 'steps' ? [{ title, ...verdict }] : []))
  if (open.length > 0) {
    const isMissing = open.every(({ state }) => state === 'missing')
    return of(
      isMissing ? 'missing' : 'differs',
      open.map(({ title, state, because }) => `${title}: ${because ?? state}`),
    )
  }
  const broken = seen.filter(({ gravity }) => gravity === 'blocker')
  if (broken.length > 0)
    return of(
      'failed',
      broken.map(({ cause }) => cause),
    )
  return of(
    'good',
    own.flatMap(({ verdict }) => (verdict.kind === 'nothing' ? [verdict.because] : [])),
  )
}
