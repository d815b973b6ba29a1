/** Reads the options of a framework from a line of a shell or of Python. Nothing is run or looked up. */
import { printable } from '../../base/printable.ts'
import { type Framework, parseValue, refusal, type Value, type Word } from './framework.ts'

export type ReadCommand = {
  readonly values: Readonly<Record<string, Value>>
  /** Options that do not matter to placement, or that nobody knows. */
  readonly unknown: readonly string[]
  readonly renamed: readonly { readonly old: string; readonly now: string }[]
}

const MOST_LENGTH = 64 * 1024

/** @throws MusterError `usage` for a line that cannot be split, or a value that is wrong or unknown. */
export function readCommand(line: string, { words, renamed = {}, write }: Framework): ReadCommand {
  const known = namesOf(words)
  const values: Record<string, Value> = {}
  const unknown = new Set<string>()
  const old = new Map<string, string>()
  const newNames = new Map(Object.entries(renamed).map(([name, now]) => [sameName(name), now]))
  const note = (name: string, isCall = false) => {
    const now = newNames.get(isCall ? `${name}()` : sameName(name))
    if (now !== undefined) old.set(isCall ? `.${name}()` : name, isCall ? `.${now}` : now)
    else if (!isCall) unknown.add(name)
  }
  const set = (name: string, { word, isOld }: KnownName, text: string) => {
    if (/[$`]/.test(text)) throw refusal(`the value of ${name} is ${printable(text)}: write its number`)
    const value = parseValue(name, words[word] as Word, text)
    const now = newNames.get(sameName(name))
    if (now !== undefined) old.set(name, now)
    else if (isOld) old.set(name, write(word, value).replace(/[ =].*/s, ''))
    values[word] = value
  }
  let parts = splitWords(line)
  const end = parts.indexOf('--')
  // What is before it belongs to a program that starts the framework: ray job submit, srun.
  if (end >= 0) parts = parts.slice(end + 1)
  const rest: string[] = []
  for (let index = 0; index < parts.length; index++) {
    const part = parts[index] as string
    const [, name, inline] = /^(-{1,2}[A-Za-z][\w.-]*)(?:=(.*))?$/s.exec(part) ?? []
    if (name === undefined) {
      rest.push(part)
      continue
    }
    const found = known.get(sameName(name))
    const next = parts[index + 1]
    const isSwitch = found !== undefined && words[found.word]?.kind === 'switch'
    if (found === undefined || isSwitch) {
      // A single letter is an option of what starts the framework: python3 -m.
      if (found === undefined && name.length > 2) note(name)
      else if (found === undefined) continue
      else set(name, found, inline ?? 'true')
      // A value of an unknown option may be a dict with known ones.
      if (inline !== undefined && found === undefined) rest.push(inline)
      continue
    }
    if (inline === undefined && next === undefined) throw refusal(`${name} has no value`)
    if (inline === undefined) index++
    set(name, found, inline ?? (next as string))
  }
  readAssignments(rest.join(' '), { known, set, note })
  return { values, unknown: [...unknown], renamed: [...old].map(([from, now]) => ({ old: from, now })) }
}

type KnownName = { readonly word: string; readonly isOld: boolean }

const sameName = (name: string) => name.replace(/^-+/, '').replaceAll('-', '_')

function namesOf(words: Framework['words']): ReadonlyMap<string, KnownName> {
  return new Map(
    Object.entries(words).flatMap(([word, { aliases = [], old = [] }]): [string, KnownName][] => [
      [sameName(word), { word, isOld: false }],
      ...aliases.map((name) => [sameName(name), { word, isOld: false }] satisfies [string, KnownName]),
      ...old.map((name) => [sameName(name), { word, isOld: true }] satisfies [string, KnownName]),
    ]),
  )
}

/** `name=value`, `"name": value` and `.call(`, as Python and JSON write them. */
function readAssignments(
  text: string,
  to: {
    readonly known: ReadonlyMap<string, KnownName>
    set(name: string, known: KnownName, text: string): void
    note(name: string, isCall?: boolean): void
  },
): void {
  for (const [, call = ''] of text.matchAll(/\.([a-z_]{1,80})\(/g)) to.note(call, true)
  const pattern = /(?<!\w)["']?([A-Za-z_]\w{0,99})["']?\s{0,9}(=(?!=)|:)\s{0,9}/g
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const [whole, name = '', sign] = match
    // Otherwise it is part of an address.
    if (sign === ':' && !/(?:^|[{,])\s*$/.test(text.slice(Math.max(0, match.index - 10), match.index))) continue
    const found = to.known.get(name)
    const value = /^(?:\{[^{}]*\}|[^\s,(){}]+)/.exec(text.slice(match.index + whole.length))?.[0]
    if (found === undefined) to.note(name)
    else if (value === undefined) throw refusal(`${name} has no value that can be read`)
    else {
      to.set(name, found, value)
      pattern.lastIndex += value.length
    }
  }
}

/** Words as a shell splits them, with its quotes; operators separate words. Nothing is expanded. @throws MusterError `usage` */
export function splitWords(line: string): string[] {
  if (line.length > MOST_LENGTH) throw refusal(`the line is longer than ${MOST_LENGTH / 1024} KB`)
  const words: string[] = []
  let word: string | undefined
  let quote = ''
  for (let index = 0; index < line.length; index++) {
    const character = line[index] as string
    if (quote !== '') {
      if (character === quote) quote = ''
      else if (character === '\\' && quote === '"' && /["\\$`\n]/.test(line[index + 1] ?? ''))
        word = `${word}${line[++index]}`
      else word = `${word}${character}`
    } else if (character === '\\') {
      const next = line[++index] ?? ''
      if (next !== '\n') word = (word ?? '') + next
    } else if (character === '"' || character === "'") {
      quote = character
      word ??= ''
    } else if (/[\s;|&<>]/.test(character)) {
      if (word !== undefined) words.push(word)
      word = undefined
    } else if (character === '#' && word === undefined) {
      const end = line.indexOf('\n', index)
      index = end < 0 ? line.length : end
    } else word = (word ?? '') + character
  }
  if (quote !== '') throw refusal(`the line has a ${quote} that is not closed`)
  return word === undefined ? words : [...words, word]
}
