/** What labs need and what takes minutes to make: made once, then kept in the user's cache under a name made of what it was made of. */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { runOrThrow } from './run.ts'

/** On a machine that is busy with other tests, what takes a minute on an idle one takes several. */
const BUILD_MS = 1_800_000

/** The path in the cache of `prefix`, a hash of `inputs` and `suffix`. */
export function cachePath(prefix: string, inputs: readonly (string | Buffer)[], suffix = ''): string {
  const hash = createHash('sha256')
  for (const input of inputs) hash.update(input)
  return join(cacheDirectory(), `${prefix}-${hash.digest('hex').slice(0, 12)}${suffix}`)
}

/** Runs `build`, which creates `path` as its last act, unless it exists. Others that need it meanwhile wait for the same build. */
export async function buildOnce(
  path: string,
  lock: string,
  build: readonly string[],
  environment?: NodeJS.ProcessEnv,
): Promise<string> {
  if (existsSync(path)) return path
  const unlessBuilt = ['sh', '-c', 'path=$1; shift; [ -e "$path" ] || exec "$@"', 'build', path, ...build]
  const options = { timeoutMs: BUILD_MS, ...(environment && { environment }) }
  await runOrThrow(['flock', join(cacheDirectory(), lock), ...unlessBuilt], options)
  return path
}

function cacheDirectory(): string {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'muster-lab')
  mkdirSync(cache, { recursive: true })
  return cache
}
