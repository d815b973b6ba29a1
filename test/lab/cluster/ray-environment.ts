/**
 * A Python environment with Ray for the hosts of a lab: installed from PyPI once (a minute or two), then kept in the user's cache
 * under a name made of what it was made of. Hosts see it read-only in RAY_PLACE, which is where it was made: the programs of an
 * environment know their own path.
 */
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { PLAIN_ENVIRONMENT, runOrThrow } from './run.ts'

export const RAY_PLACE = '/mnt'
/** The environment of the hosts, as hosts.yaml names it. */
export const RAY_VENV = `${RAY_PLACE}/venv`

const REQUIREMENTS = join(import.meta.dirname, 'ray-requirements.txt')
const BUILD = join(import.meta.dirname, 'scripts', 'ray-environment.sh')
const BUILD_MS = 1_200_000

/** The directory to mount at RAY_PLACE, created if missing; others that need it meanwhile wait for the same build. */
export async function rayEnvironment(): Promise<string> {
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'muster-lab')
  mkdirSync(cache, { recursive: true })
  const python = await runOrThrow(['python3', '-VV'])
  const hash = createHash('sha256').update(python).update(readFileSync(REQUIREMENTS)).update(readFileSync(BUILD))
  const directory = join(cache, `ray-${hash.digest('hex').slice(0, 12)}`)
  if (existsSync(directory)) return directory
  const build = ['unshare', '--mount', 'sh', BUILD, directory, RAY_PLACE, REQUIREMENTS]
  const unlessBuilt = [
    'sh',
    '-c',
    'directory=$1; shift; [ -e "$directory" ] || exec "$@"',
    'build',
    directory,
    ...build,
  ]
  // pip finds the index, and whom to trust, in the user's environment; Python is the one that hosts see, too.
  const environment = { ...process.env, PATH: PLAIN_ENVIRONMENT.PATH }
  await runOrThrow(['flock', join(cache, 'lock-ray'), ...unlessBuilt], { timeoutMs: BUILD_MS, environment })
  return directory
}
