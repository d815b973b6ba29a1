/** Whether Ray is installed on a node (or will be), is complete, and has the head's version. Pure. */
import { defined } from '../../base/defined.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { knownValue } from '../kernel/fact.ts'
import { complaint, type Finding, onHost } from '../kernel/finding.ts'
import type { Operation } from '../kernel/operation.ts'
import type { FactsOfHosts, Installed } from './facts.ts'
import { placeName } from './place.ts'
import type { RayNode, RayWanted } from './wanted.ts'

/** About the host of a node. */
export function finding({ host }: Pick<RayNode, 'host'>, ...words: Parameters<typeof complaint>): Finding {
  return { host, ...complaint(...words) }
}

export function findingsOfInstallation(
  wanted: RayWanted,
  node: RayNode,
  facts: FactsOfHosts,
  before: readonly Operation[],
): Finding[] {
  const installed = knownValue(facts.get(node.host)?.facts.installed)
  if (installed === undefined) return []
  const fate = fateOf(node, before)
  if (fate === 'made') {
    const doubt = findingOfSource(wanted, node, facts)
    if (doubt !== undefined) return [doubt]
  }
  if (installed.kind === 'absent') return fate === 'made' ? [] : [noRay(wanted, node, installed, fate)]
  const needs = [
    { isDeclared: wanted.hasToken, what: 'tokens', setting: 'one (ray.auth)', first: [2, 52] },
    { isDeclared: Object.keys(node.labels).length > 0, what: 'labels', setting: 'some (ray.labels)', first: [2, 49] },
  ] as const
  for (const { isDeclared, what, setting, first } of needs) {
    if (!isDeclared || !isBefore(installed.ray, first)) continue
    const cause = `Ray ${installed.ray} does not support ${what}, and hosts.yaml declares ${setting}`
    return [finding(node, 'blocker', `no-${what}`, cause, { fix: pipIn(node, `ray[default]>=${first.join('.')}`) })]
  }
  if (!node.isHead) return findingsOfVersions(wanted, node, facts, installed)
  if (installed.missing.length === 0) return []
  const cause = 'Ray is installed without [default]: no dashboard, no jobs'
  const more = { detail: `${installed.missing.join(', ')} missing`, fix: pipIn(node, `ray[default]==${installed.ray}`) }
  return [finding(node, 'blocker', 'no-dashboard', cause, more)]
}

/** What happens to a node's environment before the node starts. `unplanned`: this run does not handle it. */
type Fate = 'unplanned' | 'kept' | 'made' | 'blocked'

/** The operations for a host's environment, also those of the host that maintains a shared directory. */
export function environmentOperations(host: string, before: readonly Operation[]): readonly Operation[] {
  const on = (name: string) => before.filter((each) => each.area === 'env' && each.host === name)
  const own = on(host)
  const keepers = own.flatMap(({ verdict }) => (verdict.kind === 'nothing' ? (verdict.keeper ?? []) : []))
  return [...own, ...keepers.flatMap(on)]
}

function fateOf({ host }: RayNode, before: readonly Operation[]): Fate {
  const kinds = environmentOperations(host, before).map(({ verdict }) => verdict.kind)
  if (kinds.length === 0) return 'unplanned'
  if (kinds.includes('blocked')) return 'blocked'
  return kinds.includes('steps') ? 'made' : 'kept'
}

/** Whether an environment that is about to be made will have Ray, as far as what it is made from tells. */
function findingOfSource({ source }: RayWanted, node: RayNode, facts: FactsOfHosts): Finding | undefined {
  if (source === undefined) {
    const { from = node.host } = node.environment ?? {}
    if (from === node.host || knownValue(facts.get(from)?.facts.installed)?.kind !== 'absent') return undefined
    const cause = `ray will be missing in ${placeName(node.environment)}, as it is on ${from}`
    return finding(node, 'blocker', 'no-ray', cause, { hint: `Install it on ${from}, then: muster up.` })
  }
  if (source.namesRay !== 'no') return undefined
  const cause = `${source.path} does not name ray`
  if (source.isComplete) return finding(node, 'blocker', 'no-ray', cause, { hint: `${lineFor(node, source.path)}.` })
  const hint = `Unless another package needs it, the node cannot start. ${lineFor(node, source.path)}.`
  return finding(node, 'risk', 'no-ray', cause, { hint })
}

function noRay(
  { source }: RayWanted,
  node: RayNode,
  { hasPython }: Extract<Installed, { kind: 'absent' }>,
  fate: Fate,
): Finding {
  const { host, environment } = node
  const cause = `there is no ray in ${placeName(environment)}`
  const blocker = (more: Pick<Finding, 'fix' | 'hint'>) => finding(node, 'blocker', 'no-ray', cause, more)
  if (environment === undefined) {
    const hint = 'Install it, or set environment in hosts.yaml to the environment that has it.'
    return blocker({ fix: pipIn(node, 'ray[default]'), hint })
  }
  if (!hasPython && fate !== 'kept') {
    const line = source === undefined ? '' : ` Its source, ${source.path}, must name ray[default].`
    return blocker({ hint: `Create the environment first: muster up env.${line}` })
  }
  if (source !== undefined) return blocker({ hint: `${lineFor(node, source.path)}, then: muster up env.` })
  if (environment.from === host) return blocker({ fix: pipIn(node, 'ray[default]') })
  return blocker({ hint: `It follows ${environment.from}: install ray[default] there, then: muster up env.` })
}

function lineFor({ environment }: RayNode, path: string): string {
  if (environment?.kind === 'docker') return `Install ray[default] in ${path}`
  return environment?.kind === 'conda' ? `Add ray-default to ${path}` : `Add the line ray[default] to ${path}`
}

function isBefore(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number)
  return ownMajor < major || (ownMajor === major && ownMinor < minor)
}

/** Of the cluster that runs, else of what the head would start. */
function versionsOfHead({ head }: RayWanted, facts: FactsOfHosts): { ray: string; python?: string } | undefined {
  const own = facts.get(head.host)?.facts
  const cluster = knownValue(own?.cluster)
  const installed = knownValue(own?.installed)
  const files = installed?.kind === 'ray' ? installed : undefined
  if (cluster?.kind !== 'answers') return files
  return { ray: cluster.ray, ...defined({ python: cluster.python ?? files?.python }) }
}

function findingsOfVersions(
  wanted: RayWanted,
  node: RayNode,
  facts: FactsOfHosts,
  { ray, python }: Extract<Installed, { kind: 'ray' }>,
): Finding[] {
  const head = versionsOfHead(wanted, facts)
  if (head === undefined) return []
  const name = wanted.head.host
  if (ray !== head.ray) {
    const cause = `the Ray version differs from the one on ${name}, and the head would refuse the node`
    const detail = `${ray}, ${name} has ${head.ray}`
    return [finding(node, 'blocker', 'ray-version', cause, { detail, fix: pipIn(node, `ray[default]==${head.ray}`) })]
  }
  if (head.python === undefined || python === head.python) return []
  const isPatch = python.split('.').slice(0, 2).join('.') === head.python.split('.').slice(0, 2).join('.')
  if (isPatch && wanted.variables.RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL === 'minor') return []
  const cause = `the Python version differs from the one on ${name}, and the head would refuse the node`
  const hint = isPatch
    ? 'Create the environment with the same Python; or, from Ray 2.51 on, set ray.env: { RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL: minor }.'
    : 'Create the environment with the same Python.'
  return [finding(node, 'blocker', 'python-version', cause, { detail: `${python}, ${name} has ${head.python}`, hint })]
}

function pipIn({ environment }: RayNode, what: string) {
  const pip =
    environment?.kind === 'conda'
      ? `conda run -n ${shellQuote(environment.name)} pip`
      : `${environment?.kind === 'venv' ? `${environment.path}/bin/python` : 'python3'} -m pip`
  return onHost(`${pip} install ${shellQuote(what)}`)
}
