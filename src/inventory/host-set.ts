/**
 * The host set language: names, ranges, groups, globs and their algebra; and its shortest usual notation for names, `m[8-10],gpu[01-04]`.
 *
 *     set      = operand { ( "," | "!" | "&" | "^" ) operand }      from left to right, as ClusterShell does it
 *     operand  = "(" set ")" | "all" | "@*" | "@" group | "-" | quoted name | name with [ranges], * and ?
 */
import { getOrMake } from '../base/collections.ts'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import { matchesGlob, parseHostSpec, RESERVED_NAMES } from './host-name.ts'
import { didYouMean } from './nearest-word.ts'

/** The most names that one expression may expand to. */
export const MAX_NAMES = 100_000
// Beyond 15 digits a number is no longer exact: such a chunk is text.
const MAX_RANGE_DIGITS = 15

/** What is wrong with a host set; `offset` is where, from 0, in the expression. */
export class HostSetError extends MusterError {
  readonly offset: number
  readonly reason: string

  constructor(expression: string, offset: number, reason: string) {
    const shown = expression.length > 80 ? `${expression.slice(0, 77)}…` : expression
    super('usage', `host set ${printable(shown) || '""'}: at character ${offset + 1}: ${reason}`, {
      hint: 'Host sets are written like m8, m[8-10], gpu[01-16/2], @workers, all!m3, m*.',
    })
    this.offset = offset
    this.reason = reason
  }
}

/** Numbers from `start` to `end`; `width` 0: no zero padding. */
type Range = { readonly start: number; readonly end: number; readonly step: number; readonly width: number }
/** The pieces of a union, apart at its commas outside brackets. */
export const piecesOf = (set: string): string[] => set.match(/(?:[^,[]|\[[^\]]*\])+/g) ?? []

type Part = { readonly text: string } | { readonly ranges: readonly (Range | string)[]; readonly count: number }

function parseRange(item: string, offset: number, expression: string): Range | string {
  const fail = (reason: string): never => {
    throw new HostSetError(expression, offset, reason)
  }
  if (item === '') return fail('a number is missing; write a range like [8-10] or [1,3,5-9]')
  if (/^\d+$/.test(item)) return item
  const match = /^(\d+)\s*-\s*(\d+)(?:\s*\/\s*(\d+))?$/.exec(item)
  if (!match) return fail(`${printable(item)} is not a range of numbers; write it like 8-10, 01-16 or 1-9/2`)
  const [, first = '', last = '', stepText = '1'] = match
  if (first.length > MAX_RANGE_DIGITS || last.length > MAX_RANGE_DIGITS || stepText.length > MAX_RANGE_DIGITS) {
    return fail(`the numbers of a range have at most ${MAX_RANGE_DIGITS} digits`)
  }
  const start = Number(first)
  const end = Number(last)
  const step = Number(stepText)
  const isPadded = [first, last].some((text) => text.length > 1 && text.startsWith('0'))
  if (isPadded && first.length !== last.length) {
    const width = Math.max(first.length, last.length)
    const sample = `${first.padStart(width, '0')}-${last.padStart(width, '0')}`
    return fail(`the ends of ${item} are padded to different widths; write ${sample}`)
  }
  if (start > end) return fail(`the range ${item} runs backwards; write ${last}-${first}`)
  if (step < 1) return fail(`the step of ${item} is 0; write 1 or more`)
  return { start, end, step, width: isPadded ? first.length : 0 }
}

const countOf = (range: Range | string): number =>
  typeof range === 'string' ? 1 : Math.floor((range.end - range.start) / range.step) + 1

function* numbersOf(ranges: readonly (Range | string)[]): Generator<string> {
  for (const range of ranges) {
    if (typeof range === 'string') yield range
    else for (let n = range.start; n <= range.end; n += range.step) yield String(n).padStart(range.width, '0')
  }
}

function parseParts(atom: string, offset: number, expression: string): Part[] {
  const parts: Part[] = []
  let from = 0
  let scan = 0
  for (;;) {
    const open = atom.indexOf('[', scan)
    const stray = atom.indexOf(']', scan)
    if (stray >= 0 && (open < 0 || stray < open)) {
      throw new HostSetError(expression, offset + stray, '] without [ before it')
    }
    if (open < 0) break
    const close = atom.indexOf(']', open)
    if (close < 0) throw new HostSetError(expression, offset + open, '[ without ] after it; write a range like m[8-10]')
    scan = close + 1
    // A bracket at the start of the address whose content has a colon is an IPv6 address, not a range.
    if ((open === 0 || atom[open - 1] === '@') && atom.slice(open + 1, close).includes(':')) continue
    if (open > from) parts.push({ text: atom.slice(from, open) })
    let at = offset + open + 1
    const ranges = atom
      .slice(open + 1, close)
      .split(',')
      .map((item) => {
        const range = parseRange(item.trim(), at, expression)
        at += item.length + 1
        return range
      })
    parts.push({ ranges, count: ranges.reduce((sum, range) => sum + countOf(range), 0) })
    from = scan
  }
  if (from < atom.length) parts.push({ text: atom.slice(from) })
  return parts
}

/**
 * Expands a pattern to its names; the last range varies fastest.
 * @throws HostSetError if it is malformed or has more than MAX_NAMES names; this is checked before anything is expanded
 */
function expandPattern(atom: string, offset = 0, expression = atom): string[] {
  if (!atom.includes('[') && !atom.includes(']')) return [atom]
  const parts = parseParts(atom, offset, expression)
  const count = parts.reduce((product, part) => product * ('text' in part ? 1 : part.count), 1)
  if (count > MAX_NAMES) {
    throw new HostSetError(expression, offset, `it names ${count} hosts; the maximum is ${MAX_NAMES}`)
  }
  let names = ['']
  for (const part of parts) {
    if ('text' in part) names = names.map((name) => name + part.text)
    else {
      const numbers = [...numbersOf(part.ranges)]
      names = names.flatMap((name) => numbers.map((number) => name + number))
    }
  }
  return names
}

const DIGITS = /(\d+)/

const compareText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0)

function compareNumbers(a: string, b: string): number {
  const left = a.startsWith('0') ? a.replace(/^0+(?=\d)/, '') : a
  const right = b.startsWith('0') ? b.replace(/^0+(?=\d)/, '') : b
  return left.length - right.length || compareText(left, right)
}

function compareNaturalKeys(left: readonly string[], right: readonly string[]): number {
  const shared = Math.min(left.length, right.length)
  let padding = 0
  for (let i = 0; i < shared; i += 1) {
    const x = left[i] ?? ''
    const y = right[i] ?? ''
    const order = i % 2 === 1 ? compareNumbers(x, y) : compareText(x, y)
    if (order !== 0) return order
    padding ||= x.length - y.length
  }
  return left.length - right.length || padding
}

// Names that need no quotes in an expression.
const PLAIN_NAME = /^[\p{L}\p{N}_.:%][\p{L}\p{N}\p{M}_.:%+/@-]*$/u

/** Numbers along one dimension, ascending, and how they are written inside the brackets. */
type Axis = { readonly numbers: readonly number[]; readonly text: string }
/** A product of axes: every combination of their numbers. */
type Block = readonly Axis[]

function createAxis(numbers: readonly number[], width: number): Axis {
  const [only] = numbers
  const show = (n: number): string => String(n).padStart(width, '0')
  if (numbers.length === 1 && only !== undefined) return { numbers, text: show(only) }
  const sorted = numbers.toSorted((a, b) => a - b)
  const pieces: string[] = []
  for (let from = 0; from < sorted.length; ) {
    let to = from
    while (to + 1 < sorted.length && sorted[to + 1] === (sorted[to] ?? 0) + 1) to += 1
    const first = show(sorted[from] ?? 0)
    pieces.push(from === to ? first : `${first}-${show(sorted[to] ?? 0)}`)
    from = to + 1
  }
  return { numbers: sorted, text: pieces.join(',') }
}

/** Joins the blocks that differ in this dimension alone. */
function mergeAlong(blocks: readonly Block[], dimension: number, width: number): Block[] {
  const merged = Map.groupBy(blocks, (block) =>
    block.map(({ text }, d) => (d === dimension ? '' : `${text} `)).join(''),
  )
  return Array.from(merged.values(), (same) => {
    const [first = []] = same
    if (same.length === 1) return first
    const numbers = same.flatMap((block) => block[dimension]?.numbers ?? [])
    return first.with(dimension, createAxis(numbers, width))
  })
}

function mergeAll(blocks: readonly Block[], widths: readonly number[], order: readonly number[]): readonly Block[] {
  let current = blocks
  for (;;) {
    const before = current.length
    for (const dimension of order) current = mergeAlong(current, dimension, widths[dimension] ?? 0)
    if (current.length === before || current.length === 1) return current
  }
}

/** Names with the same texts between their numbers and the same padding. */
type Family = { readonly texts: readonly string[]; readonly widths: readonly number[]; readonly rows: number[][] }

function foldFamily({ texts, widths, rows }: Family): string[] {
  const dimensions = widths.map((_, d) => d)
  const varying = dimensions.filter((d) => rows.some((row) => row[d] !== rows[0]?.[d]))
  const varyingWidths = varying.map((d) => widths[d] ?? 0)
  const blocks = rows.map((row): Block => varying.map((d, i) => createAxis([row[d] ?? 0], varyingWidths[i] ?? 0)))
  const forward = varying.map((_, i) => i)
  let folded = mergeAll(blocks, varyingWidths, forward.toReversed())
  if (folded.length > 1 && varying.length > 1 && folded.length <= 1000) {
    const other = mergeAll(blocks, varyingWidths, forward)
    if (other.length < folded.length) folded = other
  }
  return folded.map((block) => {
    let name = texts[0] ?? ''
    for (const d of dimensions) {
      const axis = block[varying.indexOf(d)]
      if (axis === undefined) name += String(rows[0]?.[d] ?? 0).padStart(widths[d] ?? 0, '0')
      else name += axis.numbers.length === 1 ? axis.text : `[${axis.text}]`
      name += texts[d + 1] ?? ''
    }
    return name
  })
}

/** Alternating texts and numbers, with texts at both ends; a number too long to be exact belongs to the text around it. */
function splitName(name: string): string[] {
  const chunks: string[] = ['']
  name.split(DIGITS).forEach((chunk, index) => {
    if (index % 2 === 1 && chunk.length <= MAX_RANGE_DIGITS) chunks.push(chunk, '')
    else chunks[chunks.length - 1] += chunk
  })
  return chunks
}

const hasLeadingZero = (digits: string): boolean => digits.length > 1 && digits.startsWith('0')

/** Splits names of equal texts by padding: `10` goes with `09` where there is one, else with `9`. */
function familiesOf(texts: readonly string[], rows: readonly (readonly string[])[]): Family[] {
  const dimensions = texts.length - 1
  const padded = Array.from({ length: dimensions }, () => new Set<number>())
  for (const row of rows) {
    for (const [d, digits] of row.entries()) if (hasLeadingZero(digits)) padded[d]?.add(digits.length)
  }
  const families = new Map<string, Family>()
  for (const row of rows) {
    const widths = row.map((digits, d) => (padded[d]?.has(digits.length) ? digits.length : 0))
    const key = widths.join(' ')
    getOrMake(families, key, (): Family => ({ texts, widths, rows: [] })).rows.push(row.map(Number))
  }
  return [...families.values()]
}

/** Folds names into one expression, in natural order. Accepts any string; `expandHostSet` returns the same set. */
export function foldHostSet(names: Iterable<string>): string {
  const pieces: string[] = []
  const bySkeleton = new Map<string, { texts: string[]; rows: string[][] }>()
  for (const name of new Set(names)) {
    // Brackets with a colon in them are an IPv6 address, any others a range.
    if (/\[[^\]]*:/.test(name) && parseHostSpec(name)) pieces.push(name)
    else if (!PLAIN_NAME.test(name) || RESERVED_NAMES.includes(name)) pieces.push(JSON.stringify(name))
    else {
      const chunks = splitName(name)
      const texts = chunks.filter((_, index) => index % 2 === 0)
      const key = texts.join('\0')
      const row = chunks.filter((_, index) => index % 2 === 1)
      getOrMake(bySkeleton, key, () => ({ texts, rows: [] })).rows.push(row)
    }
  }
  for (const { texts, rows } of bySkeleton.values()) {
    for (const family of familiesOf(texts, rows)) pieces.push(...foldFamily(family))
  }
  return pieces
    .map((piece) => ({ piece, key: piece.replace(/\[(\d+)[^\]]*\]/g, '$1').split(DIGITS) }))
    .sort((a, b) => compareNaturalKeys(a.key, b.key))
    .map(({ piece }) => piece)
    .join(',')
}

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
  /** Why a name is no host here; undefined: unknown, so similar names are suggested. */
  whyNoHost?(name: string): string | undefined
}

/** Turns blanks between names into commas, so that a prompt takes `m1 m3` as the command line of `muster` does. */
export const withCommas = (typed: string): string =>
  typed.includes('"') ? typed : typed.trim().replace(/(?<=[\w.\])*?])\s+(?=[\w@(*?[])/g, ',')

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
    // As in ClusterShell, @* is every host, with or without a group.
    if (['all', '@all', '@*'].includes(word)) {
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
      if (members.length === 0 || members.includes(undefined)) {
        this.#refuseAmbiguous(group, known, at, '@')
        this.#fail(`there is no group @${printable(group)}${didYouMean(group, known, '@')}`, at)
      }
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

  /** Of several files, which have the same name in common. */
  #refuseAmbiguous(name: string, known: readonly string[], at: number, sign = ''): void {
    const qualified = known.filter((each) => each.endsWith(`/${name}`)).map((each) => `${sign}${printable(each)}`)
    if (qualified.length > 0) this.#fail(`${sign}${printable(name)} is ambiguous: ${qualified.join(' or ')}`, at)
  }

  #check(name: string, at: number): void {
    if (this.#context.isHost?.(name) ?? true) return
    this.#refuseAmbiguous(name, this.#context.names ?? [], at)
    const reason = this.#context.whyNoHost?.(name)
    if (reason !== undefined) this.#fail(reason, at)
    const isGroup = this.#context.group?.(name) !== undefined
    const hint = isGroup ? `; the group is @${printable(name)}` : didYouMean(name, this.#context.names ?? [])
    this.#fail(`there is no host ${printable(name)}${hint}`, at)
  }
}

/**
 * The names in an expression, each once, in its order.
 * @throws HostSetError with the place in the expression and what to write instead.
 */
export function expandHostSet(expression: string, context: HostSetContext = {}): string[] {
  return new Evaluator(expression, context).evaluate()
}
