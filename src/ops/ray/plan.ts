/** The plan of Ray for each host, from what is declared and the facts: the head first, then its workers in parallel. Pure. */
import { defined } from '../../base/defined.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { AreaFacts, ChangeDirection } from '../kernel/area.ts'
import { knownValue } from '../kernel/fact.ts'
import { type Finding, formatFinding } from '../kernel/finding.ts'
import {
  blocked,
  blockedBy,
  nothing,
  type Operation,
  operationId,
  type Step,
  steps,
  type Verdict,
} from '../kernel/operation.ts'
import { ipOf } from './addresses.ts'
import type { FactsOfHosts, RayFacts } from './facts.ts'
import { findingsBeforeStart } from './findings.ts'
import { environmentOperations } from './findings-of-installation.ts'
import {
  earlyStartScript,
  START_TIMEOUT_MS,
  STOP_TIMEOUT_MS,
  startArguments,
  startCheck,
  startLack,
  startScript,
  stopScript,
} from './node-scripts.ts'
import { inside, tokenSteps } from './place.ts'
import { processesOf, type RayProcess } from './processes.ts'
import { stopUnit, type UnitState, unitName } from './unit.ts'
import type { ClusterNode } from './usage.ts'
import { dashboardAddress, nodesOf, type RayNode, type RayWanted } from './wanted.ts'

const AREA = 'ray'
const nodeId = ({ host, isHead }: RayNode): string => operationId(AREA, isHead ? 'head' : 'worker', host)

export function planRay(
  direction: ChangeDirection,
  wanted: RayWanted,
  { facts }: AreaFacts<RayFacts>,
  before: readonly Operation[] = [],
): Operation[] {
  const headIp = ipOf(wanted.head, facts)
  const operations = direction === 'up' ? planUp(wanted, facts, headIp, before) : planDown(wanted, facts, headIp)
  return operations.filter(({ host }) => facts.has(host))
}

function operation(node: RayNode, after: readonly string[], verdict: Verdict): Operation {
  const { host, isHead } = node
  return { id: nodeId(node), area: AREA, host, title: isHead ? 'head node' : 'worker node', after, verdict }
}

function planUp(
  wanted: RayWanted,
  facts: FactsOfHosts,
  headIp: string | undefined,
  before: readonly Operation[],
): Operation[] {
  const made = ({ host }: RayNode) =>
    environmentOperations(host, before).flatMap((each) =>
      each.host !== host && each.verdict.kind === 'steps' ? each.id : [],
    )
  const start = startOf(wanted, wanted.head, { facts, headIp, before, isAnew: false })
  const head = operation(wanted.head, made(wanted.head), start)
  const isHeadStarted = head.verdict.kind === 'steps'
  const workers = wanted.workers.flatMap((worker) => {
    const verdict = startOf(wanted, worker, { facts, headIp, before, isAnew: isHeadStarted })
    const after = [head.id, ...made(worker)]
    return isHeadStarted ? aside(worker, verdict, after) : [operation(worker, after, verdict)]
  })
  return [head, ...workers]
}

/** If the head restarts, the old nodes of workers are stopped meanwhile. */
function aside(worker: RayNode, verdict: Verdict, after: readonly string[]): Operation[] {
  const stop = verdict.kind === 'steps' ? verdict.steps.find(({ id }) => id === stopId(worker)) : undefined
  if (verdict.kind !== 'steps' || stop === undefined) return [operation(worker, after, verdict)]
  const old = {
    ...operation(worker, [], { ...verdict, steps: [stop] }),
    id: operationId(AREA, 'old-node', worker.host),
    title: 'node of the old head',
  }
  const rest = verdict.steps.filter((step) => step !== stop)
  return [old, operation(worker, [...after, old.id], steps('missing', rest))]
}

type Start = {
  readonly facts: FactsOfHosts
  readonly headIp: string | undefined
  /** Of other areas. */
  readonly before: readonly Operation[]
  /** The head restarts, and the new one does not know the old nodes. */
  readonly isAnew: boolean
}

function startOf(wanted: RayWanted, node: RayNode, { facts, headIp, before, isAnew }: Start): Verdict {
  const ip = ipOf(node, facts)
  const running = runningOn(wanted, node, facts, headIp)
  const missing = isAnew ? undefined : findingOfMissingFacts(wanted, node, facts, running)
  if (missing !== undefined) return blockedBy(missing)
  const wrong = isAnew ? ['the head restarts'] : differences(wanted, node, facts, ip, running)
  if (wrong.length === 0) {
    const isReported = knownValue(facts.get(wanted.head.host)?.facts.cluster)?.kind === 'answers'
    return nothing(`its node runs at ${ip}${isReported ? ' and is alive' : ', and the head did not report more'}`)
  }
  const foreign = findingOfOwner(node, facts, running)
  const findings = [...(foreign === undefined ? [] : [foreign]), ...findingsBeforeStart(wanted, node, facts, before)]
  const blockers = findings.filter(({ gravity }) => gravity === 'blocker')
  if (blockers.length > 0 || ip === undefined || headIp === undefined) {
    if (blockers.length > 0) return { kind: 'blocked', findings }
    return blocked(node.host, 'no-head', `the address of ${wanted.head.host} is unknown`)
  }
  // Without details, which may differ at the next check.
  const risks = findings.map(({ detail: _, ...each }) => `~ risk: ${formatFinding(each)}`)
  const start = startStep(wanted, node, ip, headIp, risks)
  const starts = [...tokenSteps(wanted, node, nodeId(node)), start]
  const hasUnit = unitOf(node, facts)?.kind === 'there'
  if (running.length === 0 && !hasUnit) return steps('missing', starts)
  const isOrphaned = isAnew
    ? !hasGcs(wanted, facts, headIp)
    : node.isHead && !running.some(({ role }) => role === 'gcs')
  const stop = stopStep(wanted, node, headIp, running, { hasUnit, isOrphaned, because: wrong })
  return { kind: 'steps', state: 'differs', because: wrong.join(', '), steps: [stop, ...starts] }
}

/** Only the login's own processes can be stopped. */
function findingOfOwner({ host }: RayNode, facts: FactsOfHosts, running: readonly RayProcess[]): Finding | undefined {
  const uid = knownValue(facts.get(host)?.facts.space)?.uid
  const other = running.find((process) => process.uid !== uid)
  if (uid === undefined || uid === 0 || other === undefined) return undefined
  const cause = 'this cluster belongs to another user, and only that user can stop it'
  const detail = `${other.program}, process ${other.pid}, belongs to user ${other.uid}`
  return { host, gravity: 'blocker', id: 'other-user', cause, detail }
}

function runningOn(
  wanted: RayWanted,
  { host }: RayNode,
  facts: FactsOfHosts,
  headIp: string | undefined,
): readonly RayProcess[] {
  const processes = knownValue(facts.get(host)?.facts.processes) ?? []
  return headIp === undefined ? [] : processesOf(processes, headIp, wanted.port)
}

function hasGcs(wanted: RayWanted, facts: FactsOfHosts, headIp: string | undefined): boolean {
  return runningOn(wanted, wanted.head, facts, headIp).some(({ role }) => role === 'gcs')
}

/**
 * A finding if the state of a running cluster is unknown: nothing is stopped because its dashboard is slow or dead. The finding is
 * about the head; its workers stay as they are.
 */
function findingOfMissingFacts(
  wanted: RayWanted,
  { host, isHead }: RayNode,
  facts: FactsOfHosts,
  running: readonly RayProcess[],
): Finding | undefined {
  const own = facts.get(host)?.facts
  const hasRoles = (['gcs', 'raylet'] as const).every((role) => running.some((process) => process.role === role))
  if (own === undefined || !isHead || !hasRoles) return undefined
  const asked =
    own.cluster.kind === 'known' ? own.cluster.value : { kind: 'silent' as const, because: own.cluster.because }
  if (asked.kind === 'answers') return undefined
  const asking = `the head runs, and its dashboard at ${dashboardAddress(wanted)}`
  const more =
    asked.kind === 'foreign'
      ? {
          cause: `${asking} gives no answer: ${asked.because}`,
          hint: 'If the cluster has its own token, set ray.auth: token.',
        }
      : {
          cause: `${asking} does not answer`,
          detail: asked.because,
          hint: 'If this persists, restart the cluster, which stops everything that runs on it: muster ray down, muster ray up.',
        }
  return { host, gravity: 'blocker', id: 'no-dashboard', ...more }
}

function unitOf({ host }: RayNode, facts: FactsOfHosts): UnitState | undefined {
  return knownValue(facts.get(host)?.facts.unit)
}

/** Why the node must be (re)started; empty if it is as declared. */
function differences(
  wanted: RayWanted,
  node: RayNode,
  facts: FactsOfHosts,
  ip: string | undefined,
  running: readonly RayProcess[],
): readonly string[] {
  const unit = unitOf(node, facts)
  const raylets = running.filter(({ role }) => role === 'raylet')
  const gcs = running.some(({ role }) => role === 'gcs')
  if (running.length === 0) return ['it is not running']
  if (node.isHead && !gcs) return ['its GCS is gone, and these processes are left']
  if (raylets.length === 0)
    return [node.isHead ? 'it has no raylet' : 'its raylet is gone, and these processes are left']
  if (raylets.length > 1)
    return [`${raylets.length} raylets serve this cluster, and its resources count ${raylets.length} times`]
  if (wanted.isSupervised && unit?.kind === 'absent')
    return ['systemd does not supervise it, but hosts.yaml asks for that']
  if (!wanted.isSupervised && unit?.kind === 'there')
    return ['systemd supervises it, but hosts.yaml does not ask for that']
  const cluster = knownValue(facts.get(wanted.head.host)?.facts.cluster)
  if (cluster?.kind !== 'answers') return []
  const listed = cluster.nodes.find(({ isAlive, ...other }) => isAlive && other.ip === ip)
  if (listed === undefined) {
    const dead = cluster.nodes.findLast((other) => other.ip === ip)
    return [
      `the head does not count it as alive${dead === undefined || dead.message === '' ? '' : `: ${dead.message}`}`,
    ]
  }
  return [...differencesOfResources(node, listed), ...differencesOfLabels(node, listed)]
}

function differencesOfLabels({ labels }: RayNode, listed: ClusterNode): readonly string[] {
  return Object.entries(labels).flatMap(([name, label]) => {
    const there = listed.labels.get(name)
    if (there === label) return []
    return [`it has ${there === undefined ? 'no label' : `the label ${name}=${there}, and not`} ${name}=${label}`]
  })
}

function differencesOfResources(node: RayNode, { resources }: ClusterNode): readonly string[] {
  const wanted = { ...node.custom, ...defined({ CPU: node.cpu, GPU: node.gpu, memory: node.memoryBytes }) }
  return Object.entries(wanted).flatMap(([name, amount]) => {
    // Ray does not list a resource with amount 0.
    const there = resources[name] ?? 0
    return there === amount ? [] : [`it has ${there} ${name}, and ${amount} is declared`]
  })
}

function startStep(wanted: RayWanted, node: RayNode, ip: string, headIp: string, risks: readonly string[]): Step {
  const words = startArguments(wanted, node, ip, headIp).map(shellQuote)
  const early = earlyStartScript(wanted, node, ip, headIp)
  return {
    id: `${nodeId(node)}/start`,
    title: node.isHead ? 'start the head' : `join ${headIp}:${wanted.port}`,
    changes: [`+ ray ${words.join(' ')}`, ...(wanted.isSupervised ? [`+ ${unitName(wanted)}`] : []), ...risks],
    run: {
      script: startScript(wanted, node, ip, headIp),
      timeoutMs: START_TIMEOUT_MS,
      isProof: node.isHead,
      ...defined({ early }),
    },
    check: { script: startCheck(wanted, node, headIp), lack: startLack(wanted, node, headIp) },
    undo: { title: 'end what it started', script: stopNode(wanted, node, headIp, false), timeoutMs: STOP_TIMEOUT_MS },
  }
}

/** Also removes the unit, which would restart it. */
function stopNode(wanted: RayWanted, node: RayNode, headIp: string, isOrphaned: boolean): string {
  const { port, tempDirectory } = wanted
  const script = stopScript({ ip: headIp, port, tempDirectory, isOrphaned })
  return stopUnit(wanted) + inside(wanted, node, script)
}

type StopOptions = { readonly hasUnit: boolean; readonly isOrphaned: boolean; readonly because: readonly string[] }

const stopId = (node: RayNode): string => `${nodeId(node)}/stop`

function stopStep(
  wanted: RayWanted,
  node: RayNode,
  headIp: string,
  running: readonly RayProcess[],
  { hasUnit, isOrphaned, because }: StopOptions,
): Step {
  return {
    id: stopId(node),
    title: 'end the processes of this cluster',
    changes: [
      ...because.map((line) => `~ ${line}`),
      ...(hasUnit ? [`- ${unitName(wanted)}`] : []),
      ...running.map(({ pid, program }) => `- ${program} (process ${pid})`),
      ...(running.some(({ role }) => role === 'raylet') ? ['- what runs on this node'] : []),
    ],
    run: { script: stopNode(wanted, node, headIp, isOrphaned), timeoutMs: STOP_TIMEOUT_MS },
  }
}

/** Workers first, so that none of them waits for its head. */
function planDown(wanted: RayWanted, facts: FactsOfHosts, headIp: string | undefined): Operation[] {
  return nodesOf(wanted)
    .toReversed()
    .map((node) =>
      operation(
        node,
        node.isHead ? wanted.workers.filter(({ host }) => facts.has(host)).map(nodeId) : [],
        stopOf(wanted, node, facts, headIp),
      ),
    )
}

function stopOf(wanted: RayWanted, node: RayNode, facts: FactsOfHosts, headIp: string | undefined): Verdict {
  const processes = facts.get(node.host)?.facts.processes
  if (processes?.kind === 'unknown') {
    return blocked(node.host, 'unknown', `cannot list the processes: ${processes.because}`)
  }
  const running = runningOn(wanted, node, facts, headIp)
  const hasUnit = unitOf(node, facts)?.kind === 'there'
  if (headIp === undefined || (running.length === 0 && !hasUnit)) {
    return nothing('this cluster is not running')
  }
  const foreign = findingOfOwner(node, facts, running)
  if (foreign !== undefined) return blockedBy(foreign)
  return steps('differs', [stopStep(wanted, node, headIp, running, { hasUnit, isOrphaned: false, because: [] })])
}
