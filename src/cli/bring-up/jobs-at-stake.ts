/** The jobs of the queue that run on what `down` takes away, for the person who is asked. */
import { messageOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Area } from '../../ops/kernel/area.ts'
import { operationId } from '../../ops/kernel/operation.ts'
import type { Plan } from '../../ops/kernel/plan.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { isActive, isPlaced, type Job } from '../../scheduler/jobs/job.ts'
import { JobStore } from '../../scheduler/jobs/store.ts'
import type { CliContext } from '../command-line/verb.ts'
import { isQueueAt, queuePath } from '../job/open-queue.ts'

const MOST_NAMED = 20
/** What an area may call the operation without which its engine has nothing. */
const HEADS = ['head', 'controller']

/** What a job loses: as a verb of one, as that of many, and what both have in common. */
type Loss = readonly [one: string, many: string, rest: string]

/** Jobs with the same loss share a sentence; none unless something is taken away. A queue that cannot be read does not keep `down` from working. */
export function jobsAtStake(
  plan: Plan,
  areas: readonly Area[],
  inventory: Inventory,
  context: CliContext,
): readonly string[] {
  const path = queuePath(inventory, context)
  if (plan.direction !== 'down') return []
  try {
    if (!isQueueAt(path)) return []
    using store = new JobStore(path)
    return sentencesAbout(plan, areas, store.active())
  } catch (error) {
    return [`cannot determine which jobs of the queue run there: ${messageOf(error)}`]
  }
}

/** Pure. */
export function sentencesAbout(
  { operations }: Plan,
  areas: readonly Pick<Area, 'name' | 'isUsedByJobs'>[],
  jobs: readonly Job[],
): readonly string[] {
  const active = jobs.filter((job) => !isElsewhere(job, operations))
  const changed = operations.filter(({ verdict }) => verdict.kind === 'steps')
  const used = new Set(areas.flatMap(({ name, isUsedByJobs }) => (isUsedByJobs ? [name] : [])))
  const losses = Map.groupBy(
    changed.filter(({ area }) => used.has(area)),
    ({ host }) => host,
  )
  const hasHead = (engine: string) =>
    changed.some(({ id, host }) => HEADS.some((name) => id === operationId(engine, name, host)))
  const lossOf = ({ spec: { engine }, state }: Job): Loss | undefined => {
    if (!isActive(state)) return undefined
    if (engine !== undefined) {
      const title = placeTitle(enginePlace(engine))
      const nodes = changed.flatMap(({ area, host }) => (area === engine ? [host] : []))
      if (nodes.length === 0) return undefined
      const isWaiting = isPlaced(state)
      if (!hasHead(engine))
        return isWaiting
          ? [`waits in ${title}`, `wait in ${title}`, `, and may start on ${foldHostSet(nodes)}`]
          : [`runs on ${title}`, `run on ${title}`, `, and may run on ${foldHostSet(nodes)}`]
      return isWaiting
        ? [`waits in ${title}`, `wait in ${title}`, ', which ends']
        : [`runs on ${title}, and ends with it`, `run on ${title}, and end with it`, '']
    }
    const hosts = [...new Set(state.places.map(({ host }) => host))].filter((host) => losses.has(host))
    if (hosts.length === 0) return undefined
    const names = [...new Set(hosts.flatMap((host) => losses.get(host) ?? []).map(({ area }) => area))].join(', ')
    const on = foldHostSet(hosts)
    return [`runs on ${on}`, `run on ${on}`, `, and may use what is removed there (${names})`]
  }
  const known = active.flatMap((job) => {
    const loss = lossOf(job)
    return loss === undefined ? [] : [{ id: job.id, name: job.spec.name, loss }]
  })
  const sentences = [...Map.groupBy(known, ({ loss }) => loss.join('\n')).values()].flatMap((same) => {
    const [first] = same
    if (first === undefined) return []
    const [one, many, rest] = first.loss
    if (same.length === 1) return [`job ${first.id} (${first.name}) ${one}${rest}`]
    return [`jobs ${idsText(same)} ${many}${rest}`]
  })
  // The queue hears no more of them: it waits for an engine that does not answer.
  const orphans = active.filter(({ spec: { engine } }) => engine !== undefined && hasHead(engine))
  if (orphans.length > 0)
    sentences.push(`to take them out of the queue afterwards: muster job cancel --forget ${idsText(orphans)}`)
  const rest = sentences.length - MOST_NAMED
  return rest > 0 ? [...sentences.slice(0, MOST_NAMED), 'more jobs run there: muster job list'] : sentences
}

/** Its engine got it in a cluster with another head than that of the plan. */
function isElsewhere({ spec: { engine }, state }: Job, operations: Plan['operations']): boolean {
  if (engine === undefined || !isActive(state)) return false
  const heads = operations.flatMap(({ id, host }) => (id === operationId(engine, 'head', host) ? [host] : []))
  // As Ray says where it is: the host of its head, then its address.
  const isThere = (address?: string) => address === undefined || heads.some((host) => address.startsWith(`${host} (`))
  return heads.length > 0 && !state.places.some(({ address }) => isThere(address))
}

/** `1-3,7` */
const idsText = (jobs: readonly Pick<Job, 'id'>[]): string =>
  foldHostSet(jobs.map(({ id }) => String(id))).replaceAll(/[[\]]/g, '')
