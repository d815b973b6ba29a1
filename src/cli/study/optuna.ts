/** Where the samplers of Optuna run: the options of a study for them, and the way to them. */
import { type Command, InvalidArgumentError, Option } from 'commander'
import type { Clock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { fileTitle, type Inventory } from '../../inventory/inventory.ts'
import { section as environmentSection } from '../../ops/env/section.ts'
import { samplerScript } from '../../ops/optuna/sampler-program.ts'
import type { JobHosts } from '../../scheduler/jobs/host-line.ts'
import { SamplerLine } from '../../scheduler/jobs/sampler-line.ts'
import type { OpenSampler } from '../../scheduler/jobs/study-pass.ts'
import { samplerOf } from '../../scheduler/study/optuna.ts'
import type { SamplerPlace } from '../../scheduler/study/study.ts'
import { parseJobEnvironment, pythonSetUp } from '../job/environment.ts'
import type { SubmitOptions } from '../job/submit.ts'

export type SamplerOptions = SubmitOptions & {
  readonly method: string
  readonly samplerOn?: string
  readonly samplerOption: Readonly<Record<string, string>>
}

const OPTION = /^([A-Za-z_]\w{0,63})=(.{0,200})$/s

export const withSamplerOptions = (command: Command): Command =>
  command
    .option(
      '--sampler-on <host>',
      'run Optuna on this host, in the environment of --from-env or of hosts.yaml (default: the host `from` of the environment)',
    )
    .addOption(
      new Option(
        '--sampler-option <name=value>',
        'set an option of the sampler, such as n_startup_trials=20; can be given several times',
      )
        .argParser((text: string, before: Readonly<Record<string, string>>) => {
          const [, name, value] = OPTION.exec(text) ?? []
          if (name === undefined || value === undefined)
            throw new InvalidArgumentError('Write it as n_startup_trials=20.')
          return { ...before, [name]: value }
        })
        .default({}, 'none'),
    )

/** Undefined for a method that needs no Optuna. @throws MusterError 'usage' for a host that is unknown or not given. */
export function samplerPlaceOf(options: SamplerOptions, inventory: Inventory): SamplerPlace | undefined {
  const { method, samplerOn, samplerOption, fromEnv } = options
  if (samplerOf(method) === undefined) {
    if (samplerOn !== undefined || Object.keys(samplerOption).length > 0)
      throw new MusterError('usage', '--sampler-on and --sampler-option need --method tpe or optuna:SAMPLER')
    return undefined
  }
  const declared = sectionOf(inventory, environmentSection)
  const host = samplerOn ?? declared?.from
  if (host === undefined)
    throw new MusterError('usage', `--method ${method} needs a host on which Optuna is installed`, {
      hint: `Name it with --sampler-on HOST, or declare an environment in ${fileTitle(inventory)}. --method random needs none.`,
    })
  if (!inventory.hosts.some(({ name }) => name === host))
    throw new MusterError('usage', `--sampler-on ${printable(host)}: ${fileTitle(inventory)} has no such host`)
  const word = fromEnv ?? (declared?.hosts.includes(host) ? 'declared' : undefined)
  const environment = word === undefined ? undefined : parseJobEnvironment(word, inventory)
  return {
    host,
    setUp: environment === undefined ? '' : pythonSetUp(environment),
    options: samplerOption,
    ...defined({ environment: environment?.name }),
  }
}

/** `hosts`: one shell on the place of the sampler for each study. */
export const openSamplerOn =
  (hosts: JobHosts, clock: Clock): OpenSampler =>
  (study, history, onAnswer) =>
    new SamplerLine({
      study,
      history,
      onAnswer,
      clock,
      port: {
        open(place, handlers) {
          const shell = hosts.open(place.host, handlers)
          shell.write(samplerScript(place.setUp))
          return shell
        },
      },
    })
