/** `muster pack`: who is placed where, as a picture of the hosts of this cluster. */
import type { Command } from 'commander'
import { formatBytes } from '../base/format-bytes.ts'
import { printable } from '../base/printable.ts'
import { letterOf, type PackedHost, packHosts } from '../scheduler/jobs/packing.ts'
import { type CliContext, EXIT, type Outcome } from './context.ts'
import { hostsOf } from './job/hosts-seen.ts'
import { type JobOptions, openQueue } from './job/open-queue.ts'
import { formatBar } from './simulate/picture.ts'
import { formatTable } from './table.ts'

const DEVICE_CELLS = 8
const BAR_CELLS = 12

export function registerPack(program: Command, context: CliContext, outcome: Outcome): void {
  const pack = program
    .command('pack')
    .description('which job is on which host and device')
    .addHelpText(
      'after',
      '\nEach device is a box; a letter is a job, as often as its share of the device is wide, · is free.\n\nExample:\n  muster pack --json\n',
    )
    .action(async () => {
      outcome.exitCode = await showPacking(pack.optsWithGlobals<JobOptions>(), context)
    })
}

async function showPacking(options: JobOptions, context: CliContext): Promise<number> {
  using queue = await openQueue(options, context)
  const active = queue.store.active()
  const packed = packHosts(hostsOf(queue), active)
  const { down = {} } = queue.store.view() ?? {}
  if (options.json) {
    for (const host of packed)
      context.stdout.write(`${JSON.stringify({ type: 'host', ...host, trouble: down[host.name] ?? null })}\n`)
    return EXIT.ok
  }
  const shown = new Set(packed.flatMap(({ jobs }) => jobs))
  const rows = packed.map((host) => [
    host.name,
    host.devices.map((shares) => formatDevice(shares)).join(' ') || '-',
    `${formatBar([[part(host.cpuUsedMilli, host.cpuMilli), '█']], BAR_CELLS)} ${host.cpuUsedMilli / 1000}/${host.cpuMilli / 1000}`,
    `${formatBar([[part(host.memoryUsedBytes, host.memoryBytes), '█']], BAR_CELLS)} ${formatBytes(host.memoryUsedBytes)} / ${formatBytes(host.memoryBytes)}`,
    down[host.name] === undefined ? '' : printable(down[host.name] ?? ''),
  ])
  context.stdout.write(formatTable(['HOST', 'GPUS', 'CORES', 'MEMORY', ''], rows))
  for (const { id, spec } of active) {
    if (shown.has(id)) context.stdout.write(`${letterOf(id)} ${id} ${printable(spec.name)}\n`)
  }
  const stranded = packed.reduce((sum, { strandedMilli }) => sum + strandedMilli, 0)
  const waiting = queue.store.counts().get('queued') ?? 0
  const lines = [
    `${active.length} ${active.length === 1 ? 'job is' : 'jobs are'} on these hosts, ${waiting} wait.`,
    ...(stranded > 0 ? [`${stranded / 1000} GPUs are free where no core is.`] : []),
  ]
  context.stdout.write(`\n${lines.join('\n')}\n`)
  return EXIT.ok
}

function formatDevice(shares: PackedHost['devices'][number]): string {
  const parts = shares.map(({ job, milli }) => [milli / 1000, letterOf(job)] as const)
  return `[${formatBar(parts, DEVICE_CELLS)}]`
}

function part(used: number, all: number): number {
  return all === 0 ? 0 : Math.min(1, used / all)
}
