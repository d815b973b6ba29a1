/** The table of verbs as a tree of commands. A verb's own arguments, options and examples come with its code, when it is loaded. */
import { Command, type Option } from 'commander'
import { printable } from '../../base/printable.ts'
import type { InventorySource } from '../../inventory/load-inventory.ts'
import type { OutputSchema } from '../schemas/shape.ts'
import { addSharedOptions, declares, isCommand, sharedOptionsOf, takeTargetsOnce } from './options.ts'
import type { CliContext, Verb, VerbCode, VerbGroup, VerbTable } from './verb.ts'

export type CallVerb = (command: Command, verb: Verb, code: VerbCode) => Promise<void>

/** What Commander says of a wrong value, as a person would say it: `'all' is not a valid value for ids. It must be a job number.` */
export const plainError = (text: string): string =>
  text
    .replace(/^error: /, 'muster: ')
    .replace(/command-argument value ('.*') is invalid for argument '(.*?)'\./s, '$1 is not a valid value for $2.')
    .replace(/option '(.*?)' argument ('.*') is invalid\./s, '$2 is not a valid value for $1.')

/** Whoever knows other tools writes hosts as several words. */
const withSeveralHosts = (text: string): string =>
  text.startsWith('muster: too many arguments') ? `${text.trimEnd()} Several hosts are one word: h1,h2\n` : text

/** What other tools call it. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  ...{ add: 'submit', create: 'submit', new: 'submit', start: 'submit' },
  ...{ delete: 'cancel', kill: 'cancel', remove: 'cancel', rm: 'cancel', stop: 'cancel' },
  ...{ info: 'show', status: 'show', ls: 'list', ps: 'list', queue: 'list' },
}

/** Names the verb of the group that other tools call so, rather than one that is spelt alike. */
function withOtherName(text: string, path: string, verbs: VerbTable): string {
  const word = /^muster: unknown command '([a-z]+)'/.exec(text)?.[1] ?? ''
  const meant = Object.hasOwn(OTHER_NAMES, word) ? (OTHER_NAMES[word] ?? '') : ''
  if (!Object.hasOwn(verbs, meant)) return text
  return `muster: unknown command '${word}'\n(Did you mean ${path} ${meant}?)\n`
}

/** Of the shared options, those that the root does not take by itself. */
const OF_COMMANDS = 'Options of commands, before or after their name:'

export class VerbTree {
  readonly program = new Command('muster')
  readonly #entries = new Map<Command, Verb | VerbGroup>()
  readonly #helps = new Map<Command, string>()
  readonly #call: CallVerb

  /** `root`: what `muster` does without a verb; undefined: it is only called with one. */
  constructor(
    root: Verb | undefined,
    verbs: VerbTable,
    { stdout, stderr }: Pick<CliContext, 'stdout' | 'stderr'>,
    call: CallVerb,
  ) {
    this.#call = call
    this.program
      .description(root?.summary ?? '')
      .helpOption('-h, --help', 'show this help')
      .helpCommand(false)
      .showHelpAfterError('Run: muster --help')
      .exitOverride()
      .configureOutput({
        writeOut: (text) => stdout.write(text),
        writeErr: (text) => stderr.write(text.split('\n').map(printable).join('\n')),
        outputError: (text, write) => write(plainError(text)),
      })
      .configureHelp({
        showGlobalOptions: true,
        visibleGlobalOptions: (command) => (command === this.program ? [] : this.sharedOptionsOf(command)),
        styleTitle: (title) => (title === 'Global Options:' ? 'Shared options:' : title),
      })
    addSharedOptions(this.program)
    if (root !== undefined) {
      this.#entries.set(this.program, root)
      const taken = new Set(this.sharedOptionsOf(this.program))
      for (const option of this.program.options) if (!taken.has(option)) option.helpGroup(OF_COMMANDS)
    }
    this.#grow(this.program, verbs)
  }

  /** Of a group of verbs: loads all of them, for its help. */
  async load(command: Command): Promise<void> {
    const entry = this.#entries.get(command)
    if (entry === undefined || this.#helps.has(command)) return
    this.#helps.set(command, '')
    if ('verbs' in entry) {
      await Promise.all(command.commands.map((below) => this.load(below)))
      const examples = command.commands.flatMap((below) => /^ {2}muster .*$/m.exec(this.#helps.get(below) ?? '') ?? [])
      command.addHelpText(
        'after',
        `\nExamples:\n${examples.join('\n')}\n\nmuster ${pathOf(command)} VERB --help shows more.\n`,
      )
      return
    }
    const loaded = await entry.load()
    const code = 'verb' in loaded ? loaded.verb : loaded
    code.define?.(command)
    takeTargetsOnce(command)
    const last = command.registeredArguments.at(-1)
    if (last !== undefined && isCommand(last)) last.description += '; options after its first word belong to it'
    if (last?.name() === 'target' && !last.variadic)
      command.configureOutput({ outputError: (text, write) => write(withSeveralHosts(plainError(text))) })
    // Commander sets the default of a `--no-x` that has no `--x` before the code of the verb is here.
    for (const option of command.options) {
      if (option.negate && !command.options.some(({ long }) => long === option.long?.replace(/^--no-/, '--')))
        command.setOptionValueWithSource(option.attributeName(), true, 'default')
    }
    if (entry.effect === 'plans' && !declares(command, '--dry-run'))
      command.option('--dry-run', 'show the plan, without applying it')
    command.addHelpText('after', code.help).action(() => this.#call(command, entry, code))
    this.#helps.set(command, code.help)
  }

  #grow(parent: Command, verbs: VerbTable): void {
    for (const [name, entry] of Object.entries(verbs)) {
      const { isHidden = false, isDefault = false }: Partial<Verb> = 'verbs' in entry ? {} : entry
      const command = parent.command(name, { hidden: isHidden, isDefault })
      command
        .description(entry.summary)
        .helpCommand(false)
        .showHelpAfterError(`Run: muster ${pathOf(command)} --help`)
      this.#entries.set(command, entry)
      if (!('verbs' in entry)) continue
      const { verbs: below } = entry
      command.configureOutput({
        outputError: (text, write) => write(withOtherName(plainError(text), `muster ${pathOf(command)}`, below)),
      })
      this.#grow(command, below)
    }
    parent.hook('preSubcommand', async (_, command) => {
      const isForBelow = command.commands.some((below) => parent.args.includes(below.name()))
      if (!isForBelow) await this.load(command)
    })
  }

  /** The verb of a group that gets the words which name none. */
  defaultBelow(command: Command): Command | undefined {
    return command.commands.find((below) => {
      const entry = this.#entries.get(below)
      return entry !== undefined && 'isDefault' in entry && entry.isDefault === true
    })
  }

  /** The words that a default verb knows. */
  async namesOf(command: Command, source: InventorySource): Promise<readonly string[]> {
    const entry = this.#entries.get(command)
    return entry === undefined || 'verbs' in entry ? [] : ((await entry.names?.(source)) ?? [])
  }

  /** Examples and notes of a loaded verb. */
  helpOf(command: Command): string {
    return this.#helps.get(command) ?? ''
  }

  /** Its own options, once it is loaded, and the shared ones that it takes; without hidden ones. */
  optionsOf(command: Command): readonly Option[] {
    const shared = command === this.program ? [] : this.sharedOptionsOf(command)
    return [...command.options, ...shared].filter(({ hidden }) => !hidden)
  }

  /** The shared options that it or a verb below it takes. */
  sharedOptionsOf(command: Command): Option[] {
    return sharedOptionsOf(command, this.#verbsBelow(command))
  }

  /** Of what the verb prints with --json. */
  async schemaOf(command: Command): Promise<OutputSchema | undefined> {
    const entry = this.#entries.get(command)
    return entry === undefined || 'verbs' in entry ? undefined : await entry.output?.()
  }

  #verbsBelow(command: Command): readonly Verb[] {
    const entry = this.#entries.get(command)
    if (entry === undefined) return []
    return 'verbs' in entry ? command.commands.flatMap((below) => this.#verbsBelow(below)) : [entry]
  }
}

/** `env sync`; empty for the root. */
export function pathOf(command: Command): string {
  return command.parent === null ? '' : `${pathOf(command.parent)} ${command.name()}`.trim()
}
