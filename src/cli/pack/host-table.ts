/** Hosts with what is placed on them, as a table: each device a box, cores and memory as bars. Pure. */
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { signOf } from '../../ui/packing/share-cells.ts'
import { formatBar } from '../simulate/picture.ts'
import { formatTable } from '../table.ts'

const DEVICE_CELLS = 8
const BAR_CELLS = 12

export function formatHosts(
  title: string,
  hosts: readonly { readonly host: PackedHost; readonly trouble: string }[],
): string {
  const rows = hosts.map(({ host, trouble }) => [
    host.name,
    host.devices.map((shares) => formatDevice(shares)).join(' ') || '-',
    `${formatBar([[part(host.cpuUsedMilli, host.cpuMilli), '█']], BAR_CELLS)} ${host.cpuUsedMilli / 1000}/${host.cpuMilli / 1000}`,
    `${formatBar([[part(host.memoryUsedBytes, host.memoryBytes), '█']], BAR_CELLS)} ${formatBytes(host.memoryUsedBytes)} / ${formatBytes(host.memoryBytes)}`,
    host.jobs.map(signOf).join(''),
    printable(trouble),
  ])
  return formatTable([title, 'GPUS', 'CORES', 'MEMORY', 'OF', ''], rows)
}

function formatDevice(shares: PackedHost['devices'][number]): string {
  const parts = shares.map(({ job, milli }) => [milli / 1000, signOf(job)] as const)
  return `[${formatBar(parts, DEVICE_CELLS)}]`
}

function part(used: number, all: number): number {
  return all === 0 ? 0 : Math.min(1, used / all)
}
