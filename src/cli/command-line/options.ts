/** The options that verbs share. All are parsed everywhere; a verb's help lists those of its groups (`takes` in `verbs.ts`), and what would have no effect is refused. */
import { type Argument, type Command, InvalidArgumentError, Option } from 'commander'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { CliContext, GlobalOptions, OptionGroup, Verb } from './verb.ts'

const DAY_S = 86_400

/** `all`: listed by every verb; `json`: by those that have a schema for it; `pager`: by those that print a finished report; `none`: only by verbs that declare it. */
const SHARED: readonly (readonly [OptionGroup | 'all' | 'json' | 'pager' | 'none', Option])[] = [
  [
    'inventory',
    new Option(
      '--hosts <file>',
      'read hosts from this file (default: ./hosts.yaml, then the one in the configuration directory; none: no file)',
    ),
  ],
  ['exclude', new Option('--exclude <target>', 'leave these hosts out')],
  [
    'json',
    new Option('--json', 'print only JSON on stdout, one object per line; --json=FIELD,… prints only these fields'),
  ],
  ['none', new Option('--json-fields <names>', 'print only these fields of the JSON').hideHelp()],
  ['confirmation', new Option('-y, --yes', 'do not ask for confirmation')],
  ['none', new Option('--dry-run', 'show what would be done, without doing it')],
  ['connection', new Option('--fan-out <n>', 'work on at most N hosts at once').argParser(wholeNumber(1)).default(64)],
  [
    'connection',
    new Option('--connect-timeout <s>', 'wait at most S seconds for each step of connecting (default: 10)')
      // Other time limits are multiples of it.
      .argParser((text) => Math.min(seconds(text), DAY_S)),
  ],
  [
    'connection',
    new Option(
      '--persist <s>',
      'keep connections open for S seconds after the command (0: do not; default: as in hosts.yaml)',
    ).argParser((text) => (text.trim() !== '' && Number(text) === 0 ? 0 : seconds(text))),
  ],
  ['all', new Option('--timeout <s>', 'stop after S seconds (default: no limit)').argParser(seconds)],
  ['color', new Option('--color <when>', 'use colours').choices(['auto', 'always', 'never']).default('auto')],
  ['pager', new Option('--no-pager', 'print a long report without a pager')],
  ['all', new Option('--quiet', 'print results, warnings and errors only: no progress, notices or summaries')],
  ['all', new Option('-v, --verbose', 'print more details on stderr')],
]

export function addSharedOptions(program: Command): void {
  for (const [, option] of SHARED) program.addOption(option)
  takeTargetsOnce(program)
}

/** Of two targets the first one would be lost without a word. */
export function takeTargetsOnce({ options }: Command): void {
  for (const option of options.filter((each) => placeholderOf(each) === 'target'))
    option.argParser((text, before?: string) => {
      if (before === undefined) return text
      throw new MusterError('usage', `${option.long} is given twice`, {
        hint: `Write all hosts as one target: ${option.long} ${printable(shellQuote(`${before},${text}`))}`,
      })
    })
}

/** The console's own options, which may come before its hosts. */
const CONSOLE_VALUES = ['-l', '--user', '--username', '-p', '--port', '-A', '--autoclose']

/** Their value is the next word. */
export const TAKES_A_VALUE: ReadonlySet<string> = new Set([
  ...SHARED.flatMap(([, { required, long }]) => (required && long !== undefined ? [long] : [])),
  ...CONSOLE_VALUES,
])

/** By itself: the root, where all shared options are, declares none. */
export const declares = (command: Command, long: string | undefined): boolean =>
  command.parent !== null && command.options.some((option) => option.long === long)

type Given = Readonly<Record<string, unknown>>

const isStreaming = ({ streams = [] }: Verb, options: Given): boolean =>
  streams === true || streams.some((name) => options[name] === true)

/** Whether a verb, with these options, only prints what happens: such a verb ends when nobody reads its output any more. */
export const isFollowing = (verb: Verb, options: Given): boolean =>
  verb.effect === 'reads' &&
  verb.outlivesReader !== true &&
  isStreaming(verb, options) &&
  verb.changesWith?.some((name) => options[name] !== undefined) !== true

/** Whether a verb prints a finished report, with these options: never what follows something, asks, or is for programs. */
export const isPaged = (verb: Verb, options: Given = {}): boolean =>
  verb.effect === 'reads' && options.json !== true && !isStreaming(verb, options)

/** What help lists below the verb's own options; for a group of verbs what any of them takes. */
export function sharedOptionsOf(command: Command, verbs: readonly Verb[]): Option[] {
  const groups = new Set<string>(
    verbs.flatMap((verb) => [...verb.takes, ...(verb.output ? ['json'] : []), ...(isPaged(verb) ? ['pager'] : [])]),
  )
  return SHARED.flatMap(([group, option]) => {
    const isMeant = group === 'all' || groups.has(group)
    const isTimeoutOfConsole = option.long === '--timeout' && verbs.every(({ effect }) => effect === 'console')
    return isMeant && !isTimeoutOfConsole && !declares(command, option.long) ? [option] : []
  })
}

/** The environment variable for a shared option: `MUSTER_FAN_OUT` for `--fan-out`. */
const variableOf = (long: string): string => `MUSTER_${long.slice(2).replaceAll('-', '_').toUpperCase()}`

/** For the documentation: every shared option that can be set in the environment, with its variable. */
export const VARIABLES: readonly (readonly [variable: string, option: Option])[] = SHARED.flatMap(
  ([, option]): readonly (readonly [string, Option])[] =>
    option.negate || option.hidden || option.long === undefined ? [] : [[variableOf(option.long), option]],
)

/**
 * The value of a shared option in the environment, as text. An empty variable counts as unset, and in a job of Muster
 * `MUSTER_HOSTS` names the hosts of the job.
 */
export function environmentValue(long: string, environment: CliContext['environment']): string | undefined {
  if (long === '--hosts' && environment.MUSTER_RANK !== undefined) return undefined
  return environment[variableOf(long)] || undefined
}

/**
 * Sets the shared options that a verb takes as the environment says, where the command line does not. MUSTER_DRY_RUN is for every
 * verb: one that has no --dry-run then refuses, as it does for the option. @throws MusterError `usage`, which names the variable
 */
export function applyEnvironment(command: Command, verb: Verb, environment: CliContext['environment']): void {
  // Muster starts hidden verbs by itself, in the environment of the verb that needs them.
  if (verb.isHidden) return
  let root = command
  while (root.parent !== null) root = root.parent
  const shared = sharedOptionsOf(command, [verb])
  for (const { long = '', negate } of root.options) {
    const text = negate ? undefined : environmentValue(long, environment)
    const owner = declares(command, long) ? command : root
    const isTaken = owner === command || long === '--dry-run' || shared.some((option) => option.long === long)
    const option = owner.options.find((each) => each.long === long)
    if (text === undefined || !isTaken || option === undefined) continue
    const key = option.attributeName()
    if (command.getOptionValueSourceWithGlobals(key) === 'cli') continue
    owner.setOptionValueWithSource(key, readValue(option, text, variableOf(long)), 'env')
  }
}

const SWITCHES: ReadonlyMap<string, boolean> = new Map([
  ...['1', 'true', 'yes', 'on'].map((word) => [word, true] as const),
  ...['0', 'false', 'no', 'off'].map((word) => [word, false] as const),
])

/** @throws MusterError `usage` */
function readValue(option: Option, text: string, variable: string): unknown {
  const fail = (why: string): never => {
    throw new MusterError('usage', `the environment variable ${variable} is ${printable(text)}. ${why}`, {
      hint: `It sets ${option.long}. To ignore it, run: unset ${variable}`,
    })
  }
  if (option.isBoolean()) return SWITCHES.get(text.toLowerCase()) ?? fail('It must be 1 or 0.')
  try {
    return option.parseArg ? option.parseArg(text, undefined) : text
  } catch (error) {
    if (error instanceof InvalidArgumentError) return fail(error.message)
    throw error
  }
}

/** `file` of `--hosts <file>`. */
export const placeholderOf = ({ flags }: Option): string => /[<[]([^>\].]+)/.exec(flags)?.[1] ?? ''

/** It takes the words of a command that is not Muster's. */
export const isCommand = (argument: Argument): boolean => argument.variadic && argument.name() === 'command'

const PATHS: readonly string[] = ['file', 'dir', 'path']

/**
 * An empty path comes from a variable that was never set; many verbs would take it for the current directory.
 * @throws MusterError `usage`
 */
export function refuseEmptyPaths(command: Command): void {
  const options = command.optsWithGlobals<Record<string, unknown>>()
  for (let owner: Command | null = command; owner !== null; owner = owner.parent) {
    const empty = owner.options.find(
      (option) => PATHS.includes(placeholderOf(option)) && [options[option.attributeName()]].flat().includes(''),
    )
    if (empty !== undefined)
      throw new MusterError('usage', `the path of ${empty.long} is empty`, { hint: 'Is a variable not set?' })
  }
}

/** @throws MusterError `usage` for an option that would promise what the verb does not do. */
export function refuseIneffective(
  command: Command,
  { effect, output, takes, changesWith = [] }: Verb,
  shown: string,
): void {
  const options = command.optsWithGlobals<GlobalOptions & Record<string, unknown>>()
  const isReading =
    effect === 'reads' && changesWith.every((name) => [undefined, false].includes(options[name] as never))
  if (options.dryRun === true && !isReading && !declares(command, '--dry-run'))
    throw new MusterError(
      'usage',
      `${shown} has no --dry-run: nothing was done`,
      command.getOptionValueSourceWithGlobals('dryRun') === 'env'
        ? { hint: 'The environment sets MUSTER_DRY_RUN.' }
        : {},
    )
  if (options.exclude !== undefined && !takes.includes('exclude') && !declares(command, '--exclude'))
    throw new MusterError('usage', `${shown} has no --exclude: nothing was done`)
  if ((options.json || options.jsonFields !== undefined) && output === undefined)
    throw new MusterError('usage', `${shown} has no --json`)
  if (options.timeout !== undefined && effect === 'console') throw new MusterError('usage', `${shown} has no --timeout`)
}

const IN_A_WORD: Readonly<Record<string, string>> = {
  '--user': 'Write the user with the host: USER@HOST',
  '--username': 'Write the user with the host: USER@HOST',
  '--port': 'Write the port with the host: HOST:PORT',
}

/** @throws MusterError `usage` for an option of the console before the name of a verb that does not have it. */
export function refuseOfConsole(command: Command, program: Command, shown: string): void {
  if (command === program) return
  const shared = new Set(SHARED.map(([, { long }]) => long))
  const own = program.options.find(
    (option) =>
      program.getOptionValueSource(option.attributeName()) === 'cli' &&
      !shared.has(option.long) &&
      !declares(command, option.long),
  )
  if (own === undefined) return
  const hint = IN_A_WORD[own.long ?? '']
  throw new MusterError('usage', `${shown} has no ${own.short ?? own.long}, an option of the console`, {
    ...(hint === undefined ? {} : { hint }),
  })
}

/** For timers of Node: 24 days. */
const LONGEST_S = 2_147_483

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    const most = max === Number.MAX_SAFE_INTEGER ? ` of ${min} or more` : ` from ${min} to ${max}`
    throw new InvalidArgumentError(`It must be a whole number${min === Number.MIN_SAFE_INTEGER ? '' : most}.`)
  }
}

export function numberFrom(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isFinite(value) && value >= min) return value
    throw new InvalidArgumentError(`It must be a number of ${min} or more.`)
  }
}

export function numberAbove0(text: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new InvalidArgumentError('It must be a number above 0.')
}

/** No more than a timer can be set to. */
export function seconds(text: string): number {
  return Math.min(numberAbove0(text), LONGEST_S)
}

/** NAME=VALUE, after those that were given before. */
export function variable(
  text: string,
  before: Readonly<Record<string, string>> = {},
): Readonly<Record<string, string>> {
  const [, name, value = ''] = /^([A-Za-z_]\w*)=([\s\S]*)$/.exec(text) ?? []
  if (name === undefined) throw new InvalidArgumentError('It must be NAME=VALUE.')
  return { ...before, [name]: value }
}

/** An option that may be given several times; its value is a list. */
export function repeatable(flags: string, description: string): Option {
  return new Option(flags, `${description}; can be given several times`)
    .argParser((text: string, before: readonly string[] = []) => [...before, text])
    .default([], 'none')
}

const offered = new WeakMap<Option, readonly string[]>()

/** Tab offers these values. Its description names them, and the verb checks them. */
export function offering(option: Option, values: readonly string[]): Option {
  offered.set(option, values)
  return option
}

/** The values that Tab offers; undefined: any. */
export const valuesOf = (option: Option): readonly string[] | undefined => option.argChoices ?? offered.get(option)
