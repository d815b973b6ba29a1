/**
 * Whether a line for sh is one simple command. Only that can stand between the words of another line: `exec env` before `a; b` would
 * run `a` alone. Quotes, variables, substitutions, globs and redirections may be part of it (POSIX, Shell Command Language, 2.9.1).
 */
import type { Launcher } from './launcher.ts'

/** `text`: the command, without blanks around it. `variable`: the name of a variable that the line sets for its command. */
type OneCommand =
  | { readonly isOne: true; readonly text: string }
  | { readonly isOne: false; readonly why: string; readonly variable?: string }

type TakenCommand =
  | { readonly text: string; readonly reason?: undefined }
  | { readonly reason: string; readonly hint: string }

/** The command as the launcher takes it, or why it does not. */
export function commandFor({ name, inserts }: Pick<Launcher, 'name' | 'inserts'>, command: string): TakenCommand {
  if (inserts === undefined) return { text: command }
  const one = oneCommand(command)
  if (one.isOne) return { text: one.text }
  return {
    reason: `--launch ${name} needs one simple command, but this line ${one.why}`,
    hint: one.variable === undefined ? inserts.hint : `Use: --env ${one.variable}=VALUE`,
  }
}

/** As first words they begin several commands. Some are words of bash, which is sh on some systems. */
const RESERVED =
  /^(?:!|\{|\}|\[\[|case|coproc|do|done|elif|else|esac|fi|for|function|if|in|select|then|time|until|while)$/
const ASSIGNMENT = /^([A-Za-z_]\w*)\+?=/
const REDIRECTION = /^\d*(?:>\||>>|>&|<>|<&|[<>])/
const OPERATOR = /^(?:&&|\|\||;;|\d*<<|[;&|()])/
/** An escaped newline is none. */
const BLANKS = /^(?:[ \t]|\\\n)+/
const END = /^[ \t\n]*$/

class NotOne extends Error {}

const notOne = (why: string): OneCommand => ({ isOne: false, why })

/** In doubt, as in rare forms of substitutions, it says no. */
export function oneCommand(line: string): OneCommand {
  try {
    return readCommand(line.replace(/^[ \t\n]+/, ''))
  } catch (error) {
    if (error instanceof NotOne) return notOne(error.message)
    throw error
  }
}

function readCommand(line: string): OneCommand {
  let at = 0
  let end = 0
  let words = 0
  let isTarget = false
  for (;;) {
    const rest = line.slice(at)
    if (END.test(rest)) break
    const blanks = BLANKS.exec(rest)?.[0].length ?? 0
    const operator = OPERATOR.exec(rest)?.[0]
    const redirection = REDIRECTION.exec(rest)?.[0]
    if (blanks > 0) at += blanks
    else if (operator !== undefined) return notOne(`has ${operator} outside quotes`)
    else if (rest.startsWith('\n')) return notOne('has several lines')
    else if (rest.startsWith('#')) return notOne('has a comment (#)')
    else if (redirection !== undefined) {
      if (isTarget) break
      at += redirection.length
      isTarget = true
    } else {
      end = endOfWord(line, at)
      const word = line.slice(at, end)
      at = end
      if (words === 0 && !isTarget) {
        const name = ASSIGNMENT.exec(word)?.[1]
        if (name !== undefined)
          return { isOne: false, why: `sets the variable ${name} before the command`, variable: name }
        if (RESERVED.test(word)) return notOne(`begins with ${word}`)
      }
      if (!isTarget) words += 1
      isTarget = false
    }
  }
  if (isTarget) return notOne('has a redirection without a file')
  return words === 0 ? notOne('has no command') : { isOne: true, text: line.slice(0, end) }
}

function endOfWord(line: string, begin: number): number {
  let at = begin
  while (at < line.length && !/[ \t\n;&|()<>]/.test(line[at] ?? '')) at = behindPart(line, at, '')
  return at
}

/** Behind the character at this place, or behind all that it quotes or substitutes. `close`: the end of what is around it. */
function behindPart(line: string, at: number, close: string): number {
  const character = line[at]
  if (character === '\\') {
    if (at + 1 === line.length) throw new NotOne('ends with a backslash')
    return at + 2
  }
  if (close === '`') return at + 1
  if (character === "'" && close !== '"') {
    // Shells do not agree on what it means there.
    if (close === '}') throw new NotOne(`has ' in \${…}`)
    if (line[at - 1] === '$') throw new NotOne("has $'…'")
    const end = line.indexOf("'", at + 1)
    if (end < 0) throw new NotOne("has a ' that is not closed")
    return end + 1
  }
  if (character === '"' || character === '`') return behindClose(line, at + 1, character)
  if (line.startsWith('$((', at)) return behindClose(line, behindClose(line, at + 3, '))'), ')')
  if (line.startsWith('$(', at)) return behindClose(line, at + 2, ')')
  if (line.startsWith('${', at)) return behindClose(line, at + 2, '}')
  if (close.startsWith(')') && character === '(') return behindClose(line, at + 1, close)
  if (close === ')' && line.startsWith('<<', at)) throw new NotOne('has << in $(…)')
  if (close === ')' && /^[\s;&|(]#/.test(line.slice(at - 1, at + 1))) throw new NotOne('has a comment (#)')
  return at + 1
}

/** `))`: a `)` in arithmetic, where `<<` and `#` are operators. */
function behindClose(line: string, begin: number, close: string): number {
  let at = begin
  while (line[at] !== close[0]) {
    if (at >= line.length) throw new NotOne(`has a ${OPENING[close] ?? close} that is not closed`)
    at = behindPart(line, at, close)
  }
  return at + 1
}

const OPENING: Readonly<Record<string, string>> = { ')': '(', '))': '(', '}': '{' }
