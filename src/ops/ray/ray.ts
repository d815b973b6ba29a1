/** Ray: a head and its workers, as hosts.yaml declares them, and findings about a running cluster. */
import { counted } from '../../base/counted.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { type AreaFacts, defineArea } from '../kernel/area.ts'
import { knownValue } from '../kernel/fact.ts'
import type { Finding } from '../kernel/finding.ts'
import { ipOf } from './addresses.ts'
import { type RayFacts, rayFacts } from './facts.ts'
import { findingsOfDeclaration } from './findings.ts'
import { finding } from './findings-of-installation.ts'
import { planRay } from './plan.ts'
import { processesOf } from './processes.ts'
import type { UnitState } from './unit.ts'
import { nodesOf, type RayNode, type RayWanted, wantedRay } from './wanted.ts'

export async function verifyRay(wanted: RayWanted, { facts }: AreaFacts<RayFacts>): Promise<readonly Finding[]> {
  const cluster = knownValue(facts.get(wanted.head.host)?.facts.cluster)
  if (cluster?.kind !== 'answers') return []
  const { head } = wanted
  const alive = cluster.nodes.filter(({ isAlive }) => isAlive)
  const declared = new Set(nodesOf(wanted).flatMap((node) => ipOf(node, facts) ?? node.ip ?? []))
  const sum = (name: string) => alive.reduce((total, { resources }) => total + (resources[name] ?? 0), 0)
  const totals = [
    `${sum('CPU')} CPU`,
    ...(sum('GPU') > 0 ? [`${sum('GPU')} GPU`] : []),
    `${formatBytes(sum('memory'))} memory`,
  ]
  const strangers = alive.filter(({ ip }) => !declared.has(ip))
  const ghosts = nodesOf(wanted).filter((node) => alive.filter(({ ip }) => ip === ipOf(node, facts)).length > 1)
  return [
    ...findingsOfDeclaration(wanted),
    ...(wanted.hasToken && !cluster.hasToken ? [withoutToken(head)] : []),
    ...ghosts.map((node) =>
      finding(node, 'note', 'counted-twice', 'the head counts it twice: Ray notices a dead raylet after 15 s'),
    ),
    ...[...facts].flatMap(([name, own]) => findingsOfUnit(name, knownValue(own.facts.unit))),
    ...strangers.map(({ ip }) =>
      finding(head, 'note', 'other-node', `the cluster has a node at ${ip} that hosts.yaml does not name`),
    ),
    ...[...facts].flatMap(([host, own]) => {
      const ip = ipOf(wanted.head, facts) ?? ''
      const all = knownValue(own.facts.processes) ?? []
      const ours = new Set(processesOf(all, ip, wanted.port))
      const others = new Set(all.flatMap((each) => (ours.has(each) || each.role === 'helper' ? [] : [each.cluster])))
      return [...others].map((other) =>
        finding({ host }, 'note', 'other-cluster', `the Ray cluster at ${other} runs here, too`),
      )
    }),
    finding(head, 'note', 'cluster', `${counted(alive.length, 'node is', 'nodes are')} alive, Ray ${cluster.ray}`, {
      detail: totals.join(', '),
    }),
  ]
}

function findingsOfUnit(host: string, unit: UnitState | undefined): Finding[] {
  if (unit?.kind !== 'there') return []
  const detail = `${unit.state}, ${unit.enabled}`
  if (unit.state === 'active' && unit.enabled === 'enabled') {
    return [finding({ host }, 'note', 'kept', 'systemd keeps it', { detail })]
  }
  const cause = 'its systemd unit was changed: it may not restart, or not start at boot'
  const hint = 'To create it again: muster ray restart (a worker), or muster ray down and up.'
  return [finding({ host }, 'risk', 'not-kept', cause, { detail, hint })]
}

function withoutToken(head: RayNode): Finding {
  const cause =
    'it was started without the token that hosts.yaml declares: anyone who can reach it can run programs on all nodes'
  const hint =
    'A cluster gets its token when it starts. To restart it, which stops everything that runs on it: muster ray down, muster ray up.'
  return finding(head, 'risk', 'no-token', cause, { hint })
}

export { left } from './left.ts'

export const area = defineArea<RayWanted, RayFacts>({
  name: 'ray',
  wantedOf: wantedRay,
  hostsOf: (wanted) => nodesOf(wanted).map(({ host }) => host),
  factsOf: rayFacts,
  plan: planRay,
  verify: verifyRay,
})
