/** Where dashboards run, as far as Muster knows: the head of Ray in hosts.yaml, and jobs of the queue that run one. */

import { isPort } from '../../inventory/host-name.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { loadInventory } from '../../inventory/load-inventory.ts'
import { section as raySection } from '../../ops/ray/section.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { type Dashboard, type KnownDashboard, usualPortOf } from '../../ssh/forward/plan-forwards.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { inventorySource } from '../connect/endpoints.ts'
import { readQueue } from '../job/open-queue.ts'

const PROGRAMS: readonly (readonly [RegExp, Dashboard])[] = [
  [/(?:^|[\s/])optuna-dashboard(?=\s|$)/, 'optuna'],
  [/(?:^|[\s/])tensorboard(?=[\s.]|$)/, 'tensorboard'],
  [/(?:^|[\s/])jupyter(?:-lab|-notebook|-server)?(?=\s|$)/, 'jupyter'],
]

/** A queue that cannot be read is none: a forward needs no queue. */
export async function readKnownDashboards(
  options: GlobalOptions,
  context: CliContext,
): Promise<readonly KnownDashboard[]> {
  try {
    using queue = await readQueue(options, context)
    return knownDashboards(queue.inventory, queue.store.active())
  } catch {
    return knownDashboards(await loadInventory(inventorySource(options, context)), [])
  }
}

/** The newest job comes first. Pure. */
export function knownDashboards(inventory: Inventory, active: readonly Job[]): readonly KnownDashboard[] {
  return [...rayHead(inventory), ...active.toReversed().flatMap(dashboardOfJob)]
}

function rayHead(inventory: Inventory): readonly KnownDashboard[] {
  const ray = sectionOf(inventory, raySection)
  if (ray === undefined) return []
  const { head, dashboardHost, dashboardPort } = ray
  const isEverywhere = ['0.0.0.0', '::', '127.0.0.1', 'localhost'].includes(dashboardHost)
  const address = isEverywhere ? 'localhost' : dashboardHost
  return [{ name: 'ray', host: head, at: { address, port: dashboardPort } }]
}

/** A program that is told its port in another way than `--port` has its usual one. */
function dashboardOfJob({ id, spec, state }: Job): readonly KnownDashboard[] {
  const name = PROGRAMS.find(([pattern]) => pattern.test(spec.command))?.[1]
  // An engine has its jobs on machines that may be no hosts of hosts.yaml.
  if (name === undefined || state.kind !== 'running' || spec.engine !== undefined) return []
  const given = Number(/\s--?port[= ](\d{1,5})(?=\s|$)/.exec(spec.command)?.[1])
  const port = isPort(given) ? given : usualPortOf(name)
  return state.places
    .slice(0, 1)
    .map(({ host }) => ({ name, host, at: { address: 'localhost', port }, source: `job ${id}` }))
}
