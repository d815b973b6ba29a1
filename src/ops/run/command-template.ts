/** The parts of a command that differ between hosts. Pure. */
import { shellQuote } from '../../base/shell-quote.ts'

export type TemplateHost = {
  readonly host: string
  /** In place of `host`. */
  readonly ownName?: string
  readonly number: number
  readonly user: string
}

/**
 * `%h`, `%n` and `%u` become the host's name, number and user, quoted for the shell where they need it; `%%h` stays `%h`.
 * Other percent signs stay as they are.
 */
export function expandCommand(template: string, { host, ownName = host, number, user }: TemplateHost): string {
  return expand(template, { h: shellQuote(ownName), n: String(number), u: shellQuote(user) })
}

/** The same for an argument that no shell reads. */
export function expandWord(template: string, { host, ownName = host, number, user }: TemplateHost): string {
  return expand(template, { h: ownName, n: String(number), u: user })
}

const PLACEHOLDER = /%(%?)([hnu])/g
const MEANINGS = { h: 'name', n: 'number', u: 'user' } as const
const LIST = new Intl.ListFormat('en-GB')

/** Says which placeholders these words have, as stat, squeue and others have formats of the same letters. Undefined: none. */
export function replacedIn(words: readonly string[]): string | undefined {
  const isIn = (wanted: string) =>
    words.some((word) => [...word.matchAll(PLACEHOLDER)].some(([, literal, letter]) => !literal && letter === wanted))
  const letters = (['h', 'n', 'u'] as const).filter(isIn)
  const [first] = letters
  if (first === undefined) return undefined
  const names = LIST.format(letters.map((letter) => `%${letter}`))
  const meanings = LIST.format(letters.map((letter) => MEANINGS[letter]))
  return `${names} ${letters.length > 1 ? 'stand' : 'stands'} for each host's ${meanings}; for a literal %${first} write %%${first}, or pass --raw`
}

function expand(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(PLACEHOLDER, (_, literal: string, letter: string) =>
    literal === '' ? (values[letter] ?? '') : `%${letter}`,
  )
}

/** What `#!` in the first line asks for, as Linux reads it (execve(2)): the interpreter and at most one argument. */
export function parseInterpreter(head: string): readonly string[] {
  const match = /^#![ \t]*(?<program>[^\s]+)(?:[ \t]+(?<argument>[^\r\n]*?))?[ \t\r]*(?:\n|$)/.exec(head)
  const { program, argument } = match?.groups ?? {}
  return program === undefined ? [] : argument ? [program, argument] : [program]
}
