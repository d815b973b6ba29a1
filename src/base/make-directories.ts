/** `mkdir -p` with a correct error: Node's own is wrong for a read-only file system, and never returns from /proc. */
import { mkdirSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** `mode`: of new directories. @throws the error of the system */
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
