/** `muster pack`: which job has which device, as a picture of the hosts, and of what Ray has placed. */

import { Option } from 'commander'
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { fileTitle } from '../../inventory/inventory.ts'
import { section as raySection } from '../../ops/ray/section.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { jobsInEngine } from '../../scheduler/jobs/orders.ts'
import { lettersOf, onRemovedHosts, packHosts, packingFigures } from '../../scheduler/jobs/packing.ts'
import { fewerGpusLines } from '../../scheduler/model/fewer-gpus.ts'
import type { CliContext, GlobalOptions, VerbCode } from '../command-line/verb.ts'
import { ENGINES } from '../job/engines.ts'
import { hostsOf, noticeChanged, type OpenQueue, readQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatHosts } from './host-table.ts'

type PackOptions = GlobalOptions & { readonly engine?: string }

export const verb: VerbCode = {
  define: (command) =>
    command.addOption(
      new Option('--engine <name>', 'show only what this engine placed').choices([
        'embedded',
        ...ENGINES.map(({ name }) => name),
      ]),
    ),
  help: `
Examples:
  muster pack                       draw each device as a box with the jobs in it
  muster pack --json
  muster pack --engine embedded     show the queue only, without asking any host

A letter is a job, as wide as its share of the device; · is free. If hosts.yaml declares a Ray cluster, Muster also asks its
head: there, a letter is a placement group, and * is outside any group. Ray does not report which device a bundle uses.
Of a Slurm cluster, Muster shows the nodes with the real devices of each job; there, * is somebody else's job. Of a
Kubernetes cluster it shows the same, but Kubernetes does not report which GPU a pod has.
`,
  async run(options: PackOptions, context: CliContext) {
    using queue = await readQueue(options, context)
    const { inventory } = queue
    const wants = (name: string) => options.engine === undefined || options.engine === name
    if (wants('embedded')) {
      noticeChanged(queue, context)
      showQueue(queue, options, context)
    }
    let code = 0
    for (const { name, isDeclared, showsUsage } of ENGINES)
      if (showsUsage && (options.engine === name || (wants(name) && isDeclared(inventory)))) {
        const { showEngine } = await import('./engine.ts')
        code = Math.max(code, await showEngine(name, queue, options, context))
      }
    if (!wants('ray') || (sectionOf(inventory, raySection) === undefined && options.engine !== 'ray')) return code
    const { askRay, showRay } = await import('./ray.ts')
    const snapshot = await askRay(options, context)
    // Groups of the queue's jobs are named after them.
    const jobOf = jobsInEngine(queue.store.id, 'ray', queue.store.active())
    return Math.max(
      code,
      showRay(snapshot, (group) => jobOf(group.name), options, context),
    )
  },
}

function showQueue(queue: OpenQueue, { json }: PackOptions, context: CliContext): void {
  const { stdout } = context
  const active = queue.store.active()
  const packed = packHosts(hostsOf(queue), active)
  const { down = {} } = queue.store.report() ?? {}
  if (json) {
    for (const host of packed)
      stdout.write(jsonLine({ type: 'host', ...host, trouble: down[host.name] ?? null }, context))
    return
  }
  const onHosts = active.filter(({ spec }) => spec.engine === undefined)
  const shown = new Set(packed.flatMap(({ jobs }) => jobs))
  const letters = lettersOf([...shown].toSorted((one, other) => one - other))
  stdout.write(
    formatHosts(
      'HOST',
      packed.map((host) => ({ host, trouble: down[host.name] ?? '' })),
      stdout,
      letters,
    ),
  )
  for (const { id, spec } of onHosts) {
    if (shown.has(id)) stdout.write(`${letters.get(id)} ${id} ${printable(spec.name)}\n`)
  }
  const { downMilli, strandedMilli } = packingFigures(packed, down)
  const waiting = queue.store.counts().get('queued') ?? 0
  const elsewhere = onRemovedHosts(active, packed).map(
    ({ job, hosts }) =>
      `Job ${job} runs on ${foldHostSet(hosts)}, which ${fileTitle(queue.inventory)} no longer declares.`,
  )
  const here = onHosts.length - elsewhere.length
  const lines = [
    `${counted(here, 'job is', 'jobs are')} on these hosts${withEngines(active)}, ${counted(waiting, 'waits', 'wait')}.`,
    ...elsewhere,
    ...(downMilli > 0 ? [`${freeGpus(downMilli)} free on hosts that are down.`] : []),
    ...(strandedMilli > 0 ? [`${freeGpus(strandedMilli)} free on hosts without a free core.`] : []),
    ...fewerGpusLines(packed.map((host) => ({ ...host, gpus: host.devices }))).map((line) => `${line}.`),
  ]
  stdout.write(`\n${lines.join('\n')}\n`)
}

const freeGpus = (milli: number): string => counted(milli / 1000, 'GPU is', 'GPUs are')

function withEngines(active: readonly Job[]): string {
  const byEngine = Map.groupBy(active, ({ spec }) => spec.engine)
  const parts = [...byEngine].map(([engine, jobs]) =>
    engine === undefined
      ? ''
      : `, ${jobs.length} with ${placeTitle(enginePlace(engine))} (${jobs.map(({ id }) => id).join(', ')})`,
  )
  return parts.join('')
}
