/**
 * Jobs that Slurm would lose if its configuration were replaced now. Pure. Measured with Slurm 22.05:
 * - A partition goes: its jobs fail, also those that wait.
 * - A node goes: jobs on it fail, and waiting jobs that ask for it or exclude it.
 * - A node gets another number of cores: jobs on it begin again, or fail if they may not. The same with GPUs, for jobs that have one.
 * - No node has GPUs any more: a job that waits for GPUs starts without.
 * - Another host becomes the controller: it knows no jobs.
 * Another amount of memory, the first shards and additional nodes change nothing for jobs.
 */
import { counted } from '../../base/counted.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { knownValue } from '../kernel/fact.ts'
import { type Finding, onHost } from '../kernel/finding.ts'
import type { LiveJob, SlurmView } from './cluster-fact.ts'
import type { Kept } from './daemons.ts'
import type { FactsOfSlurmHost, FactsOfSlurmHosts } from './facts.ts'
import {
  controllerIn,
  DEFAULT_PARTITION,
  FILES,
  gresTypes,
  groundIn,
  hostOf,
  nodesIn,
  partitionIn,
  type SlurmHost,
  type SlurmWanted,
  STARTED,
  slurmConf,
} from './wanted.ts'

const WORDS = { gpu: 'GPUs', shard: 'shards' } as const

export const LOST_JOBS = 'lost-jobs'

/** Named in a sentence. */
const MOST_JOBS = 8

/** Only blockers, for a host whose configuration changes or whose slurmctld restarts. */
export function findingsOfLostJobs(
  wanted: SlurmWanted,
  { host, isController }: SlurmHost,
  facts: FactsOfSlurmHosts,
): readonly Finding[] {
  const own = facts.get(host)?.facts
  const text = textIn(own?.slurm)
  const controller = wanted.spec.cluster?.controller ?? ''
  const before = text === undefined ? undefined : controllerIn(text)
  const isMoved = before !== undefined && before !== controller
  const view = knownValue((isMoved || isController ? own : facts.get(controller)?.facts)?.cluster)
  if (view?.kind === 'answers') {
    if (isMoved) return lostIn(host, view, () => `${controller}, the new controller, does not know what ${before} runs`)
    return isController ? lostIn(host, view, (job) => whyLost(wanted, view, job)) : []
  }
  const steps = (knownValue(own?.daemons)?.processes ?? []).filter(({ daemon }) => daemon === 'slurmstepd')
  if (steps.length > 0 && !hasState(wanted, facts)) {
    const cause = `${counted(steps.length, 'step')} of jobs would be killed: ${controller} has no state of them any more`
    const hint = 'Wait until the jobs have ended, or end them: muster down slurm.'
    return [{ host, gravity: 'blocker', id: LOST_JOBS, cause, hint }]
  }
  if (text === undefined) return []
  const why = isController ? whyUnclear(wanted, textIn(own?.started) ?? text) : undefined
  if (why !== undefined) {
    const cause = `cannot determine which jobs would be lost: slurmctld does not answer, and ${why}`
    const hint =
      'Undo that in hosts.yaml, run muster up slurm, and do it again once the jobs have ended. If no job runs:'
    const fix = onHost(`sudo rm -f ${STARTED} ${FILES.slurm}`)
    return [{ host, gravity: 'blocker', id: LOST_JOBS, cause, hint, fix }]
  }
  if (steps.length === 0 || groundIn(text, host) === groundIn(slurmConf(wanted), host)) return []
  const cause = `${counted(steps.length, 'step')} of jobs may be lost: slurmctld does not answer`
  const hint = `Start slurmctld on ${before ?? controller} first, or wait until the jobs have ended.`
  return [{ host, gravity: 'blocker', id: LOST_JOBS, cause, hint }]
}

/** Undefined: slurmctld does not answer. */
export const keptJobs = (
  { spec: { partition = DEFAULT_PARTITION }, hosts }: SlurmWanted,
  view: SlurmView | undefined,
): Kept | undefined =>
  view?.kind === 'answers'
    ? { partition, nodes: hosts.flatMap(({ host, isNode }) => (isNode ? [host] : [])) }
    : undefined

/** What slurmctld knows of jobs is on its host. */
export const hasState = ({ spec }: SlurmWanted, facts: FactsOfSlurmHosts): boolean =>
  knownValue(facts.get(spec.cluster?.controller ?? '')?.facts.machine)?.hasPlace !== false

/** What a slurm.conf has that the wanted one has not. */
function whyUnclear(wanted: SlurmWanted, before: string): string | undefined {
  const partition = partitionIn(before)
  if (partition !== partitionIn(slurmConf(wanted))) return `the partition ${partition} goes`
  const gone = nodesIn(before).filter((name) => hostOf(wanted, name)?.isNode !== true)
  return gone.length === 0 ? undefined : `${foldHostSet(gone)} ${gone.length === 1 ? 'leaves' : 'leave'} the cluster`
}

function textIn(fact: FactsOfSlurmHost['slurm'] | undefined): string | undefined {
  const file = knownValue(fact)
  return file?.kind === 'file' ? file.text : undefined
}

type Whole = Extract<SlurmView, { kind: 'answers' }>
type Ground = Pick<LiveJob, 'isWaiting' | 'partitions' | 'nodes' | 'gres'>

function lostIn(host: string, view: Whole, whyOf: (ground: Ground) => string | undefined): readonly Finding[] {
  if (view.jobs === undefined) {
    const nodes = view.nodes.map(({ name }) => name)
    const gres = (['gpu', 'shard'] as const).filter((kind) => view.nodes.some((node) => node[`${kind}s`] > 0))
    const why = whyOf({ isWaiting: false, partitions: [...view.partitions.keys()], nodes, gres })
    const hint = 'squeue says nothing there; what it prints tells why.'
    const cause = `cannot determine which jobs would be lost: ${why}`
    return why === undefined ? [] : [{ host, gravity: 'blocker', id: LOST_JOBS, cause, hint, fix: onHost('squeue') }]
  }
  const groups = Map.groupBy(view.jobs, whyOf)
  return [...groups].flatMap(([why, jobs]): readonly Finding[] => {
    if (why === undefined) return []
    const isFew = jobs.length <= MOST_JOBS
    const names = jobs.slice(0, MOST_JOBS).map(({ id, name, user }) => `${id} (${name}, of ${user})`)
    const detail = [...names, ...(isFew ? [] : [`${jobs.length - MOST_JOBS} more`])].join(', ')
    const cause = `${counted(jobs.length, 'job')} would be lost: ${why}`
    const hint = `Wait until ${jobs.length === 1 ? 'it has' : 'they have'} ended, or cancel ${jobs.length === 1 ? 'it' : 'them'}${isFew ? ':' : ' with scancel.'}`
    const fix = isFew ? { fix: onHost(`sudo scancel ${jobs.map(({ id }) => id).join(' ')}`) } : {}
    return [{ host, gravity: 'blocker', id: LOST_JOBS, cause, detail, hint, ...fix }]
  })
}

function whyLost(wanted: SlurmWanted, view: Whole, { isWaiting, partitions, nodes, gres }: Ground): string | undefined {
  const partition = wanted.spec.partition ?? DEFAULT_PARTITION
  const other = partitions.find((name) => name !== partition)
  if (other !== undefined) return `the partition ${other} goes`
  const gone = nodes.find((name) => hostOf(wanted, name)?.isNode !== true)
  if (gone !== undefined) return `${gone} leaves the cluster`
  const kinds = gresTypes(wanted)
  const missing = gres.find((kind) => !kinds.includes(kind))
  if (missing !== undefined) return `no node has ${WORDS[missing]} any more`
  if (isWaiting) return undefined
  for (const { name, cpus, gpus, shards } of view.nodes) {
    const node = nodes.includes(name) ? hostOf(wanted, name) : undefined
    if (node === undefined) continue
    const another = (what: string) => `${name} gets another number of ${what}`
    if (node.cpus !== cpus) return another('cores')
    if (node.gpus !== gpus && gres.length > 0) return another(WORDS.gpu)
    if (node.gpus * (wanted.spec.shardsPerGpu ?? 0) !== shards && gres.includes('shard')) return another(WORDS.shard)
  }
  return undefined
}
