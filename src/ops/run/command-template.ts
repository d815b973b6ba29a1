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

function expand(template: string, values: Readonly<Record<string, string>>): string {
  return template.replace(/%(%?)([hnu])/g, (_, literal: string, letter: string) =>
    literal === '' ? (values[letter] ?? '') : `%${letter}`,
  )
}

/** What `#!` in the first line asks for, as Linux reads it (execve(2)): the interpreter and at most one argument. */
export function parseInterpreter(head: string): readonly string[] {
  const match = /^#![ \t]*(?<program>[^\s]+)(?:[ \t]+(?<argument>[^\r\n]*?))?[ \t\r]*(?:\n|$)/.exec(head)
  const { program, argument } = match?.groups ?? {}
  return program === undefined ? [] : argument ? [program, argument] : [program]
}
