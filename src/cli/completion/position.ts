/** What can come at the end of an unfinished command line, from the tree of verbs. */
import type { Argument, Command, Option } from 'commander'
import { placeholderOf, valuesOf } from '../command-line/options.ts'
import { isOption, readWords } from '../command-line/read-words.ts'
import type { VerbTree } from '../command-line/tree.ts'
import { fieldsByType } from '../schemas/shape.ts'

export type Position = {
  /** The command that the words so far name. */
  readonly command: Command
  /** The value of `--hosts`, if it was given. */
  readonly hosts?: string
  /** What the last word may become. */
  readonly wanted: readonly Wanted[]
}

/** `name`: the placeholder, such as `target` of `<target>`; `before`: the part of the word before the value, such as `--on=`. */
export type Wanted =
  | { readonly kind: 'verbs' }
  | { readonly kind: 'options'; readonly options: readonly Option[] }
  | { readonly kind: 'choices'; readonly choices: readonly string[]; readonly before: string }
  /** After one there may be a comma and another one. */
  | { readonly kind: 'list'; readonly choices: readonly string[]; readonly before: string }
  | { readonly kind: 'value'; readonly name: string; readonly before: string }

/** `words`: those after `muster`; the last one is unfinished, and may be empty. Loads only the code of that verb. */
export async function positionOf(tree: VerbTree, words: readonly string[]): Promise<Position> {
  const { command, operands, pending, hosts, isHelp, areOptionsOver } = await readWords(tree, words.slice(0, -1))
  await tree.load(command)
  const found = (wanted: readonly Wanted[]): Position => ({ command, wanted, ...(hosts !== undefined && { hosts }) })

  const word = words.at(-1) ?? ''
  if (pending !== undefined) return found([wantedOf(pending, word, '')])
  if (!areOptionsOver && isOption(word)) {
    const options = tree.optionsOf(command)
    const [before, long] = /^(--[^=]+)=/.exec(word) ?? []
    const option = options.find((each) => each.long === long)
    const schema = long === '--json' ? await tree.schemaOf(command) : undefined
    if (schema !== undefined) {
      const known = new Set([...fieldsByType(schema).values()].flatMap((fields) => [...fields]))
      return found([listAfter(word, '--json=', [...known])])
    }
    const isValue = before !== undefined && option !== undefined
    return found([isValue ? wantedOf(option, word, before) : { kind: 'options', options }])
  }
  const below = operands === 0 ? tree.defaultBelow(command) : undefined
  if (below !== undefined) await tree.load(below)
  const argument = isHelp ? undefined : argumentAt(below ?? command, operands)
  return found([
    ...(operands === 0 && command.commands.length > 0 && !areOptionsOver ? [{ kind: 'verbs' } as const] : []),
    ...(argument === undefined ? [] : [wantedBy(argument.name(), argument.argChoices)]),
    // Beside its choices it may take other values.
    ...(argument?.argChoices === undefined ? [] : [wantedBy(argument.name(), undefined)]),
  ])
}

/** `word`: `--json=host,co`, where the list follows `start`. */
function listAfter(word: string, start: string, known: readonly string[]): Wanted {
  const before = word.slice(0, Math.max(start.length, word.lastIndexOf(',') + 1))
  const given = new Set(before.slice(start.length).split(','))
  return { kind: 'list', choices: known.filter((name) => !given.has(name)), before }
}

/** `before`: the option and `=`, if they are in the same word. */
function wantedOf(option: Option, word: string, before: string): Wanted {
  const [name, values] = [placeholderOf(option), valuesOf(option)]
  return values !== undefined && name === 'names' ? listAfter(word, before, values) : wantedBy(name, values, before)
}

const wantedBy = (name: string, choices: readonly string[] | undefined, before = ''): Wanted =>
  choices === undefined ? { kind: 'value', name, before } : { kind: 'choices', choices, before }

/** The last one may take several words. */
function argumentAt({ registeredArguments }: Command, index: number): Argument | undefined {
  const last = registeredArguments.at(-1)
  return registeredArguments[index] ?? (last?.variadic ? last : undefined)
}
