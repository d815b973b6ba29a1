/** Hosts with what is placed on them, as a table: each device a box, cores and memory as bars. Pure. */
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { type Letters, signOf } from '../../ui/packing/blocks.ts'
import { formatBar, formatTable, type TableOutput } from '../output/table.ts'

const DEVICE_CELLS = 8
const BAR_CELLS = 12

export function formatHosts(
  title: string,
  hosts: readonly { readonly host: PackedHost; readonly trouble: string }[],
  out: TableOutput,
  letters?: Letters,
): string {
  const rows = hosts.map(({ host, trouble }) => [
    host.name,
    host.devices.map((shares) => formatDevice(shares, letters)).join(' ') || '-',
    coresOf(host),
    memoryOf(host),
    host.jobs.map((job) => signOf(job, letters)).join(''),
    printable(trouble),
  ])
  return formatTable([title, 'GPUS', 'CORES', 'MEMORY', 'OF', ''], rows, out)
}

function coresOf({ cpuUsedMilli: used, cpuMilli: all, unknown }: PackedHost): string {
  if (unknown?.includes('cores')) return '-'
  return `${formatBar([[part(used, all), '█']], BAR_CELLS)} ${used / 1000}/${all / 1000}`
}

function memoryOf({ memoryUsedBytes: used, memoryBytes: all, unknown }: PackedHost): string {
  if (unknown?.includes('memory')) return '-'
  return `${formatBar([[part(used, all), '█']], BAR_CELLS)} ${formatBytes(used)} / ${formatBytes(all)}`
}

function formatDevice(shares: PackedHost['devices'][number], letters: Letters | undefined): string {
  const parts = shares.map(({ job, milli }) => [milli / 1000, signOf(job, letters)] as const)
  return `[${formatBar(parts, DEVICE_CELLS)}]`
}

function part(used: number, all: number): number {
  return all === 0 ? 0 : Math.min(1, used / all)
}
