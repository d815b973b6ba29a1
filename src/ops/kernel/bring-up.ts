/** Gathers the facts of all areas with one command a host, and verifies areas. apply.ts applies a plan. */
import { defined } from '../../base/defined.ts'
import type { Area, AreaFacts, HostExec } from './area.ts'
import { type AnyFacts, type Away, type FactSet, type Gathered, gatherFacts, type HostFacts } from './fact.ts'
import type { Finding } from './finding.ts'
import type { OpsHosts, ScriptOptions } from './host-port.ts'
import { changesText, type Operation, type Verdict } from './operation.ts'
import type { Plan } from './plan.ts'
import { findSharedHomes, type Home, homeFact, type ProofOptions } from './shared-home.ts'

/** By the name of the area. */
export type FactsByArea = ReadonlyMap<string, AreaFacts<AnyFacts>>

/** A fact that the kernel itself needs. */
const HOME = 'kernel.home'

export type AreaFactsOptions = Pick<ProofOptions, 'newName'> & {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  /** Random letters and digits that frame the answers of hosts. */
  readonly mark: string
  now(): number
  /** Multiplies all time limits, for slow hosts; default 1. */
  readonly limitFactor?: number
  /** Runs before a host is asked; the host is not asked if this finds it away. */
  before?(host: string): Promise<Away | undefined>
  /** As soon as a host has answered. */
  onHost?(gathered: Gathered): void
}

/**
 * Asks all hosts of these areas in parallel, each once (twice if some facts need root and others do not), and those that may
 * share a home once more.
 */
export async function gatherAreaFacts(areas: readonly Area[], options: AreaFactsOptions): Promise<FactsByArea> {
  const names = new Set(areas.flatMap(({ hosts }) => hosts))
  const factsByArea = new Map(
    areas.map(({ name }) => [name, { facts: new Map<string, HostFacts<AnyFacts>>(), away: new Map<string, string>() }]),
  )
  const homes = new Map<string, Home>()
  await Promise.all(
    [...names].flatMap((host) =>
      [false, true].map(async (asRoot) => {
        const asking = areas.filter((area) => area.hosts.includes(host) && area.areFactsRoot === asRoot)
        if (asking.length === 0) return
        const sets = asking.map((area) => [area.name, area.factsOf(host)] as const)
        const gathered =
          (await options.before?.(host)) ??
          (await gatherFacts(
            options.hosts,
            host,
            { ...joined(sets), ...(asRoot || names.size < 2 ? {} : { [HOME]: homeFact }) },
            { ...options, asRoot },
          ))
        const home = gathered.kind === 'facts' ? gathered.facts.facts[HOME] : undefined
        if (home?.kind === 'known') homes.set(host, home.value as Home)
        options.onHost?.(gathered)
        for (const [name, set] of sets) {
          const areaFacts = factsByArea.get(name)
          if (gathered.kind === 'away') areaFacts?.away.set(host, gathered.reason)
          else areaFacts?.facts.set(host, partOf(gathered.facts, name, set))
        }
      }),
    ),
  )
  // In the order of hosts.yaml, not in that of the answers.
  const known = [...names].flatMap((host) => {
    const home = homes.get(host)
    return home === undefined ? [] : [[host, home] as const]
  })
  const sharedHomes = await findSharedHomes(new Map(known), options)
  return new Map(
    areas.map(({ name, hosts }) => [
      name,
      { ...sorted(factsByArea.get(name) ?? { facts: new Map(), away: new Map() }, hosts), sharedHomes },
    ]),
  )
}

function joined(sets: readonly (readonly [string, FactSet<AnyFacts>])[]): FactSet<AnyFacts> {
  return Object.fromEntries(
    sets.flatMap(([area, set]) => Object.entries(set).map(([name, fact]) => [`${area}.${name}`, fact])),
  )
}

function partOf({ facts, ...times }: HostFacts<AnyFacts>, area: string, set: FactSet<AnyFacts>): HostFacts<AnyFacts> {
  const own = Object.keys(set).map((name) => [name, facts[`${area}.${name}`]])
  return { ...times, facts: defined(Object.fromEntries(own)) }
}

function sorted({ facts, away }: AreaFacts<AnyFacts>, hosts: readonly string[]): AreaFacts<AnyFacts> {
  const inOrder = <T>(map: ReadonlyMap<string, T>) =>
    new Map(hosts.flatMap((host) => (map.has(host) ? [[host, map.get(host) as T] as const] : [])))
  return { facts: inOrder(facts), away: inOrder(away) }
}

export type AreaFinding = Finding & { readonly area: string }

/** Verifies the real state on the hosts where this plan has nothing to do, all areas in parallel. */
export async function verifyAreas(
  areas: readonly Area[],
  factsByArea: FactsByArea,
  plan: Plan,
  { hosts, signal, limitFactor = 1 }: Pick<AreaFactsOptions, 'hosts' | 'signal' | 'limitFactor'>,
  depth: 'status' | 'check',
): Promise<readonly AreaFinding[]> {
  const hostExec: HostExec = {
    exec: (host: string, script: string, options: Omit<ScriptOptions, 'signal'>) =>
      hosts.exec(host, script, { ...options, timeoutMs: options.timeoutMs * limitFactor, signal }),
  }
  const found = await Promise.all(
    areas.map(async (area) => {
      const areaFacts = factsByArea.get(area.name)
      const open = new Set(
        plan.operations.flatMap((operation) =>
          operation.area === area.name && decisive(operation, plan).kind !== 'nothing' ? [operation.host] : [],
        ),
      )
      const facts = new Map([...(areaFacts?.facts ?? [])].filter(([host]) => !open.has(host)))
      if (areaFacts === undefined || facts.size === 0) return []
      return (await area.verify({ ...areaFacts, facts }, hostExec, depth)).map((finding) => ({
        ...finding,
        area: area.name,
      }))
    }),
  )
  return found.flat()
}

/** Where another host takes care of it, the verdict of that one: only if it has nothing to do, there is something to verify. */
function decisive({ id, verdict }: Operation, { operations }: Plan): Verdict {
  if (verdict.kind !== 'nothing' || verdict.keeper === undefined) return verdict
  const deciding = `${id.slice(0, id.lastIndexOf('@'))}@${verdict.keeper}`
  return operations.find((each) => each.id === deciding)?.verdict ?? verdict
}

/** The status of each host in each area, from a plan for `up` and the findings of verification. Pure. */

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
  const own = plan.operations
    .filter((operation) => operation.area === area && operation.host === host)
    .map((operation) => ({ ...operation, verdict: decisive(operation, plan), shown: operation.verdict }))
  const blocking = own.flatMap(({ verdict }) =>
    verdict.kind === 'blocked' ? verdict.findings.map((finding) => ({ ...finding, area, host })) : [],
  )
  const seen = findings.filter((finding) => finding.area === area && finding.host === host)
  const of = (status: StatusWord, because: readonly string[]): HostStatus => {
    return { area, host, status, because, findings: [...blocking, ...seen], ...defined({ atMs }) }
  }
  const causes = (all: readonly Finding[]) => all.map(({ cause }) => cause)
  if (blocking.length > 0) return of('blocked', causes(blocking))
  const open = own.flatMap(({ verdict, title, shown }) =>
    verdict.kind === 'steps'
      ? [
          {
            title,
            ...verdict,
            what: verdict.state === 'missing' ? '' : changesText(verdict.steps),
            where: shown.kind === 'nothing' ? `; ${shown.because}` : '',
          },
        ]
      : [],
  )
  if (open.length > 0) {
    const isMissing = open.every(({ state }) => state === 'missing')
    const reasons = open.map(
      ({ title, state, because, what, where }) => `${title}: ${because ?? `${state}${what}`}${where}`,
    )
    return of(isMissing ? 'missing' : 'differs', [...new Set(reasons)])
  }
  const broken = seen.filter(({ gravity }) => gravity === 'blocker')
  if (broken.length > 0) return of('failed', causes(broken))
  const reasons = own.flatMap(({ verdict }) => (verdict.kind === 'nothing' ? [verdict.because] : []))
  return of('good', reasons)
}
