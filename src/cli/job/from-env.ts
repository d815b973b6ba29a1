/** `muster job submit --from-env`: the command of a job inside a software environment of its host. */

import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { FIND_TOOL } from '../../ops/env/conda-scripts.ts'
import type { EnvironmentSpec } from '../../ops/env/section.ts'

export type JobEnvironment =
  | { readonly kind: 'venv'; readonly path: string }
  | { readonly kind: 'conda'; readonly name: string }
  | { readonly kind: 'image'; readonly image: string; readonly options: string }

const FORMS = '`declared` (the one of hosts.yaml), venv:PATH, conda:NAME (or its path), or image:NAME for docker'

/** @throws MusterError 'usage' for a word that is none, 'configuration' when hosts.yaml declares none. */
export function parseJobEnvironment(word: string, declared: EnvironmentSpec | undefined): JobEnvironment {
  if (word === 'declared') {
    if (declared === undefined)
      throw new MusterError('configuration', 'hosts.yaml declares no environment', {
        hint: `--from-env takes ${FORMS}.`,
      })
    switch (declared.kind) {
      case 'venv':
        return { kind: 'venv', path: declared.path }
      case 'conda':
        return { kind: 'conda', name: declared.prefix ?? declared.name }
      case 'docker':
        return { kind: 'image', image: declared.image, options: declared.options }
    }
  }
  const [, kind, name = ''] = /^(venv|conda|image):(.+)$/.exec(word) ?? []
  if (kind === 'venv') return { kind, path: name }
  if (kind === 'conda') return { kind, name }
  if (kind === 'image') return { kind, image: name, options: '' }
  throw new MusterError('usage', `--from-env ${printable(word)}: it takes ${FORMS}`)
}

/** For sh. `variables`: names that a container is to have besides Muster's own; `gpus`: whether it asked for some. */
export function inEnvironment(
  command: string,
  environment: JobEnvironment,
  variables: readonly string[],
  gpus: boolean,
): string {
  switch (environment.kind) {
    case 'venv':
      return `. ${homePath(environment.path)}/bin/activate || exit 126\n${command}`
    case 'conda': {
      const { name } = environment
      const which = /[/~]/.test(name) ? `-p ${homePath(name)}` : `-n ${shellQuote(name)}`
      return `${FIND_TOOL}case $tool in */micromamba) o=;; *) o=--no-capture-output;; esac
exec "$tool" run $o ${which} sh -c ${shellQuote(command)}`
    }
    case 'image': {
      const { image, options } = environment
      const names = [...OURS, ...variables].map((name) => `-e ${name}`).join(' ')
      return `exec docker run --rm --init --network host --name "muster-$MUSTER_JOB-$MUSTER_ATTEMPT-$RANK" ${gpus ? '--gpus all ' : ''}${names} -v "$PWD:$PWD" -w "$PWD" ${options} ${shellQuote(image)} sh -c ${shellQuote(command)}`
    }
  }
}

const OURS = [
  'CUDA_VISIBLE_DEVICES',
  'ROCR_VISIBLE_DEVICES',
  'MUSTER_JOB',
  'MUSTER_ATTEMPT',
  'MUSTER_RANK',
  'MUSTER_WORLD_SIZE',
  'MUSTER_HOSTS',
  'MUSTER_GPU_MILLI',
  'RANK',
  'WORLD_SIZE',
  'LOCAL_RANK',
  'MASTER_ADDR',
  'MASTER_PORT',
]

/** `~/` is the home directory, nothing else in it means anything. */
function homePath(path: string): string {
  return path.startsWith('~/') ? `"$HOME"/${shellQuote(path.slice(2))}` : shellQuote(path)
}
