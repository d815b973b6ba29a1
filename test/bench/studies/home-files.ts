/** What trials write into a file of the same name in the home directories of their hosts. */
import { readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Place } from '../jobs/place.ts'

export function removeFromHomes({ homes }: Place, name: string): void {
  for (const home of homes) rmSync(join(home, name), { force: true })
}

export function linesOfHomes({ homes }: Place, name: string): readonly string[] {
  return homes.flatMap((home) => readIfAny(join(home, name)).split('\n').filter(Boolean))
}

function readIfAny(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}
