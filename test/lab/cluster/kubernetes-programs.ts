/** Kubernetes' programs and kwok, which plays nodes: built from Go modules once, then kept in the user's cache. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildOnce, cachePath } from './cache.ts'

const BUILD = join(import.meta.dirname, 'scripts', 'kubernetes.sh')
const SOURCE = join(import.meta.dirname, 'kubernetes', 'programs')

/** The directory with `bin`. If it is missing, the first caller builds it and the others wait. */
export async function kubernetesPrograms(): Promise<string> {
  const directory = kubernetesDirectory()
  // Go finds its proxy in the user's environment.
  return await buildOnce(directory, 'lock-kubernetes', ['sh', BUILD, directory, SOURCE], process.env)
}

/** Where the programs are, or will be. */
export function kubernetesDirectory(): string {
  const files = readdirSync(SOURCE)
    .sort()
    .map((name) => readFileSync(join(SOURCE, name)))
  return cachePath('kubernetes', [readFileSync(BUILD), ...files])
}
