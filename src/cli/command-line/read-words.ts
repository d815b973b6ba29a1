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
  /** Index of the first operand of the verb that a group has for words which name none of its verbs. */
  readonly defaultAt?: number | undefined
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
  let defaultAt: number | undefined

  const take = (option: Option, value: string): void => {
    if (option.long === '--hosts') hosts = value
  }
  const known = (name: string): Option | undefined =>
    [...command.options, ...tree.program.options].find(({ short, long }) => name === short || name === long)
  const find = async (name: string): Promise<Option | undefined> => {
    if (known(name) === undefined) {
      command = tree.defaultBelow(command) ?? command
      await tree.load(command)
    }
    return known(name)
  }
  const readOption = async (word: string): Promise<void> => {
    const [, name = '', value] = /^([^=]*)(?:=([\s\S]*))?$/.exec(word) ?? []
    const option = await find(name)
    if (option?.required && value === undefined) pending = option
    else if (option !== undefined && value !== undefined) take(option, value)
    else if (option === undefined && /^-[^-]./.test(word)) {
      // Short ones in one word: -vy, -ctrain.
      const first = await find(word.slice(0, 2))
      if (first !== undefined && !first.required) await readOption(`-${word.slice(2)}`)
    }
  }
  const readOperand = async (index: number): Promise<void> => {
    const below = tree.defaultBelow(command)
    if (below !== undefined) defaultAt = index
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
    const below = operands === 0 ? command.commands.find((each) => each.name() === word) : undefined
    if (pending !== undefined) {
      take(pending, word)
      pending = undefined
    } else if (areOptionsOver) await readOperand(index)
    else if (word === '--') areOptionsOver = true
    else if (isOption(word)) await readOption(word)
    else if (below !== undefined) command = below
    else if (word === 'help' && command.commands.length > 0) isHelp = true
    else await readOperand(index)
  }
  return { command, operands, pending, hosts, isHelp, areOptionsOver, commandAt, defaultAt }
}
