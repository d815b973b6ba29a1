/**
 * The host set language: names, ranges, groups, globs and their algebra.
 *
 *     set      = operand { ( "," | "!" | "&" | "^" ) operand }      from left to right, as ClusterShell does it
 *     operand  = "(" set ")" | "all" | "@" group | "-" | quoted name | name with [ranges], * and ?
 */
import { printable } from '../base/printable.ts'
import { matchesGlob, parseHostSpec } from './host-name.ts'
import { expandPattern, HostSetError, MAX_NAMES } from './host-set-pattern.ts'
import { didYouMean } from './nearest-word.ts'

export { foldHostSet, HostSetError } from './host-set-pattern.ts'

/** Defines the names in an expression. Everything is optional: without an inventory each name means itself. */
export type HostSetContext = {
  /** `all`, and what globs are matched against, in the inventory's order. */
  readonly names?: readonly string[]
  /** The members of a group; undefined: no such group. */
  group?(name: string): Iterable<string> | undefined
  readonly groupNames?: readonly string[]
  /** The names for `-`; each entry may be an expression. */
  readonly stdinNames?: readonly string[]
  /** False: no such host. Without it every name is valid. */
  isHost?(name: string): boolean
}

const MAX_DEPTH = 100
const OPERATORS = ',!&^'
const WORD_END = /[\s,!&^()]/

/** `h1` also names `root@h1:22`. */
export function bareName(name: string): string {
  return /[@:]/.test(name) ? (parseHostSpec(name)?.host ?? name) : name
}

function combine(left: Set<string>, operator: string, right: ReadonlySet<string>): Set<string> {
  if (operator === ',') {
    for (const name of right) left.add(name)
    return left
  }
  if (operator === '^')
    return new Set([...[...left].filter((name) => !right.has(name)), ...[...right].filter((name) => !left.has(name))])
  const isMeant = (name: string): boolean => right.has(name) || right.has(bareName(name))
  return new Set([...left].filter((name) => isMeant(name) === (operator === '&')))
}

class Evaluator {
  readonly #text: string
  readonly #context: HostSetContext
  #at = 0
  #depth = 0

  constructor(text: string, context: HostSetContext) {
    this.#text = text
    this.#context = context
  }

  evaluate(): string[] {
    const result = this.#set()
    if (this.#at < this.#text.length) this.#fail(') without ( before it')
    return [...result]
  }

  #fail(reason: string, at = this.#at): never {
    throw new HostSetError(this.#text, at, reason)
  }

  #skipSpace(): void {
    while (/\s/.test(this.#text[this.#at] ?? '')) this.#at += 1
  }

  #set(): Set<string> {
    let result = new Set(this.#operand())
    for (;;) {
      this.#skipSpace()
      const next = this.#text[this.#at]
      if (next === undefined || next === ')') return result
      if (!OPERATORS.includes(next)) this.#fail('an operator is missing; write a comma between two names')
      this.#at += 1
      result = combine(result, next, new Set(this.#operand()))
      if (result.size > MAX_NAMES) this.#fail(`the set has more than ${MAX_NAMES} names`)
    }
  }

  #operand(): Iterable<string> {
    this.#skipSpace()
    const next = this.#text[this.#at]
    if (next === undefined) {
      if (this.#text.trim() === '') this.#fail('it is empty; write a name like m8, or all')
      const last = this.#text.trimEnd().at(-1) ?? ''
      this.#fail(last === '(' ? 'a set and ) are missing after (' : `a name is missing after ${last}`)
    }
    if (next === '(') return this.#parenthesis()
    if (next === ')') this.#fail('a name is missing before )')
    if (OPERATORS.includes(next)) {
      this.#fail(`a name is missing before ${next}${next === '!' ? '; write all!NAME for all but NAME' : ''}`)
    }
    if (next === '"') return this.#quoted()
    return this.#word()
  }

  #parenthesis(): Set<string> {
    const open = this.#at
    this.#at += 1
    this.#depth += 1
    if (this.#depth > MAX_DEPTH) this.#fail(`parentheses are nested more than ${MAX_DEPTH} deep`)
    const inner = this.#set()
    if (this.#text[this.#at] !== ')') this.#fail('( without ) after it', open)
    this.#at += 1
    this.#depth -= 1
    return inner
  }

  #quoted(): string[] {
    const match = /"(?:[^"\\]|\\.)*"/suy
    match.lastIndex = this.#at
    const literal = match.exec(this.#text)?.[0]
    if (literal === undefined) this.#fail('" without a closing "')
    let name: string
    try {
      name = JSON.parse(literal) as string
    } catch {
      this.#fail('the quoted name is not a JSON string')
    }
    this.#check(name, this.#at)
    this.#at += literal.length
    return [name]
  }

  /** Reads up to the next operator outside brackets. */
  #readWord(): string {
    const start = this.#at
    let isInBrackets = false
    for (; this.#at < this.#text.length; this.#at += 1) {
      const character = this.#text[this.#at] ?? ''
      if (character === '[') isInBrackets = true
      else if (character === ']') isInBrackets = false
      else if (!isInBrackets && WORD_END.test(character)) break
    }
    return this.#text.slice(start, this.#at)
  }

  #word(): Iterable<string> {
    const at = this.#at
    const word = this.#readWord()
    if (word === '-') return this.#stdin(at)
    if (word === 'all' || word === '@all') {
      return this.#context.names ?? this.#fail('all means the hosts of an inventory, and there is none here', at)
    }
    if (word.startsWith('@')) return this.#group(word, at)
    if (/[*?]/.test(word)) {
      return expandPattern(word, at, this.#text).flatMap((glob) => this.#glob(glob, at))
    }
    const names = expandPattern(word, at, this.#text)
    for (const name of names) this.#check(name, at)
    return names
  }

  #stdin(at: number): Iterable<string> {
    const lines = this.#context.stdinNames ?? this.#fail('names cannot be read from stdin here', at)
    const { stdinNames: _, ...context } = this.#context
    const names = new Set<string>()
    for (const line of lines) for (const name of expandHostSet(line, context)) names.add(name)
    return names
  }

  #group(word: string, at: number): Iterable<string> {
    const names = new Set<string>()
    for (const group of expandPattern(word.slice(1), at + 1, this.#text)) {
      const known = this.#context.groupNames ?? []
      const matching = /[*?]/.test(group) ? known.filter((name) => matchesGlob(group, name)) : [group]
      const members = matching.map((name) => this.#context.group?.(name))
      if (group === '') this.#fail('a group name is missing after @', at)
      if (members.length === 0 || members.includes(undefined))
        this.#fail(`there is no group @${printable(group)}${didYouMean(group, known, '@')}`, at)
      for (const list of members) for (const name of list ?? []) names.add(name)
    }
    return names
  }

  #glob(glob: string, at: number): string[] {
    const all =
      this.#context.names ?? this.#fail('* and ? are matched against an inventory, and there is none here', at)
    const names = all.filter((name) => matchesGlob(glob, name))
    if (names.length === 0) this.#fail(`${printable(glob)} matches no host`, at)
    return names
  }

  #check(name: string, at: number): void {
    if (this.#context.isHost?.(name) ?? true) return
    this.#fail(`there is no host ${printable(name)}${didYouMean(name, this.#context.names ?? [])}`, at)
  }
}

/**
 * The names in an expression, each once, in its order.
 * @throws HostSetError with the place in the expression and what to write instead.
 */
export function expandHostSet(expression: string, context: HostSetContext = {}): string[] {
  return new Evaluator(expression, context).evaluate()
}
