/** One name pattern of a host set, `rack[1-2]n[01-08]`: text with ranges of numbers in brackets. */
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'

/** The most names that one expression may expand to. */
export const MAX_NAMES = 100_000
// Beyond 15 digits a number is no longer exact: such a chunk is text.
export const MAX_RANGE_DIGITS = 15

/** What is wrong with a host set; `offset` is where, from 0, in the expression. */
export class HostSetError extends MusterError {
  readonly offset: number
  readonly reason: string

  constructor(expression: string, offset: number, reason: string) {
    const shown = expression.length > 80 ? `${expression.slice(0, 77)}…` : expression
    super('usage', `host set ${printable(shown)}: at character ${offset + 1}: ${reason}`, {
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
  const match = /^(\d+)-(\d+)(?:\/(\d+))?$/.exec(item)
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

/** A bracket at the start of the address whose content has a colon is an IPv6 address, not a range. */
function isIpv6Bracket(atom: string, open: number, close: number): boolean {
  return (open === 0 || atom[open - 1] === '@') && atom.slice(open + 1, close).includes(':')
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
    if (isIpv6Bracket(atom, open, close)) continue
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
export function expandPattern(atom: string, offset = 0, expression = atom): string[] {
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
