/** Options of launchers, and from them to the gang of a job. */
import { type Command, Option } from 'commander'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { didYouMean } from '../../inventory/nearest-word.ts'
import type { JobSpec } from '../../scheduler/jobs/job.ts'
import type { Launcher, LaunchOption } from '../../scheduler/launch/launcher.ts'
import { launcherOf } from '../../scheduler/launch/launcher-of.ts'
import { LAUNCHERS } from '../../scheduler/launch/launchers.ts'
import { commandFor } from '../../scheduler/launch/one-command.ts'
import { section as rowsSection } from '../../scheduler/launch/rows.ts'
import { DEFAULT_PORTS, section } from '../../scheduler/launch/section.ts'
import { repeatable } from '../command-line/options.ts'
import { ENGINES } from '../job/engines.ts'

export type LaunchOptions = { readonly launch?: string; readonly [name: string]: unknown }

const KINDS = LAUNCHERS.map(({ name }) => name).join(', ')

/** Its name in the values of commander: `as-is` is `asIs`. */
const keyOf = ({ flags }: LaunchOption): string =>
  (flags.split(' ')[0] ?? '').replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())

/** The options of these launchers; one that several have is declared once. */
export function withLaunchOptions(command: Command, launchers: readonly Launcher[] = LAUNCHERS): Command {
  const byFlags = Map.groupBy(
    launchers.flatMap(({ name, options }) => options.map((option) => ({ name, option }))),
    ({ option }) => option.flags,
  )
  for (const [flags, uses] of byFlags) {
    const [first] = uses
    if (first === undefined) continue
    const { summary, isRepeatable = false } = first.option
    const kinds = launchers.length > 1 ? `${uses.map(({ name }) => name).join(', ')}: ` : ''
    command.addOption(
      isRepeatable ? repeatable(`--${flags}`, `${kinds}${summary}`) : new Option(`--${flags}`, `${kinds}${summary}`),
    )
  }
  return command
}

/** Muster's own launchers, and those in hosts.yaml. */
export const launcherNames = (inventory: Inventory): readonly string[] => [
  ...LAUNCHERS.map(({ name }) => name),
  ...(sectionOf(inventory, rowsSection)?.keys() ?? []),
]

/** @throws MusterError 'usage' for an unknown launcher. */
export function findLauncher(kind: string, inventory: Inventory): Launcher {
  const rows = sectionOf(inventory, rowsSection)
  const launcher = launcherOf({ kind, row: rows?.get(kind) })
  if (launcher !== undefined) return launcher
  const names = launcherNames(inventory)
  throw new MusterError('usage', `unknown launcher: ${printable(kind)}${didYouMean(kind, names)}`, {
    hint: `Launchers: ${names.join(', ')}.`,
  })
}

/**
 * The part of a job that its launcher decides. `declared`: by `launch` in hosts.yaml.
 * @throws MusterError 'usage' for options that the launcher does not have, or that contradict each other.
 */
export function launchPart(
  options: LaunchOptions,
  { bundles, request, engine, command }: Pick<JobSpec, 'bundles' | 'request' | 'engine' | 'command'>,
  setUp: string | undefined,
  inventory: Inventory,
):
  | (Pick<JobSpec, 'launch' | 'roles' | 'leaders' | 'maxBundlesPerHost' | 'bundles' | 'needs'> &
      Pick<JobSpec, 'command'> &
      Partial<Pick<JobSpec, 'request'>>)
  | undefined {
  if (options.launch === undefined) {
    const given = LAUNCHERS.flatMap((launcher) => launcher.options.filter((option) => isGiven(options[keyOf(option)])))
    if (given[0] === undefined) return undefined
    throw new MusterError('usage', `--${given[0].flags.split(' ')[0]} needs --launch`, { hint: `Launchers: ${KINDS}.` })
  }
  const launcher = findLauncher(options.launch, inventory)
  const taken = takenCommand(launcher, command)
  const own = new Map(launcher.options.map((option) => [keyOf(option), option]))
  const values: Record<string, string> = {}
  for (const { options: known } of LAUNCHERS)
    for (const option of known) {
      const value = options[keyOf(option)]
      if (!isGiven(value)) continue
      const [name = ''] = option.flags.split(' ')
      if (!own.has(keyOf(option))) throw new MusterError('usage', `--launch ${launcher.name} has no option --${name}`)
      const texts = Array.isArray(value) ? value.map(String) : [value === true ? '' : String(value)]
      const wrong = option.values && texts.find((text) => !option.values?.test(text))
      if (wrong !== undefined)
        throw new MusterError(
          'usage',
          `--${name} ${printable(wrong)}: write it as ${option.flags.split(' ')[1] ?? ''}`,
          {
            hint: option.summary,
          },
        )
      values[name] = texts.join(' ')
    }
  const declared = sectionOf(inventory, section)
  const perHost = typeof options.perHost === 'number' ? options.perHost : undefined
  const isMpi = launcher.options.some(({ flags }) => flags === 'mpi <name>')
  const place = values.network ?? values.interface
  const defaults = {
    ...(place === undefined ? defined({ network: declared?.network, interface: declared?.interface }) : {}),
    ...(isMpi ? declared?.mpi : {}),
  }
  const prefix = isMpi ? declared?.mpiPrefix : undefined
  const begin = [...(setUp === undefined ? [] : [setUp]), ...(prefix === undefined ? [] : [inPrefix(prefix)])].join(
    '\n',
  )
  const launch = {
    kind: launcher.name,
    ...defined({ row: sectionOf(inventory, rowsSection)?.get(launcher.name) }),
    options: { ...defaults, ...values },
    ports: declared?.ports ?? DEFAULT_PORTS,
    ...(begin === '' ? {} : { setUp: begin }),
    ...(declared === undefined ? {} : { environment: declared.environment }),
  }
  if (engine !== undefined) {
    if (!isAble(launcher, engine)) throw notOnEngine(launcher.name, engine)
    if (launcher.onEngine !== undefined)
      return { command: taken, bundles: 1, needs: launcher.onEngine.needs(values, bundles, request), launch }
    const wrong = launcher.refusesInGang?.find((name) => Object.hasOwn(values, name))
    if (wrong !== undefined)
      throw new MusterError('usage', `--${wrong} cannot be used with --engine ${engine}`, {
        hint: `There --launch ${launcher.name} starts what the engine has placed.`,
      })
  }
  const { roles, leaders, isOnePerHost, ranks } = launcher.shape(values, bundles, request, perHost)
  if (engine !== undefined && launcher.startsOthers && roles.length > 1)
    throw new MusterError('usage', `--engine ${engine} needs as many ranks in each bundle`, {
      hint: `--ranks ${values.ranks} cannot be split evenly.`,
    })
  const placed = engine === undefined ? { ranks } : { ownRanks: launcher.startsOthers ? ranks : undefined }
  return {
    command: taken,
    bundles: roles.reduce((sum, { count }) => sum + count, 0),
    roles,
    ...(roles.length === 1 && roles[0] !== undefined ? { request: roles[0].request } : {}),
    ...(leaders === undefined ? {} : { leaders }),
    ...(isOnePerHost ? { maxBundlesPerHost: 1 } : {}),
    // An engine knows bundles alone.
    launch: { ...launch, ...defined(placed) },
  }
}

/** @throws MusterError 'usage' for a command that the launcher cannot start */
export function takenCommand(launcher: Launcher, command: string): string {
  const taken = commandFor(launcher, command)
  if (taken.reason === undefined) return taken.text
  throw new MusterError('usage', taken.reason, { hint: taken.hint })
}

function isAble(launcher: Launcher, engine: string): boolean {
  const { startsGangs = false, startsOthers = false } = ENGINES.find(({ name }) => name === engine) ?? {}
  if (!startsGangs) return launcher.onEngine !== undefined
  return launcher.inGang !== undefined && (startsOthers || !launcher.startsOthers)
}

function notOnEngine(name: string, engine: string): MusterError {
  const able = LAUNCHERS.flatMap((one) => (isAble(one, engine) ? [`--launch ${one.name}`] : [])).join(', ')
  return new MusterError('usage', `--launch ${printable(name)} cannot be used with --engine ${engine}`, {
    hint: `Leave --engine out: Muster then places the ranks itself. With --engine ${engine}: ${able}.`,
  })
}

/** The array of jobs that an option such as `--engines 4` asks for, as in `--array`. @throws MusterError 'usage' with an array besides. */
export function launchArray(
  options: LaunchOptions & { readonly array?: string },
  inventory: Inventory,
): string | undefined {
  if (options.launch === undefined) return options.array
  const option = findLauncher(options.launch, inventory).options.find(({ isCopies }) => isCopies)
  const value = option && options[keyOf(option)]
  if (option === undefined || value === undefined) return options.array
  const [name = ''] = option.flags.split(' ')
  if (options.array !== undefined) throw new MusterError('usage', `--${name} cannot be used with --array`)
  return option.values?.test(String(value)) === true ? `0-${Number(value) - 1}` : undefined
}

/** A line for sh. */
const inPrefix = (prefix: string): string =>
  `export PATH=${shellQuote(`${prefix}/bin`)}:"$PATH" LD_LIBRARY_PATH=${shellQuote(`${prefix}/lib`)}"\${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"`

const isGiven = (value: unknown): boolean => value !== undefined && !(Array.isArray(value) && value.length === 0)
