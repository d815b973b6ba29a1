/**
 * The one release of conda itself that can be had from PyPI, 4.3.16, in a directory that may be moved. It is of 2017: what its
 * Python had and today's has not is given back before it begins. It solves, fetches, links and relocates as conda does; of the
 * newer formats (.conda) it knows nothing.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

const CONDA = 'conda==4.3.16'
/** The system's own: Debian has what conda imports. */
const PYTHON = '/usr/bin/python3'
const MODULES = 'pycosat, ruamel.yaml, requests, cytoolz, setuptools, wheel, pip'

const OLD_PYTHON = `import collections, collections.abc, platform
for name in collections.abc.__all__: setattr(collections, name, getattr(collections.abc, name))
platform.linux_distribution = platform.dist = lambda *_, **__: ("", "", "")
`
/** Everything that conda takes for its own installation lies beside it. */
const RUN = `import os, sys, warnings
warnings.simplefilter("ignore")
here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "lib"), os.path.join(here, "old")]
sys.prefix = os.path.join(here, "root")
import sitecustomize
if sys.argv[1:2] == ["env"]:
    del sys.argv[1]
    from conda_env.cli.main import main
else:
    from conda.cli.main import main
sys.argv[0] = "conda"
sys.exit(main())
`

/** Why there can be none here; undefined: it can be. */
export function missingConda(): string | undefined {
  const { status } = spawnSync(PYTHON, ['-c', `import ${MODULES}`])
  return status === 0
    ? undefined
    : `${PYTHON} cannot import ${MODULES} (on Debian: python3-pycosat python3-ruamel.yaml …)`
}

/** `directory/bin/conda`; needs PyPI. */
export function installConda(directory: string): void {
  const old = join(directory, 'old')
  for (const name of ['bin', 'old', 'root/conda-meta']) mkdirSync(join(directory, name), { recursive: true })
  writeFileSync(join(directory, 'root', 'conda-meta', 'history'), '')
  writeFileSync(join(old, 'sitecustomize.py'), OLD_PYTHON)
  writeFileSync(join(directory, 'run.py'), RUN)
  writeFileSync(
    join(directory, 'bin', 'conda'),
    `#!/bin/sh\nd=\${0%/*}/..\nPYTHONPATH=$d/old exec ${PYTHON} -W ignore "$d/run.py" "$@"\n`,
  )
  chmodSync(join(directory, 'bin', 'conda'), 0o755)
  const pip = ['-m', 'pip', '--retries', '10', '--disable-pip-version-check', '--quiet', '--no-cache-dir', 'install']
  const how = ['--no-deps', '--no-build-isolation', '--root-user-action', 'ignore', '--target', join(directory, 'lib')]
  execFileSync(PYTHON, [...pip, ...how, CONDA], { stdio: 'pipe', env: { ...process.env, PYTHONPATH: old } })
}

/** A channel in that directory, with `lab-tool`, what it needs, and `explicit.txt`. */
export function makeCondaChannel(directory: string): void {
  mkdirSync(directory)
  execFileSync(PYTHON, [join(import.meta.dirname, 'conda-channel.py'), directory], { stdio: 'pipe' })
}
