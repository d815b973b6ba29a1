/** `muster pack`: who is placed where, as a picture of the hosts of this cluster, and of what Ray has handed out. */
import { type Command, Option } from 'commander'
import { printable } from '../../base/printable.ts'
import type { PlacementGroup } from '../../ops/ray/usage.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { letterOf, packHosts, packingFigures } from '../../scheduler/jobs/packing.ts'
import { type CliContext, EXIT, type Outcome } from '../command-line/context.ts'
import { hostsOf } from '../job/hosts-seen.ts'
import { type JobOptions, lookAtQueue, type OpenQueue } from '../job/open-queue.ts'
import { formatHosts } from './host-table.ts'

type PackOptions = JobOptions & { readonly engine?: 'embedded' | 'ray' }

const EXAMPLES = `
Each device is a box; a letter is a job, as often as its share of the device is wide, · is free. Where hosts.yaml declares a Ray
cluster its head is asked, too: a letter is a placement group then, * what is in none. Ray does not tell which device a bundle has.

Examples:
  muster pack --json
  muster pack --engine embedded     the queue alone; asks nobody
`

export function registerPack(program: Command, context: CliContext, outcome: Outcome): void {
  const pack = program
    .command('pack')
    .description('which job is on which host and device, and which bundle of Ray on which node')
    .addOption(new Option('--engine <name>', 'only what this one has placed').choices(['embedded', 'ray']))
    .addHelpText('after', EXAMPLES)
    .action(async () => {
      outcome.exitCode = await showPacking(pack.optsWithGlobals<PackOptions>(), context)
    })
}

async function showPacking(options: PackOptions, context: CliContext): Promise<number> {
  using queue = await lookAtQueue(options, context)
  if (options.engine !== 'ray') showQueue(queue, options, context)
  if (options.engine === 'embedded' || (queue.inventory.ray === undefined && options.engine !== 'ray')) return EXIT.ok
  const { lookAtRay, showRay } = await import('./ray.ts')
  const sight = await lookAtRay(options, context)
  return sight === undefined ? EXIT.ok : showRay(sight, (group) => jobOf(group, queue), options, context)
}

/** Groups of the queue's jobs are named after them. */
function jobOf({ name }: PlacementGroup, { store }: OpenQueue): number | undefined {
  const words = name.startsWith(`${store.id}-`) ? name.slice(store.id.length + 1) : ''
  const [, id] = /^(\d+)-\d+-0$/.exec(words) ?? []
  return id === undefined ? undefined : Number(id)
}

function showQueue(queue: OpenQueue, { json }: PackOptions, { stdout }: CliContext): void {
  const active = queue.store.active()
  const packed = packHosts(hostsOf(queue), active)
  const { down = {} } = queue.store.report() ?? {}
  if (json) {
    for (const host of packed)
      stdout.write(`${JSON.stringify({ type: 'host', ...host, trouble: down[host.name] ?? null })}\n`)
    return
  }
  const onHosts = active.filter(({ spec }) => spec.engine === undefined)
  const shown = new Set(packed.flatMap(({ jobs }) => jobs))
  stdout.write(
    formatHosts(
      'HOST',
      packed.map((host) => ({ host, trouble: down[host.name] ?? '' })),
    ),
  )
  for (const { id, spec } of onHosts) {
    if (shown.has(id)) stdout.write(`${letterOf(id)} ${id} ${printable(spec.name)}\n`)
  }
  const { downMilli, strandedMilli } = packingFigures(packed, down)
  const waiting = queue.store.counts().get('queued') ?? 0
  const lines = [
    `${onHosts.length} ${onHosts.length === 1 ? 'job is' : 'jobs are'} on these hosts${withEngines(active)}, ${waiting} wait.`,
    ...(downMilli > 0 ? [`${downMilli / 1000} GPUs are free on hosts that are down.`] : []),
    ...(strandedMilli > 0 ? [`${strandedMilli / 1000} GPUs are free where no core is.`] : []),
  ]
  stdout.write(`\n${lines.join('\n')}\n`)
}

function withEngines(active: readonly Job[]): string {
  const byEngine = Map.groupBy(active, ({ spec }) => spec.engine)
  const parts = [...byEngine].map(([engine, jobs]) =>
    engine === undefined
      ? ''
      : `, ${jobs.length} with ${placeTitle(enginePlace(engine))} (${jobs.map(({ id }) => id).join(', ')})`,
  )
  return parts.join('')
}
