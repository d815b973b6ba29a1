/** Kubernetes' programs and kwok, which plays nodes: built from Go modules once, then kept in the user's cache. */
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildOnce, cachePath, isBeingBuilt } from './cache.ts'

const BUILD = join(import.meta.dirname, 'scripts', 'kubernetes.sh')
const SOURCE = join(import.meta.dirname, 'kubernetes', 'programs')
const LOCK = 'lock-kubernetes'

/** The directory with `bin`. If it is missing, the first caller builds it and the others wait. */
export async function kubernetesPrograms(): Promise<string> {
  const directory = programsDirectory()
  // Go finds its proxy in the user's environment.
  return await buildOnce(directory, LOCK, ['sh', BUILD, directory, SOURCE], process.env)
}

/** False if they are neither there nor being built. */
export function hasKubernetesPrograms(): boolean {
  // In this order: what is being built is there before its lock is free.
  return isBeingBuilt(LOCK) || existsSync(programsDirectory())
}

function programsDirectory(): string {
  const files = readdirSync(SOURCE)
    .sort()
    .map((name) => readFileSync(join(SOURCE, name)))
  return cachePath('kubernetes', [readFileSync(BUILD), ...files])
}
