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

const MEANINGS = { h: 'name', n: 'number', u: 'user' } as const

/** What was replaced in these words, in a sentence: programs like stat and squeue have formats of the same letters. Undefined: nothing. */
export function replacedIn(words: readonly string[]): string | undefined {
  const found = new Set(
    words.flatMap((word) =>
      [...word.matchAll(PLACEHOLDER)].flatMap(([whole, literal]) => (literal === '' ? whole : [])),
    ),
  )
  const letters = (['h', 'n', 'u'] as const).filter((letter) => found.has(`%${letter}`))
  const [first] = letters
  if (first === undefined) return undefined
  const names = letters.map((letter) => `%${letter}`)
  const meanings = letters.map((letter) => MEANINGS[letter])
  return `${names.join(' and ')} ${letters.length > 1 ? 'stand' : 'stands'} for each host's ${meanings.join(' and ')}; for a literal %${first} write %%${first}, or pass --raw`
}

const PLACEHOLDER = /%(%?)([hnu])/g

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
