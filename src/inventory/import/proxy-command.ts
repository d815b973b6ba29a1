/** `ssh -W %h:%p GATE` as a ProxyCommand is a jump host, written before OpenSSH had ProxyJump. */
import { basename } from 'node:path'
import { defined } from '../../base/defined.ts'
import { formatHostSpec, parseHostSpec } from '../host-name.ts'
import { splitShellWords } from './shell-words.ts'

/** Options of ssh(1) that take a value. */
const WITH_VALUE = 'bBcDeEFiIJlLmoOpPQRSwW'
/** What the connection to the jump host does without, because its stdin and stdout are the connection to the host. */
const NEEDLESS = /^[aTxknNqvC46]+$/

export type CommandJump = {
  /** `[user@]gate[:port]`, the gates before it first. */
  readonly jump: string
  /** Options of the connection to the gate that a jump host cannot have. */
  readonly leftOut: readonly string[]
}

/** Undefined: the words are anything else than an ssh to one host that forwards to `%h:%p`. */
export function jumpOfCommand(words: readonly string[]): CommandJump | undefined {
  const [program = '', ...rest] = words[0] === 'exec' ? words.slice(1) : words
  if (basename(program) !== 'ssh') return undefined
  const values = new Map<string, string>()
  const operands: string[] = []
  const leftOut: string[] = []
  const given = rest.values()
  for (const word of given) {
    if (!/^-[A-Za-z0-9]/.test(word)) {
      operands.push(word)
      continue
    }
    // Letters without a value may precede the one that takes it: -qW %h:%p
    const at = [...word].findIndex((letter, index) => index > 0 && WITH_VALUE.includes(letter))
    const letters = word.slice(1, at < 0 ? undefined : at)
    if (letters !== '' && !NEEDLESS.test(letters)) leftOut.push(`-${letters}`)
    if (at < 0) continue
    const letter = word[at] ?? ''
    const value = word.slice(at + 1) || given.next().value
    if (value === undefined) return undefined
    if (!'WlpJ'.includes(letter)) leftOut.push(`-${letter} ${value}`)
    else if (!values.has(letter)) values.set(letter, value)
  }
  const [destination = ''] = operands
  if (operands.length !== 1 || !['%h:%p', '[%h]:%p'].includes(values.get('W') ?? '')) return undefined
  const spec = parseHostSpec(destination.replace(/^ssh:\/\//, ''))
  if (spec === undefined) return undefined
  const { host, user = values.get('l'), port = values.has('p') ? Number(values.get('p')) : undefined } = spec
  const gate = formatHostSpec({ host, ...defined({ user, port }) })
  if (parseHostSpec(gate) === undefined) return undefined
  return { jump: [values.get('J'), gate].filter((hop) => hop !== undefined).join(','), leftOut }
}

/** The same in the arguments of an ssh to a host: `-J gate`, `-o ProxyJump=gate` or `-o ProxyCommand="ssh -W %h:%p gate"`. */
export function jumpOfArguments(words: readonly string[]): CommandJump | undefined {
  for (const [index, word] of words.entries()) {
    const [, letter = '', attached = ''] = /^-[46AaCgKkNnqTtXxYy]*([Jo])(.*)$/s.exec(word) ?? []
    const value = attached || (words[index + 1] ?? '')
    if (letter === 'J') return { jump: value, leftOut: [] }
    const [, keyword = '', setting = ''] = /^\s*(\w+)(?:\s*=\s*|\s+)(.*)$/s.exec(letter === 'o' ? value : '') ?? []
    if (/^proxyjump$/i.test(keyword)) return { jump: setting, leftOut: [] }
    if (/^proxycommand$/i.test(keyword)) return jumpOfCommand(splitShellWords(setting) ?? [])
  }
  return undefined
}
