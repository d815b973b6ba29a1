/** Where Ray is on a host: shell words that set $ray and $py (both empty where it is not). Only reads. */

import { findPrefix } from '../env/facts.ts'
import type { EnvironmentSpec } from '../env/section.ts'

export function placeScript(environment: EnvironmentSpec | undefined): string {
  return `${prefixScript(environment)}
ray= py=
if [ -n "$p" ] && [ -x "$p/bin/python" ]; then
  py=$p/bin/python
  [ ! -x "$p/bin/ray" ] || ray=$p/bin/ray
fi`
}

/** $p: the directory whose bin holds python and ray. */
function prefixScript(environment: EnvironmentSpec | undefined): string {
  switch (environment?.kind) {
    case 'venv':
      return findPrefix({ path: environment.path })
    case 'conda':
      return findPrefix(
        environment.prefix === undefined ? { condaName: environment.name } : { path: environment.prefix },
      )
    default:
      return `p=$(command -v ray); p=\${p%/bin/ray}`
  }
}

/** In words, for people. */
export function placeName(environment: EnvironmentSpec | undefined): string {
  switch (environment?.kind) {
    case 'venv':
      return environment.path
    case 'conda':
      return `the conda environment ${environment.prefix ?? environment.name}`
    case 'docker':
      return `the container ${environment.name}`
    case undefined:
      return 'the PATH of the login'
  }
}
