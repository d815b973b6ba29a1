/**
 * Finds passwords as programs print them: quoted for a shell (`set`, `declare`, `printf %q`, `ls`), as JSON, HTML, a URL or base64.
 * Before a row is searched for a password, quotes and escapes are removed from both, and codes are replaced by their characters. Parts
 * of a password are hidden as well: a pager that is still open takes its first keys and leaves the rest to a shell, and a program may
 * shorten what it repeats. Pure.
 */
import { getOrMake } from '../../base/collections.ts'
import { literalPattern } from '../../base/literal-pattern.ts'
import { SHORTEST_SECRET } from './asks-secret.ts'

const QUOTES = /['"$\\]/g
/** Codes of bytes with quotes between them, of UTF-16 units, or of a character. */
const CODES =
  /(?:(?:%[0-9A-Fa-f]{2}|\\[0-3][0-7]{2}|\\x[0-9A-Fa-f]{2})['"$]{0,6})+|(?:\\{1,16}u[0-9A-Fa-f]{4})+|&(?:#\d{1,7}|#[xX][0-9A-Fa-f]{1,6}|amp|lt|gt|quot|apos);/g
const BYTE = /%([0-9A-Fa-f]{2})|\\([0-3][0-7]{2})|\\x([0-9A-Fa-f]{2})/g
const UNIT = /u([0-9A-Fa-f]{4})/g
const NAMES: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', quot: '"', apos: "'" }
/** The base64 form of a shorter text may be part of other words. */
const LEAST_BASE64_BYTES = 6
const BASE64_START = /[\w+/]{0,2}$/
const BASE64_END = /^[\w+/]{0,4}={0,2}/

type Secret = {
  readonly text: string
  /** Its forms without quotes, with its codes and with their characters, if they are long enough. */
  readonly bare: readonly string[]
  /** For a text that is little but quotes: matches it with any quotes that a shell may add. */
  readonly quoted: RegExp | undefined
  readonly base64: readonly string[]
}

export class WrittenSecrets {
  readonly #secrets: readonly Secret[]
  readonly #parts: Parts

  /** `passwords`: those of the texts of which parts are hidden, too. */
  constructor(texts: Iterable<string>, passwords: Iterable<string> = []) {
    this.#parts = new Parts([...passwords].flatMap((text) => [bareOf(text), read(text).text]))
    this.#secrets = [...texts]
      .filter((text) => text.length >= SHORTEST_SECRET)
      .sort((a, b) => b.length - a.length)
      .map((text) => {
        const bare = [...new Set([bareOf(text), read(text).text])].filter((each) => each.length >= SHORTEST_SECRET)
        return { text, bare, quoted: bare.length === 0 ? quotedForm(text) : undefined, base64: base64Of(text) }
      })
  }

  /** Returns the row with `mark` in place of each password. */
  hide(row: string, mark: string): string {
    if (this.#secrets.length === 0 && this.#parts.isEmpty) return row
    return row
      .split(mark)
      .map((part) => this.#hideIn(part, mark))
      .join(mark)
  }

  #hideIn(row: string, mark: string): string {
    const literal = this.#secrets.find(({ text }) => row.includes(text))
    if (literal !== undefined) return this.hide(row.replaceAll(literal.text, mark), mark)
    const { text, places } = read(row)
    const hidden: boolean[] = []
    const note = (from: number, to: number): void => {
      for (let at = from; at < to; at += 1) hidden[at] = true
    }
    const usual = row.replaceAll('-', '+').replaceAll('_', '/')
    for (const { bare, quoted, base64 } of this.#secrets) {
      for (const each of bare)
        for (const at of placesOf(each, text))
          note(places[at]?.from ?? 0, places[at + each.length - 1]?.to ?? row.length)
      if (quoted !== undefined)
        for (const { 0: found, index } of row.matchAll(quoted)) note(index, index + found.length)
      for (const each of base64)
        for (const at of placesOf(each, usual)) {
          const end = at + each.length
          note(
            at - (BASE64_START.exec(usual.slice(Math.max(0, at - 2), at))?.[0].length ?? 0),
            end + (BASE64_END.exec(usual.slice(end, end + 6))?.[0].length ?? 0),
          )
        }
    }
    for (const { from, to } of this.#parts.findIn(text)) note(places[from]?.from ?? 0, places[to - 1]?.to ?? row.length)
    if (hidden.length === 0) return row
    let shown = ''
    for (let at = 0; at < row.length; at += 1)
      if (hidden[at] !== true) shown += row[at]
      else if (hidden[at - 1] !== true) shown += mark
    return shown
  }
}

/** Parts of passwords, of at least this many characters. */
const LEAST_PART = 4
/** For passwords that repeat themselves. */
const MOST_PLACES = 8

class Parts {
  readonly #passwords: readonly string[]
  /** By its first characters, where each part begins. */
  readonly #places = new Map<string, { readonly password: string; readonly at: number }[]>()

  constructor(passwords: Iterable<string>) {
    this.#passwords = [...new Set(passwords)].filter((text) => text.length > LEAST_PART)
    for (const password of this.#passwords)
      for (let at = 0; at <= password.length - LEAST_PART; at += 1) {
        const start = password.slice(at, at + LEAST_PART)
        const places = getOrMake(this.#places, start, () => [])
        if (places.length < MOST_PLACES) places.push({ password, at })
      }
  }

  get isEmpty(): boolean {
    return this.#passwords.length === 0
  }

  findIn(row: string): readonly { readonly from: number; readonly to: number }[] {
    if (this.isEmpty) return []
    const found: { from: number; to: number }[] = []
    for (let from = 0; from <= row.length - LEAST_PART; from += 1)
      for (const { password, at } of this.#places.get(row.slice(from, from + LEAST_PART)) ?? []) {
        let length = LEAST_PART
        while (at + length < password.length && row[from + length] === password[at + length]) length += 1
        const word = row.slice(from, from + length).split(' ', 1)[0] ?? ''
        for (const to of new Set([from + length, from + word.length]))
          if (isTelling(row, from, to, password)) found.push({ from, to })
      }
    return found
  }
}

/** Small letters and blanks may be a part of any words, and digits a part of any number. */
function isTelling(row: string, from: number, to: number, password: string): boolean {
  const part = row.slice(from, to)
  const share = part.length / password.length
  if (share >= 0.75) return true
  const alike = /^[\p{Ll} ]+$/u.test(part) ? /\p{L}/u : /^\d+$/.test(part) ? /\d/ : undefined
  if (alike === undefined) return true
  const first = from + part.length - part.trimStart().length
  const end = from + part.trimEnd().length
  const isWhole = ![row[first - 1] ?? '', row[end] ?? ''].some((character) => alike.test(character))
  return end - first >= LEAST_PART && isWhole && (share >= 0.5 || !/[\d ]/.test(part.trim()))
}

/** All places of `text` in `row`; none for an empty text. */
function placesOf(text: string, row: string): number[] {
  const places: number[] = []
  for (let at = text === '' ? -1 : row.indexOf(text); at >= 0; at = row.indexOf(text, at + text.length)) places.push(at)
  return places
}

/** Without quotes. `+` becomes a blank, as in forms on the web. */
const bareOf = (text: string): string => text.replace(QUOTES, '').replaceAll('+', ' ')

/** A run of quotes is one part of the pattern, which can then match in one way only and stays fast. */
function quotedForm(text: string): RegExp {
  const parts = text.match(/['"$\\]+|[^'"$\\]/gu) ?? []
  const source = parts.map((part) => (/^['"$\\]/.test(part) ? `['"$\\\\]{1,${8 * part.length}}` : literalPattern(part)))
  return new RegExp(source.join(`['"$\\\\]{0,6}`), 'gu')
}

/** The base64 characters that depend on `text` alone, for each of the three ways in which text before it may shift it. */
function base64Of(text: string): readonly string[] {
  const bytes = Buffer.from(text)
  if (bytes.length < LEAST_BASE64_BYTES) return []
  return [0, 1, 2].map((before) => {
    const all = Buffer.concat([Buffer.alloc(before), bytes]).toString('base64')
    return all.slice(Math.ceil((before * 8) / 6), Math.floor(((before + bytes.length) * 8) / 6))
  })
}

/** A row without quotes, with characters in place of codes. `places`: where each character comes from in the row. */
function read(row: string): { readonly text: string; readonly places: readonly { from: number; to: number }[] } {
  let text = ''
  const places: { from: number; to: number }[] = []
  const add = (part: string, from: number, to: number): void => {
    const bare = part.replace(QUOTES, '').replaceAll('+', ' ')
    text += bare
    for (let at = 0; at < bare.length; at += 1) places.push({ from, to })
  }
  const addPlain = (from: number, to: number): void => {
    for (let at = from; at < to; at += 1) add(row[at] ?? '', at, at + 1)
  }
  let done = 0
  for (const { 0: codes, index } of row.matchAll(CODES)) {
    addPlain(done, index)
    done = index + codes.length
    add(characterOf(codes), index, done)
  }
  addPlain(done, row.length)
  return { text, places }
}

function characterOf(codes: string): string {
  if (codes.startsWith('&')) return entity(codes.slice(1, -1))
  if (/^\\+u/.test(codes)) {
    const units = Array.from(codes.matchAll(UNIT), ([, digits = '']) => Number.parseInt(digits, 16))
    return String.fromCharCode(...units)
  }
  const bytes = Array.from(codes.matchAll(BYTE), ([, percent, octal, hex]) =>
    octal === undefined ? Number.parseInt(percent ?? hex ?? '', 16) : Number.parseInt(octal, 8),
  )
  return Buffer.from(bytes).toString()
}

function entity(name: string): string {
  const code = name.startsWith('#') ? Number(name.slice(1).replace(/^[xX]/, '0x')) : undefined
  if (code === undefined) return NAMES[name] ?? ''
  return code <= 0x10ffff ? String.fromCodePoint(code) : ''
}
