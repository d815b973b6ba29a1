/** Code that V8 has compiled once, kept for the next start: half of what a short command costs is loading the program. */
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'
import { foreignDirectory } from './base/foreign-place.ts'

/** In `$XDG_CACHE_HOME/muster` (`~/.cache/muster`), if it is the user's alone: whoever writes there decides what runs here. */
export function keepCompiledCode({ XDG_CACHE_HOME: cache, HOME: home } = process.env): void {
  const parent = cache?.startsWith('/') ? cache : home?.startsWith('/') ? join(home, '.cache') : undefined
  if (parent === undefined || process.getuid === undefined) return
  const directory = join(parent, 'muster')
  try {
    // Not recursively: Node never ends where a file system answers strangely.
    for (const each of [parent, directory]) if (!existsSync(each)) mkdirSync(each, { mode: 0o700 })
    const { uid, mode } = statSync(directory)
    const isOwn = uid === process.getuid() && (mode & 0o022) === 0
    // Nor may others put another directory in its place.
    if (isOwn && foreignDirectory(parent) === undefined) enableCompileCache(join(directory, 'compiled'))
  } catch {
    // Then it is compiled anew.
  }
}
