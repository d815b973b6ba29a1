/** The jobs of the queue that run on what `down` takes away, for the person who is asked. */
import { existsSync } from 'node:fs'
import { messageOf } from '../../base/errors.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Area } from '../../ops/kernel/area.ts'
import { operationId } from '../../ops/kernel/operation.ts'
import type { Plan } from '../../ops/kernel/plan.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { isActive, type Job } from '../../scheduler/jobs/job.ts'
import { JobStore } from '../../scheduler/jobs/store.ts'
import type { CliContext } from '../command-line/verb.ts'
import { queuePath } from '../job/open-queue.ts'

const MOST_NAMED = 20
/** What an area may call the operation without which its engine has nothing. */
const HEADS = ['head', 'controller']

/** A sentence each; none unless something is taken away. A queue that cannot be read does not keep `down` from working. */
export function jobsAtStake(
  plan: Plan,
  areas: readonly Area[],
  inventory: Inventory,
  context: CliContext,
): readonly string[] {
  const path = queuePath(inventory, context)
  if (plan.direction !== 'down' || !existsSync(path)) return []
  try {
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
  active: readonly Job[],
): readonly string[] {
  const changed = operations.filter(({ verdict }) => verdict.kind === 'steps')
  const used = new Set(areas.flatMap(({ name, isUsedByJobs }) => (isUsedByJobs ? [name] : [])))
  const losses = Map.groupBy(
    changed.filter(({ area }) => used.has(area)),
    ({ host }) => host,
  )
  const sentences = active.flatMap((job): string[] => {
    if (!isActive(job.state)) return []
    const name = `job ${job.id} (${job.spec.name})`
    const { engine } = job.spec
    if (engine !== undefined) {
      const title = placeTitle(enginePlace(engine))
      const nodes = changed.flatMap(({ area, host }) => (area === engine ? [host] : []))
      if (nodes.length === 0) return []
      const hasHead = changed.some(({ id, host }) => HEADS.some((name) => id === operationId(engine, name, host)))
      if (!hasHead) return [`${name} runs on ${title}, and may run on ${foldHostSet(nodes)}`]
      return [
        job.state.kind === 'starting'
          ? `${name} waits in ${title}, which ends`
          : `${name} runs on ${title}, and ends with it`,
      ]
    }
    const hosts = [...new Set(job.state.places.map(({ host }) => host))].filter((host) => losses.has(host))
    if (hosts.length === 0) return []
    const areas = [...new Set(hosts.flatMap((host) => losses.get(host) ?? []).map(({ area }) => area))]
    return [`${name} runs on ${foldHostSet(hosts)}, and may use what is removed there (${areas.join(', ')})`]
  })
  const rest = sentences.length - MOST_NAMED
  return rest > 0 ? [...sentences.slice(0, MOST_NAMED), `${rest} more jobs run there: muster job list`] : sentences
}
