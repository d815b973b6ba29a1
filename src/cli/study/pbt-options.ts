/** The options of `--method pbt`, in the words of Ray Tune. */
import type { Command } from 'commander'
import { MusterError } from '../../base/errors.ts'
import type { JobSpec } from '../../scheduler/jobs/job.ts'
import { checkMutations, parameterOfMutation, parseMutation } from '../../scheduler/study/pbt.ts'
import type { PbtSpec, StudySpec } from '../../scheduler/study/study.ts'
import { spaceOf } from '../../scheduler/study/study.ts'
import { numberAbove0, numberFrom, repeatable, wholeNumber } from '../command-line/options.ts'

export type PbtOptions = {
  readonly population?: number
  readonly timeAttr?: string
  readonly perturbationInterval?: number
  readonly quantileFraction?: number
  readonly resampleProbability?: number
  readonly mutate: readonly string[]
  readonly explore?: string
  readonly checkpoints?: string
}

export const PBT = 'pbt'
const NAME = /^[A-Za-z_][A-Za-z0-9_./-]{0,39}$/
const MOST_MEMBERS = 256

export function withPbtOptions(command: Command): Command {
  return command
    .option(
      '--population <n>',
      'pbt: train N members side by side (default: 8); more try more parameters, and need more devices',
      wholeNumber(2, MOST_MEMBERS),
    )
    .option(
      '--time-attr <name>',
      'pbt: the number in the output that counts progress, such as step (default: training_iteration)',
    )
    .option(
      '--perturbation-interval <n>',
      'pbt: compare a member with the others each time its --time-attr has grown by N (default: 4); larger: members train longer between comparisons, and fewer checkpoints are copied',
      numberAbove0,
    )
    .option(
      '--quantile-fraction <x>',
      'pbt: the worst X of the members continue from checkpoints of the best X, 0 to 0.5 (default: 0.25); larger: more are replaced each time, and the population loses its variety sooner',
      numberFrom(0),
    )
    .option(
      '--resample-probability <x>',
      'pbt: resample a mutated parameter with this probability, 0 to 1 (default: 0.25), else multiply it by 1.2 or 0.8, or take a neighbouring choice; larger: more exploration',
      numberFrom(0),
    )
    .addOption(
      repeatable(
        '--mutate <name=values>',
        'pbt: mutate this parameter when a member is replaced: lr=loguniform:1e-5:1e-1, momentum=uniform:0:0.9, batch=choice:8,16,32; it needs no --param; other parameters are copied from the better member',
      ),
    )
    .option(
      '--explore <command>',
      'pbt: run this on the host of the replaced member: it reads the mutated parameters as JSON and prints those to use',
    )
    .option(
      '--checkpoints <dir>',
      'pbt: keep checkpoints in this directory, which all hosts share (default: in the home directory of each host, copied between hosts)',
    )
}

/** The parts of a study that these options make; undefined: the method is another one. @throws MusterError 'usage' */
export function pbtParts(
  method: string,
  options: PbtOptions,
  rest: Pick<StudySpec, 'parameters' | 'digits' | 'metrics' | 'repeat' | 'atOnce'>,
): Pick<StudySpec, 'parameters'> & { readonly pbt?: PbtSpec } {
  const given = Object.entries(FLAGS).find(([name]) => {
    const value = options[name as keyof PbtOptions]
    return Array.isArray(value) ? value.length > 0 : value !== undefined
  })
  if (method !== PBT) {
    if (given === undefined) return { parameters: rest.parameters }
    throw new MusterError('usage', `${given[1]} needs --method pbt`)
  }
  const wrong = (why: string) => new MusterError('usage', why)
  const { mutate, explore, checkpoints } = options
  const { population = 8, perturbationInterval = 4, timeAttr = 'training_iteration' } = options
  const { quantileFraction = 0.25, resampleProbability = 0.25 } = options
  if (mutate.length === 0 && explore === undefined)
    throw wrong('--method pbt needs --mutate or --explore: what changes when a member is replaced?')
  if (rest.metrics.length !== 1) throw wrong('--method pbt needs one --metric')
  if (rest.atOnce !== undefined)
    throw wrong('--at-once cannot be used with --method pbt: all members train side by side. Use --population')
  if (rest.repeat !== 1) throw wrong('--repeat cannot be used with --method pbt')
  if (!NAME.test(timeAttr)) throw wrong('--time-attr must be the name that the output has, such as step')
  if (quantileFraction > 0.5) throw wrong('--quantile-fraction must be between 0 and 0.5')
  if (resampleProbability > 1) throw wrong('--resample-probability must be between 0 and 1')
  if (checkpoints !== undefined && !/^\/[^\x00-\x1f\x7f]+$/.test(checkpoints))
    throw wrong('--checkpoints must be an absolute path')
  const mutations = mutate.map(parseMutation)
  const names = new Set(rest.parameters.map((text) => /^(?:if \S+ +)?([^=]*)=/.exec(text)?.[1]))
  const added = mutations.filter(({ name }) => !names.has(name)).map(parameterOfMutation)
  const parameters = [...rest.parameters, ...added]
  const own = { population, timeAttr, perturbationInterval, quantileFraction, resampleProbability, mutate }
  const pbt = { ...own, ...(explore === undefined ? {} : { explore }), ...(checkpoints && { checkpoints }) }
  checkMutations(mutations, spaceOf({ ...rest, method, seed: 0, failures: 1, parameters }))
  return { parameters, pbt }
}

/** @throws MusterError 'usage' for jobs whose checkpoints have no one host. */
export function checkMemberJob({ engine, bundles }: JobSpec, { checkpoints }: PbtSpec): void {
  if (engine !== undefined) throw new MusterError('usage', '--engine cannot be used with --method pbt')
  if (bundles > 1 && checkpoints === undefined)
    throw new MusterError(
      'usage',
      '--method pbt with several bundles needs --checkpoints: a directory that all hosts share',
    )
}

const FLAGS = {
  population: '--population',
  timeAttr: '--time-attr',
  perturbationInterval: '--perturbation-interval',
  quantileFraction: '--quantile-fraction',
  resampleProbability: '--resample-probability',
  mutate: '--mutate',
  explore: '--explore',
  checkpoints: '--checkpoints',
} as const
