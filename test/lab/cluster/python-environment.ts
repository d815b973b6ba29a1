/**
 * Python environments for the hosts of a lab: installed from PyPI once, then kept in the user's cache under a name made of what
 * they were made of. Hosts see one of them read-only in ENVIRONMENT_PLACE, which is where it was made: the programs of an
 * environment know their own path.
 */
import { spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { PLAIN_ENVIRONMENT, runOrThrow } from './run.ts'

/** `imports`: Python code that fails when the environment is not usable. */
type Environment = { readonly imports: string; readonly usesSystemPackages?: boolean }

/** Each has a list of requirements, python/NAME.txt: everything that is installed, with its version. */
const ENVIRONMENTS = {
  /** Ray alone, which the tests of Muster's own Ray clusters need. */
  ray: { imports: 'import ray, aiohttp' },
  /** Optuna with what its samplers need, except torch for the GPSampler. */
  optuna: { imports: 'import optuna, cmaes, scipy' },
  /** Ray with Tune, Train, RLlib and Optuna, and Debian's torch: its own torch would take 3 GB. */
  'ray-libraries': { imports: 'import ray.tune, ray.train.torch, ray.rllib, optuna', usesSystemPackages: true },
  tensorflow: { imports: 'import tensorflow' },
  /** With Debian's torch. */
  'di-engine': { imports: 'import ding.entry.cli_ditask, redis', usesSystemPackages: true },
  /** Compiled against Debian's torch and Open MPI. */
  horovod: { imports: 'import horovod.torch', usesSystemPackages: true },
} satisfies Readonly<Record<string, Environment>>

export type EnvironmentName = keyof typeof ENVIRONMENTS

/** What the heavy tests need besides what all tests do. */
export const HEAVY_ENVIRONMENTS: readonly EnvironmentName[] = ['ray-libraries', 'tensorflow', 'di-engine', 'horovod']

export const ENVIRONMENT_PLACE = '/mnt'
/** The environment of the hosts, as hosts.yaml names it. */
export const ENVIRONMENT = `${ENVIRONMENT_PLACE}/venv`

const BUILD = join(import.meta.dirname, 'scripts', 'python-environment.sh')
const BUILD_MS = 1_200_000

/** The directory to mount at ENVIRONMENT_PLACE, created if missing; others that need it meanwhile wait for the same build. */
export async function pythonEnvironment(name: EnvironmentName): Promise<string> {
  const directory = environmentDirectory(name)
  if (existsSync(directory)) return directory
  const { imports, usesSystemPackages = false }: Environment = ENVIRONMENTS[name]
  const options = usesSystemPackages ? ['--system-site-packages'] : []
  const build = [
    'unshare',
    '--mount',
    'sh',
    BUILD,
    directory,
    ENVIRONMENT_PLACE,
    requirementsOf(name),
    imports,
    ...options,
  ]
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
  mkdirSync(dirname(directory), { recursive: true })
  const lock = join(dirname(directory), `lock-${name}`)
  await runOrThrow(['flock', lock, ...unlessBuilt], { timeoutMs: BUILD_MS, environment })
  return directory
}

/** Where the environment is, or will be. */
export function environmentDirectory(name: EnvironmentName): string {
  const { imports, usesSystemPackages }: Environment = ENVIRONMENTS[name]
  const hash = createHash('sha256')
    .update(readFileSync(requirementsOf(name)))
    .update(readFileSync(BUILD))
    .update(imports)
  hash.update(outputOf('python3', '-VV'))
  if (usesSystemPackages) hash.update(outputOf('dpkg-query', '--show', 'python3-torch', 'libopenmpi3'))
  const cache = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'muster-lab')
  return join(cache, `${name}-${hash.digest('hex').slice(0, 12)}`)
}

function requirementsOf(name: EnvironmentName): string {
  return join(import.meta.dirname, 'python', `${name}.txt`)
}

function outputOf(program: string, ...args: readonly string[]): string {
  return spawnSync(program, args, { encoding: 'utf8', env: PLAIN_ENVIRONMENT }).stdout ?? ''
}
