/**
 * `mkdir -p` with a truthful error. Node's own recursive one says of a read-only file system that nothing is there, and never
 * returns from one that has no room for directories at all (/proc).
 */
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** `mode`: of directories that are made. @throws what the system says */
export function makeDirectories(path: string | Buffer, mode = 0o777): void {
  const make = () => {
    try {
      mkdirSync(path, mode)
    } catch (error) {
      if ((error as { code?: string }).code !== 'EEXIST' || !statSync(path).isDirectory()) throw error
    }
  }
  try {
    make()
  } catch (error) {
    const parent = parentOf(path)
    if ((error as { code?: string }).code !== 'ENOENT' || parent.length === path.length) throw error
    makeDirectories(parent, mode)
    make()
  }
}

function parentOf(path: string | Buffer): string | Buffer {
  if (typeof path === 'string') return dirname(path)
  return Buffer.from(dirname(path.toString('latin1')), 'latin1')
}
