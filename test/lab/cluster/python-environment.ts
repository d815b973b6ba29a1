/**
 * Python environments for the hosts of a lab: installed from PyPI once, then kept in the user's cache under a name made of what
 * they were made of. Hosts see one of them read-only in ENVIRONMENT_PLACE, which is where it was made: the programs of an
 * environment know their own path.
 */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { buildOnce, cachePath } from './cache.ts'
import { PLAIN_ENVIRONMENT } from './run.ts'

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

/** The directory to mount at ENVIRONMENT_PLACE, created if missing; others that need it meanwhile wait for the same build. */
export async function pythonEnvironment(name: EnvironmentName): Promise<string> {
  const directory = environmentDirectory(name)
  const { imports, usesSystemPackages = false }: Environment = ENVIRONMENTS[name]
  const options = usesSystemPackages ? ['--system-site-packages'] : []
  const script = ['sh', BUILD, directory, ENVIRONMENT_PLACE, requirementsOf(name), imports, ...options]
  // pip finds the index, and whom to trust, in the user's environment; Python is the one that hosts see, too.
  const environment = { ...process.env, PATH: PLAIN_ENVIRONMENT.PATH }
  return await buildOnce(directory, `lock-${name}`, ['unshare', '--mount', ...script], environment)
}

/** Where the environment is, or will be. */
export function environmentDirectory(name: EnvironmentName): string {
  const { imports, usesSystemPackages }: Environment = ENVIRONMENTS[name]
  const files = [readFileSync(requirementsOf(name)), readFileSync(BUILD)]
  const packages = usesSystemPackages ? [outputOf('dpkg-query', '--show', 'python3-torch', 'libopenmpi3')] : []
  return cachePath(name, [...files, imports, outputOf('python3', '-VV'), ...packages])
}

function requirementsOf(name: EnvironmentName): string {
  return join(import.meta.dirname, 'python', `${name}.txt`)
}

function outputOf(program: string, ...args: readonly string[]): string {
  return spawnSync(program, args, { encoding: 'utf8', env: PLAIN_ENVIRONMENT }).stdout ?? ''
}
