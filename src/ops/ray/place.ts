/** Where Ray is on a host: shell words that set $ray and $py (both empty where it is not). Only reads. */

import { findPrefix, prefixOf } from '../env/facts.ts'
import type { EnvironmentSpec } from '../env/section.ts'

export function placeScript(environment: EnvironmentSpec | undefined): string {
  const isPrefix = environment !== undefined && environment.kind !== 'docker'
  const find = isPrefix ? findPrefix(prefixOf(environment)) : `p=$(command -v ray); p=\${p%/bin/ray}`
  return `${find}
ray= py=
if [ -n "$p" ] && [ -x "$p/bin/python" ]; then
  py=$p/bin/python
  [ ! -x "$p/bin/ray" ] || ray=$p/bin/ray
fi`
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
