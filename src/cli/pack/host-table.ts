/** Hosts with what is placed on them, as a table: each device a box, cores and memory as bars. Pure. */
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { type Letters, signOf } from '../../ui/packing/blocks.ts'
import { fitsIn, formatBar, formatTable, type TableOutput, TERMINAL } from '../output/table.ts'

/** Of devices, and of bars; the first with which the table fits the terminal. */
const CELLS = [
  [8, 12],
  [4, 6],
  [2, 0],
] as const

export function formatHosts(
  title: string,
  hosts: readonly { readonly host: PackedHost; readonly trouble: string }[],
  out: TableOutput,
  letters?: Letters,
): string {
  const table = ([ofDevice, ofBar]: readonly [number, number], to: TableOutput): string => {
    const rows = hosts.map(({ host, trouble }) => [
      host.name,
      host.devices.map((shares) => formatDevice(shares, letters, ofDevice)).join(' ') || '-',
      coresOf(host, ofBar),
      memoryOf(host, ofBar),
      host.jobs.map((job) => signOf(job, letters)).join(''),
      printable(trouble),
    ])
    return formatTable([title, 'GPUS', 'CORES', 'MEMORY', 'OF', ''], rows, to)
  }
  const { isTTY, columns = 0 } = out
  if (isTTY !== true || columns === 0) return table(CELLS[0], out)
  const sizes = CELLS.find((own) => fitsIn(table(own, TERMINAL), columns))
  return table(sizes ?? CELLS[2], out)
}

function coresOf({ cpuUsedMilli: used, cpuMilli: all, unknown }: PackedHost, cells: number): string {
  if (unknown?.includes('cores')) return '-'
  return withBar(part(used, all), cells, `${used / 1000}/${all / 1000}`)
}

function memoryOf({ memoryUsedBytes: used, memoryBytes: all, unknown }: PackedHost, cells: number): string {
  if (unknown?.includes('memory')) return '-'
  return withBar(part(used, all), cells, `${formatBytes(used)} / ${formatBytes(all)}`)
}

const withBar = (used: number, cells: number, words: string): string =>
  cells === 0 ? words : `${formatBar([[used, '█']], cells)} ${words}`

function formatDevice(shares: PackedHost['devices'][number], letters: Letters | undefined, cells: number): string {
  const parts = shares.map(({ job, milli }) => [milli / 1000, signOf(job, letters)] as const)
  return `[${formatBar(parts, cells)}]`
}

function part(used: number, all: number): number {
  return all === 0 ? 0 : Math.min(1, used / all)
}
