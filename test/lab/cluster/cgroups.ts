/** Cgroups of containers in labs: they belong to the machine, so they do not end with a lab's processes. */
import { existsSync, readdirSync, readFileSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { waitUntil } from '../../support/wait-until.ts'
import { labsDirectory } from './directories.ts'

const PREFIX = 'muster-'

/** The name of the cgroup that holds those of the lab with this directory. */
export function cgroupOf(directory: string): string {
  return PREFIX + directory.slice(directory.lastIndexOf('/') + 1)
}

/** Once the lab's processes are gone. */
export async function removeCgroup(name: string): Promise<void> {
  // A process leaves its cgroup a moment after it is gone.
  await waitUntil(() => tryToRemove(name), `the removal of the cgroups ${name}`)
}

/** Removes those of labs that were left behind. */
export function sweepCgroups(): void {
  const names = hierarchies().flatMap((place) => readdirSync(place).filter((name) => name.startsWith(`${PREFIX}lab-`)))
  const labs = readdirSync(labsDirectory()).map(cgroupOf)
  for (const name of new Set(names)) if (!labs.includes(name)) tryToRemove(name)
}

/** Lines of proc(5), mounts. */
export function cgroupMounts(): { kind: string; place: string; options: string }[] {
  return readFileSync('/proc/mounts', 'utf8')
    .split('\n')
    .flatMap((line) => {
      const [, place = '', kind = '', options = ''] = line.split(' ')
      return /^cgroup2?$/.test(kind) ? [{ kind, place, options }] : []
    })
}

function hierarchies(): string[] {
  return cgroupMounts().map(({ place }) => place)
}

/** True when it is gone from all hierarchies. */
function tryToRemove(name: string): boolean {
  const left = hierarchies().map((place) => join(place, name))
  return left.filter((path) => existsSync(path) && !isRemoved(path)).length === 0
}

/** From the innermost on; false while processes are in one of them. */
function isRemoved(path: string): boolean {
  try {
    for (const entry of readdirSync(path, { withFileTypes: true }))
      if (entry.isDirectory() && !isRemoved(join(path, entry.name))) return false
    rmdirSync(path)
    return true
  } catch {
    return !existsSync(path)
  }
}
