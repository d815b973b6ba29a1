/** What the disk itself takes to keep something: the peer of an acknowledged submission, in turns with it. */
import { closeSync, fdatasyncSync, fsyncSync, openSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'

/** About what a submission adds to the write-ahead log: five pages with their headers. */
const WRITE_BYTES = 20_600

export type DiskFigures = { readonly inPlace: number; readonly growing: number }

/** Writes a second, each synced before the next: into a file that has its size already, and to the end of one that grows. */
export function diskPerSecond(directory: string, count: number): DiskFigures {
  return { inPlace: perSecond(directory, count, true), growing: perSecond(directory, count, false) }
}

function perSecond(directory: string, count: number, hasSize: boolean): number {
  const path = join(directory, 'disk')
  const bytes = Buffer.alloc(WRITE_BYTES, 1)
  const file = openSync(path, 'w')
  try {
    if (hasSize) writeSync(file, Buffer.alloc(WRITE_BYTES * count), 0, WRITE_BYTES * count, 0)
    fsyncSync(file)
    const sinceMs = performance.now()
    for (let index = 0; index < count; index++) {
      writeSync(file, bytes, 0, WRITE_BYTES, index * WRITE_BYTES)
      fdatasyncSync(file)
    }
    return count / ((performance.now() - sinceMs) / 1000)
  } finally {
    closeSync(file)
    rmSync(path)
  }
}
