/** Reads a command line as far as it is written, from the tree of verbs: the verb, its operands, and where the user's own command begins. */
import type { Command, Option } from 'commander'
import { isCommand } from './options.ts'
import type { VerbTree } from './tree.ts'

export type ReadWords = {
  /** The verb or the group of verbs that the words name. */
  readonly command: Command
  /** How many operands it has so far. */
  readonly operands: number
  /** The option whose value is the next word. */
  readonly pending?: Option | undefined
  /** The value of `--hosts`, if it was given. */
  readonly hosts?: string | undefined
  readonly isHelp: boolean
  /** The next word is an operand, whatever it is: after `--`, or inside the user's command. */
  readonly areOptionsOver: boolean
  /** Index of the first word of the user's command, if no `--` is before it: as with ssh, all that follows belongs to it. */
  readonly commandAt?: number | undefined
  /**
   * The name of the verb is missing at `nameAt`: it was left out (the group has a default verb), or it comes after options.
   * `wordAt`: the first operand. `isName`: this operand is the name of the verb.
   */
  readonly late?: { readonly nameAt: number; readonly wordAt: number; readonly isName: boolean } | undefined
}

export const isOption = (word: string): boolean => word.startsWith('-') && word !== '-'

/** `words`: those after `muster`. Loads only the code of the verb; of a group, all of it only for a word that it does not know. */
export async function readWords(tree: VerbTree, words: readonly string[]): Promise<ReadWords> {
  let command = tree.program
  let operands = 0
  let areOptionsOver = false
  let isHelp = false
  let pending: Option | undefined
  let hosts: string | undefined
  let commandAt: number | undefined
  /** The group whose options came before the name of a verb, and where they began. */
  let open: { readonly group: Command; readonly at: number } | undefined
  let late: ReadWords['late']

  const take = (option: Option, value: string): void => {
    if (option.long === '--hosts') hosts = value
  }
  const known = (name: string): Option | undefined =>
    [...command.options, ...tree.program.options].find(({ short, long }) => name === short || name === long)
  const find = async (name: string, index: number): Promise<Option | undefined> => {
    if (known(name) === undefined) {
      const below = tree.defaultBelow(command)
      if (below !== undefined) open = { group: command, at: index }
      command = below ?? command
      await tree.load(command)
    }
    return known(name)
  }
  const readOption = async (word: string, index: number): Promise<void> => {
    if (word === '-h' || word === '--help') isHelp = true
    const [, name = '', value] = /^([^=]*)(?:=([\s\S]*))?$/.exec(word) ?? []
    const option = await find(name, index)
    if (option?.required && value === undefined) pending = option
    else if (option !== undefined && value !== undefined) take(option, value)
    else if (option === undefined && /^-[^-]./.test(word)) {
      // Short ones in one word: -vy, -ctrain.
      const first = await find(word.slice(0, 2), index)
      if (first !== undefined && !first.required) await readOption(`-${word.slice(2)}`, index)
    }
  }
  const readOperand = async (index: number): Promise<void> => {
    const below = tree.defaultBelow(command)
    const nameAt = below === undefined ? open?.at : index
    if (operands === 0 && nameAt !== undefined) late = { nameAt, wordAt: index, isName: false }
    command = below ?? command
    await tree.load(command)
    const argument = command.registeredArguments[operands]
    if (argument !== undefined && isCommand(argument) && !areOptionsOver) {
      areOptionsOver = true
      commandAt = index
    }
    operands += 1
  }

  for (const [index, word] of words.entries()) {
    const below = operands === 0 && late === undefined ? verbNamed(word, open?.group ?? command) : undefined
    if (pending !== undefined) {
      take(pending, word)
      pending = undefined
    } else if (areOptionsOver) await readOperand(index)
    else if (word === '--') areOptionsOver = true
    else if (isOption(word)) await readOption(word, index)
    else if (below !== undefined) {
      command = below
      if (open !== undefined) {
        await tree.load(command)
        late = { nameAt: open.at, wordAt: index, isName: true }
      }
    } else if (word === 'help' && command.commands.length > 0) isHelp = true
    else await readOperand(index)
  }
  return { command, operands, pending, hosts, isHelp, areOptionsOver, commandAt, late }
}

const verbNamed = (word: string, { commands }: Command): Command | undefined =>
  commands.find((each) => each.name() === word)
