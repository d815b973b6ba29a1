/** From arguments to one verb, and from what it did to an exit code. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { CommanderError, InvalidArgumentError } from 'commander'
import { defined } from '../../base/defined.ts'
import { type ErrorCode, MusterError } from '../../base/errors.ts'
import { packageRoot } from '../../base/package-root.ts'
import { printable } from '../../base/printable.ts'
import type { InventorySource } from '../../inventory/load-inventory.ts'
import { nearestWord } from '../../inventory/nearest-word.ts'
import { describeError } from './describe-error.ts'
import { selectionOf, splitJsonFields } from './json-fields.ts'
import {
  applyEnvironment,
  declares,
  environmentValue,
  isFollowing,
  isPaged,
  refuseEmptyPaths,
  refuseIneffective,
  refuseOfConsole,
  TAKES_A_VALUE,
} from './options.ts'
import { type ReadWords, readWords } from './read-words.ts'
import { ReaderGone, reportOutputErrors } from './report-output-errors.ts'
import { pathOf, VerbTree } from './tree.ts'
import { type CliContext, EXIT, type GlobalOptions, type Verb, type VerbTable } from './verb.ts'

/** What can be called: `root` is what `muster` does without a verb. */
export type Callable = { readonly root?: Verb; readonly verbs: VerbTable }

/** Runs one verb. Never throws; what went wrong is on stderr. */
export async function runVerbs(callable: Callable, args: readonly string[], context: CliContext): Promise<number> {
  return await reportOutputErrors(context, () => runVerb(callable, args, context))
}

/** Never throws, and leaves it to the caller to see whether what it printed could be written. */
export async function runVerb(
  { root, verbs }: Callable,
  given: readonly string[],
  context: CliContext,
): Promise<number> {
  let args: readonly string[]
  try {
    args = helpAsOption(given, verbs)
  } catch (error) {
    return explain(error, context)
  }
  using limit = new TimeLimit(context)
  let exitCode: number = EXIT.ok
  let called: Verb | undefined
  let gone: ReaderGone | undefined
  const isUnread = () => gone?.signal.aborted === true && !context.signal.aborted
  const tree = new VerbTree(root, verbs, context, async (command, verb, { run }) => {
    called = verb
    applyEnvironment(command, verb, context.environment)
    const given = command.optsWithGlobals<GlobalOptions>()
    const options = given.jsonFields === undefined ? given : { ...given, json: true }
    refuseEmptyPaths(command)
    const shown = command === tree.program ? 'the console' : `\`muster ${pathOf(command)}\``
    refuseOfConsole(command, tree.program, shown)
    refuseIneffective(command, verb, shown)
    if (options.timeout !== undefined && !declares(command, '--timeout')) limit.begin(options.timeout)
    const { jsonFields } = options
    const schema = jsonFields === undefined ? undefined : await verb.output?.()
    if (isFollowing(verb, { ...options })) gone = new ReaderGone(context)
    const { signal } = limit.context
    const ownContext: CliContext = {
      ...limit.context,
      signal: gone === undefined ? signal : AbortSignal.any([signal, gone.signal]),
      isQuiet: options.quiet === true,
      selection: schema && selectionOf(jsonFields ?? '', schema),
    }
    const isOnTerminal = context.stdout.isTTY === true && isPaged(verb, options)
    const paged = isOnTerminal ? (await import('../output/pager.ts')).openPager(options, context) : undefined
    const verbContext = paged === undefined ? ownContext : { ...ownContext, stdout: paged }
    try {
      exitCode = await run(...([...command.processedArgs, options, verbContext] as never[]))
    } finally {
      // Reading takes as long as it takes.
      limit[Symbol.dispose]()
      gone?.[Symbol.dispose]()
      await paged?.finish()
    }
  })
  const { program } = tree
  const { version } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as { version: string }
  program.version(version, '-V, --version', 'print the version')
  const [first = ''] = wordsOf(args).map(([, word]) => word)
  try {
    const isForVersion = args[0] === '--version' || args[0] === '-V'
    if (!isForVersion && !Object.hasOwn(verbs, first)) {
      await refuseMistypedVerb(args, verbs, context)
      await tree.load(program)
    }
    const read = Object.hasOwn(verbs, first) ? await readWords(tree, args) : undefined
    const { commandAt, late } = read ?? {}
    if (read?.isHelp) await refuseMistypedName(read, args, tree, context)
    const named = commandAt === undefined ? args : args.toSpliced(commandAt, 0, '--')
    // Where the name of the verb is missing or comes after options, Commander would show the help of the group.
    const words =
      read === undefined || late === undefined
        ? named
        : named.toSpliced(late.wordAt, late.isName ? 1 : 0).toSpliced(late.nameAt, 0, read.command.name())
    await program.parseAsync(splitJsonFields(words), { from: 'user' })
    if (isUnread()) return EXIT.ok
    if (!limit.isOver || exitCode !== EXIT.interrupted) return exitCode
  } catch (error) {
    if (isUnread()) return EXIT.ok
    if (!limit.isOver) return explain(error, context)
  }
  context.stderr.write(`muster: stopped after ${program.opts<GlobalOptions>().timeout} s (--timeout)\n`)
  return called?.effect === 'plans' ? EXIT.incomplete : EXIT.failed
}

/** The words that are neither options nor their values, each with its index. */
function wordsOf(args: readonly string[]): readonly (readonly [index: number, word: string])[] {
  return args.flatMap((arg, index) =>
    arg.startsWith('-') || TAKES_A_VALUE.has(args[index - 1] ?? '') ? [] : [[index, arg] as const],
  )
}

/** A name with digits, as hosts have them, is no misspelt verb: nfs1, ray2. */
const PLAIN_WORD = /^[a-z]+(?:-[a-z]+)*$/i

/** @throws MusterError `usage` for words that are unlikely to be hosts */
async function refuseMistypedVerb(args: readonly string[], verbs: VerbTable, context: CliContext): Promise<void> {
  const words = wordsOf(args).map(([, word]) => word)
  const [first = '', second = ''] = words
  const meant = PLAIN_WORD.test(first) ? nearestWord(first, [...shownVerbs(verbs), 'help']) : undefined
  const group = verbs[meant ?? '']
  const isSubVerb = group !== undefined && 'verbs' in group && Object.hasOwn(group.verbs, second)
  if (meant !== undefined && (isSubVerb || !(await isNamed(first, args, context)))) {
    const { refuseClusterName } = await import('../console/clusterssh-options.ts')
    await refuseClusterName(first, context.environment, async () => false)
    throw new MusterError('usage', `unknown command: ${first}; did you mean muster ${meant}?`, {
      hint: `A machine of that name is written as user@${first} or ${first}:22.`,
    })
  }
  if (args.includes('--'))
    throw new MusterError('usage', 'the console runs no command', { hint: 'Run: muster run TARGET -- COMMAND' })
}

/**
 * Needed only for help: otherwise the default verb itself refuses a name that it does not know.
 * @throws MusterError `usage` for a misspelt verb of a group
 */
async function refuseMistypedName(
  { command, late, hosts }: ReadWords,
  args: readonly string[],
  tree: VerbTree,
  context: CliContext,
): Promise<void> {
  const { parent } = command
  if (parent === null || late === undefined || late.isName) return
  const word = args[late.wordAt] ?? ''
  const rows = await tree.namesOf(command, await sourceOf(hosts, context)).catch(() => undefined)
  const names = [...(rows ?? []), ...parent.commands.map((each) => each.name())]
  const isMistyped = rows !== undefined && !names.includes(word) && nearestWord(word, names) !== undefined
  if (isMistyped) throw unknownCommand(word, `muster ${pathOf(parent)}`, names)
}

function unknownCommand(word: string, path: string, names: readonly string[]): MusterError {
  const meant = nearestWord(word, names)
  const hint = meant === undefined ? `Run: ${path} --help` : `Did you mean ${path} ${meant}?`
  return new MusterError('usage', `unknown command: ${printable(word)}`, { hint })
}

async function sourceOf(hosts: string | undefined, context: CliContext): Promise<InventorySource> {
  const { inventorySource } = await import('../connect/endpoints.ts')
  return inventorySource(defined({ hosts: hosts ?? environmentValue('--hosts', context.environment) }), context)
}

/** Whether hosts.yaml, ssh_config or /etc/hosts names it. */
async function isNamed(word: string, args: readonly string[], context: CliContext): Promise<boolean> {
  const { isDeclared } = await import('../../inventory/load-inventory.ts')
  const at = args.findIndex((arg) => arg === '--hosts' || arg.startsWith('--hosts='))
  const given = args[at]?.startsWith('--hosts=') ? args[at].slice('--hosts='.length) : args[at + 1]
  return await isDeclared(word, await sourceOf(at < 0 ? undefined : given, context))
}

/**
 * `help job submit` and `job help submit` mean `job submit --help`.
 * @throws MusterError `usage` for a verb that does not exist
 */
function helpAsOption(args: readonly string[], verbs: VerbTable): readonly string[] {
  let table = verbs
  let path = 'muster'
  let help: number | undefined
  let last = 0
  for (const [index, word] of wordsOf(args)) {
    if (word === 'help') {
      help ??= index
      continue
    }
    const entry = Object.hasOwn(table, word) ? table[word] : undefined
    if (entry === undefined && help !== undefined && !hasDefault(table))
      throw unknownCommand(word, path, shownVerbs(table))
    if (entry === undefined) break
    last = index
    if (!('verbs' in entry)) break
    table = entry.verbs
    path += ` ${word}`
  }
  // Behind the verb: at the end it could belong to the command of the user.
  return help === undefined ? args : args.toSpliced(Math.max(last, help) + 1, 0, '--help').toSpliced(help, 1)
}

const hasDefault = (verbs: VerbTable): boolean =>
  Object.values(verbs).some((entry) => 'isDefault' in entry && entry.isDefault === true)

const shownVerbs = (verbs: VerbTable): readonly string[] =>
  Object.entries(verbs).flatMap(([name, entry]) => ('isHidden' in entry ? [] : [name]))

function explain(error: unknown, { signal, stderr }: CliContext): number {
  // Commander has not printed what a verb finds wrong with an argument.
  if (error instanceof InvalidArgumentError) {
    stderr.write(`muster: ${printable(error.message)}\n`)
    return EXIT.usage
  }
  // Commander has printed its own message; asking for help or the version is no error.
  if (error instanceof CommanderError) return error.exitCode === 0 ? EXIT.ok : EXIT.usage
  // What a signal interrupts fails in many ways; the user knows why.
  if (signal.aborted) {
    stderr.write('muster: stopped\n')
    return EXIT.interrupted
  }
  stderr.write(describeError(error))
  return exitCodeOf(error)
}

const CODES: Readonly<Record<ErrorCode, number>> = {
  usage: EXIT.usage,
  configuration: EXIT.configuration,
  unreachable: EXIT.unreachable,
  refused: EXIT.unreachable,
  interrupted: EXIT.interrupted,
  internal: EXIT.failed,
}

export function exitCodeOf(error: unknown): number {
  return error instanceof MusterError ? CODES[error.code] : EXIT.failed
}

export class TimeLimit implements Disposable {
  readonly #over = new AbortController()
  readonly #stopped: AbortSignal
  #timer: NodeJS.Timeout | undefined
  /** For the verb. */
  readonly context: CliContext

  constructor(context: CliContext) {
    this.#stopped = context.signal
    this.context = { ...context, signal: AbortSignal.any([context.signal, this.#over.signal]) }
  }

  begin(seconds: number): void {
    this.#timer = setTimeout(() => {
      if (!this.#stopped.aborted) this.#over.abort()
    }, seconds * 1000)
  }

  get isOver(): boolean {
    return this.#over.signal.aborted
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
  }
}
