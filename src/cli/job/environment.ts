/** The software environments that a job, or a program that Muster runs on a host, may be in. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { fileTitle, type Inventory } from '../../inventory/inventory.ts'
import { FIND_TOOL } from '../../ops/env/facts.ts'
import { section } from '../../ops/env/section.ts'
import { pathWord } from '../../ops/kernel/files.ts'
import { CHECKPOINT } from '../../scheduler/jobs/checkpoint.ts'

/** `name`: of a conda environment (or its path), the path of a venv, or an image, with the options of `docker run`. */
export type JobEnvironment =
  | { readonly kind: 'venv' | 'conda'; readonly name: string }
  | {
      readonly kind: 'image'
      readonly name: string
      readonly options?: string
      /** The one that hosts.yaml declares. */
      readonly container?: string
    }

const FORMS = '`declared` (the one of hosts.yaml), venv:PATH, conda:NAME (or its path), or image:NAME for docker'

type ActivatedEnvironment = Extract<JobEnvironment, { kind: 'venv' | 'conda' }>

/** @throws MusterError 'usage' for a word that is none, 'configuration' when hosts.yaml declares none. */
export function parseJobEnvironment(word: string, inventory: Inventory): JobEnvironment {
  if (word === 'declared') {
    const declared = sectionOf(inventory, section)
    if (declared === undefined)
      throw new MusterError('configuration', `${fileTitle(inventory)} declares no environment`, {
        hint: `--from-env takes ${FORMS}.`,
      })
    switch (declared.kind) {
      case 'venv':
        return { kind: 'venv', name: declared.path }
      case 'conda':
        return { kind: 'conda', name: declared.prefix ?? declared.name }
      case 'docker':
        return { kind: 'image', name: declared.image, options: declared.options, container: declared.name }
    }
  }
  const [, kind, name] = /^(venv|conda|image):(.+)$/.exec(word) ?? []
  if (name !== undefined) return { kind: kind as JobEnvironment['kind'], name }
  throw new MusterError('usage', `--from-env ${printable(word)}: it takes ${FORMS}`)
}

/** As `parseJobEnvironment` takes it. */
export const wordOf = ({ kind, name }: JobEnvironment): string => `${kind}:${name}`

/** Enters the environment of a launched job, whose launcher has to be in it. @throws MusterError 'usage' for an image. */
export function setUpOf(environment: JobEnvironment): string {
  if (environment.kind === 'image')
    throw new MusterError('usage', '--launch cannot be used with an image', { hint: 'Use venv:PATH or conda:NAME.' })
  return activation(environment)
}

/**
 * Makes `python3` that of the environment, for a program that reads its stdin; in the container of hosts.yaml where it declares
 * one, else in a new one of the image.
 */
export function pythonSetUp(environment: JobEnvironment): string {
  if (environment.kind !== 'image') return activation(environment)
  const { name, container } = environment
  const run = container === undefined ? `run --rm --init -i ${shellQuote(name)}` : `exec -i ${shellQuote(container)}`
  return `python3() { docker ${run} python3 "$@"; }`
}

/** For a command of sh that reads its stdin, in the same place as `pythonSetUp`. */
export function withStdinIn(environment: JobEnvironment, command: string): string {
  if (environment.kind !== 'image') return `${activation(environment)}\n${command}`
  const { name, container } = environment
  const run = container === undefined ? `run --rm --init -i ${shellQuote(name)}` : `exec -i ${shellQuote(container)}`
  return `docker ${run} sh -c ${shellQuote(command)}`
}

function activation({ kind, name }: ActivatedEnvironment): string {
  switch (kind) {
    case 'venv':
      return `. ${pathWord(name)}/bin/activate || exit 126`
    case 'conda':
      return `${FIND_TOOL}case $tool in
*/micromamba) activate=$("$tool" shell activate -s posix ${homePathOrName(name)});;
*) activate=$("$tool" shell.posix activate ${homePathOrName(name)});;
esac && eval "$activate" || exit 126`
  }
}

const homePathOrName = (name: string): string => (/[/~]/.test(name) ? pathWord(name) : shellQuote(name))

/** For sh. `variables`: names that a container is to have besides Muster's own; `gpus`: whether it asked for some. */
export function inEnvironment(
  command: string,
  environment: JobEnvironment,
  variables: readonly string[],
  gpus: boolean,
): string {
  const { kind, name } = environment
  switch (kind) {
    case 'venv':
      return `${activation({ kind, name })}\n${command}`
    case 'conda': {
      const which = /[/~]/.test(name) ? `-p ${pathWord(name)}` : `-n ${shellQuote(name)}`
      return `${FIND_TOOL}case $tool in */micromamba) o=;; *) o=--no-capture-output;; esac
exec "$tool" run $o ${which} sh -c ${shellQuote(command)}`
    }
    case 'image': {
      const mounts = variables.includes(CHECKPOINT) ? ` -v "$${CHECKPOINT}:$${CHECKPOINT}"` : ''
      const names = [...OURS, ...variables].map((variable) => `-e ${variable}`).join(' ')
      return `exec docker run --rm --init --network host --name "muster-$MUSTER_JOB-$MUSTER_ATTEMPT-$RANK" ${gpus ? '--gpus all ' : ''}${names} -v "$PWD:$PWD" -w "$PWD"${mounts} ${environment.options ?? ''} ${shellQuote(name)} sh -c ${shellQuote(command)}`
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
  'MUSTER_ADDRESSES',
  'MUSTER_GPU_MILLI',
  'RANK',
  'WORLD_SIZE',
  'LOCAL_RANK',
  'MASTER_ADDR',
  'MASTER_PORT',
]
