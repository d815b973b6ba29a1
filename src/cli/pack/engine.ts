/** What an engine's cluster has and who holds it, for `muster pack`: with real devices, and other people's jobs as one. */

import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { whenText } from '../../base/time-text.ts'
import { fileTitle } from '../../inventory/inventory.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import { jobsInEngine } from '../../scheduler/jobs/orders.ts'
import { lettersOf } from '../../scheduler/jobs/packing.ts'
import { signOf } from '../../ui/packing/blocks.ts'
import { enginePicture, isWaiting } from '../../ui/packing/engine-picture.ts'
import { LOOSE_JOB } from '../../ui/packing/ray-picture.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/verb.ts'
import { openEngines } from '../job/engines.ts'
import { connectHosts } from '../job/hosts.ts'
import type { OpenQueue } from '../job/open-queue.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatHosts } from './host-table.ts'

const MOST_WAITING = 20

/** The exit code. */
export async function showEngine(
  name: string,
  { inventory, store }: OpenQueue,
  options: GlobalOptions,
  context: CliContext,
): Promise<number> {
  const { stdout, stderr, signal } = context
  const title = placeTitle(enginePlace(name))
  using engines = await openEngines(inventory, context)
  using hosts = await connectHosts(inventory, options, context)
  const usage = (await engines.get(name)?.usage?.(hosts.ops, signal)) ?? `${fileTitle(inventory)} does not declare it`
  if (typeof usage === 'string') {
    stderr.write(`muster: cannot ask ${title}: ${printable(usage)}\n`)
    return EXIT.unreachable
  }
  const jobOf = jobsInEngine(store.id, name, store.active())
  const { hosts: nodes, down, own, others, jobs, note } = enginePicture(usage, title, jobOf)
  const waiting = jobs.filter(isWaiting)
  if (options.json) {
    for (const node of nodes)
      stdout.write(jsonLine({ type: 'node', engine: name, ...node, trouble: down[node.name] ?? null }, context))
    for (const { startS, ...job } of usage.jobs) {
      const expected = startS === undefined ? {} : { expected: new Date(startS * 1000).toISOString() }
      const number = (job.isOwn && jobOf(job.name)) || null
      stdout.write(jsonLine({ type: 'placement', engine: name, ...job, ...expected, job: number }, context))
    }
    if (note !== undefined) stderr.write(`muster: ${title}: ${printable(note)}\n`)
    return EXIT.ok
  }
  const letters = lettersOf(own)
  const table = formatHosts(
    `${title.toUpperCase()} NODE`,
    nodes.map((host) => ({ host, trouble: down[host.name] ?? '' })),
    stdout,
    letters,
  )
  const lines = [
    ...(note === undefined ? [] : [note]),
    ...own.map((job) => `${letters.get(job)} ${job} ${store.get(job)?.spec.name ?? ''}`),
    ...(others > 0 ? [`${signOf(LOOSE_JOB)} ${counted(others, 'other job')}`] : []),
    ...waiting.slice(0, MOST_WAITING).map(({ name, why, expectedMs }) => {
      const when = expectedMs === undefined ? '' : `, expected ${whenText(expectedMs, context.now())}`
      return `waits: ${name}: ${why}${when}`
    }),
    ...(waiting.length > MOST_WAITING ? [`${waiting.length - MOST_WAITING} more wait.`] : []),
  ]
  stdout.write(`\n${table}${lines.map((line) => `${printable(line)}\n`).join('')}`)
  return EXIT.ok
}
