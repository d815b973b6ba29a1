/** Reads a YAML document by a schema: reports all problems at once, each with its place, and accepts no unknown key. */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  type Node,
  Parser,
  parseDocument,
  visit,
  YAMLParseError,
} from 'yaml'
import { printable } from '../base/printable.ts'
import { didYouMean } from './nearest-word.ts'

/** `line` and `column` count from 1. */
export type YamlProblem = { readonly line: number; readonly column: number; readonly message: string }

/** A value and its place: an offset into the text. */
export type Located<T> = { readonly value: T; readonly offset: number }

/** JSON Schema, draft 7: the version that editors know best. */
export type JsonSchema = { readonly [keyword: string]: unknown }

/** How one kind of value is read, its text for the reference, and the same for editors. */
export interface Schema<T> {
  /** `text`, `number`, `host set`, … */
  readonly type: string
  /** Keys below this one, for the reference. */
  readonly fields?: Fields
  /** Accepts everything that `read` accepts, and more only where it has a `$comment`. */
  json(): JsonSchema
  /** Undefined: a problem was reported. */
  read(node: Node | null, reader: YamlReader, path: string): T | undefined
}

export type Field<T = unknown> = {
  readonly schema: Schema<T>
  /** One or two sentences for the reference. */
  readonly about: string
  readonly example?: string
  /** What applies if the key is absent, in words. */
  readonly fallback?: string
  readonly isRequired?: boolean
}
export type Fields = Readonly<Record<string, Field>>

type Values<F extends Fields> = { readonly [K in keyof F]?: F[K] extends Field<infer T> ? T : never }

// More nodes than this are read only when aliases multiply them.
const MAX_NODES = 1_000_000
const MESSAGE_LENGTH = 300
const MOST_SHOWN = 100
const VALUE_LENGTH = 60

export class YamlReader {
  readonly document: Document.Parsed
  readonly #lines = new LineCounter()
  readonly #aliasTargets = new Map<Node, Node>()
  readonly #problems: { offset: number; message: string }[] = []
  #nodesRead = 0

  constructor(text: string) {
    this.document = parseYaml(text, { lineCounter: this.#lines, prettyErrors: false, uniqueKeys: false })
    for (const { pos, message } of [...this.document.errors, ...this.document.warnings]) this.fail(pos[0], message)
    this.#collectAliases()
  }

  /** The text is YAML, though its content may be wrong. */
  get isReadable(): boolean {
    return this.document.errors.length === 0
  }

  fail(offset: number, message: string): undefined {
    this.#problems.push({ offset, message: problemText(message) })
  }

  get problemCount(): number {
    return this.#problems.length
  }

  /** In the order of the text. */
  get problems(): readonly YamlProblem[] {
    return this.#problems
      .toSorted((a, b) => a.offset - b.offset)
      .map(({ offset, message }) => ({ ...this.placeOf(offset), message }))
  }

  placeOf(offset: number): { line: number; column: number } {
    const { line, col } = this.#lines.linePos(offset)
    return { line: Math.max(1, line), column: Math.max(1, col) }
  }

  read<T>(schema: Schema<T>, node: Node | null, path: string): T | undefined {
    this.#nodesRead += 1
    if (this.#nodesRead === MAX_NODES) this.fail(offsetOf(node), 'aliases make this file too large to read')
    if (this.#nodesRead >= MAX_NODES) return undefined
    return schema.read(this.resolve(node), this, path)
  }

  /** The node that an alias stands for. */
  resolve(node: Node | null): Node | null {
    return node === null ? null : (this.#aliasTargets.get(node) ?? node)
  }

  #collectAliases(): void {
    const anchors = new Map<string, Node>()
    visit(this.document, (_, node) => {
      if (isAlias(node)) {
        const target = anchors.get(node.source)
        if (target) this.#aliasTargets.set(node, target)
      } else if ((isScalar(node) || isMap(node) || isSeq(node)) && node.anchor !== undefined) {
        anchors.set(node.anchor, node)
      }
    })
  }
}

export function offsetOf(node: Node | null): number {
  return node?.range?.[0] ?? 0
}

/** Where the text inside a scalar begins: past the quote. */
export function textOffsetOf(node: Node | null): number {
  const isQuoted = isScalar(node) && (node.type === 'QUOTE_DOUBLE' || node.type === 'QUOTE_SINGLE')
  return offsetOf(node) + (isQuoted ? 1 : 0)
}

/** Messages quote the file, also where the YAML library wrote them. */
export const problemText = (message: string): string => clip(printable(message), MESSAGE_LENGTH)

/** One line each. */
export function problemList(lines: readonly string[]): string {
  const shown = lines.slice(0, MOST_SHOWN)
  return [...shown, ...(lines.length > MOST_SHOWN ? [`… and ${lines.length - MOST_SHOWN} more`] : [])].join('\n')
}

const clip = (text: string, length: number): string => (text.length <= length ? text : `${text.slice(0, length)}…`)

function describe(node: Node | null): string {
  if (isAlias(node)) return `the alias *${node.source}, which has no anchor`
  if (isMap(node)) return 'a mapping'
  if (isSeq(node)) return 'a list'
  if (!isScalar(node) || node.value === null) return 'nothing'
  if (node.value === '') return 'an empty text'
  return typeof node.value === 'string'
    ? `the text ${clip(printable(node.value), VALUE_LENGTH)}`
    : `the ${typeof node.value} ${node.value}`
}

export function failType(node: Node | null, reader: YamlReader, path: string, wanted: string): undefined {
  return reader.fail(offsetOf(node), `${path} must be ${wanted}, not ${describe(node)}`)
}

/** A key as it is written, so that `1` and `01` stay what they are. */
export function keyText(key: unknown): string | undefined {
  if (!isScalar(key)) return undefined
  return typeof key.value === 'string' ? key.value : (key.source ?? String(key.value))
}

type Entry = { readonly key: string; readonly keyNode: Node; readonly node: Node | null }

/** The entries of a mapping; keys that are not text, `<<` and `__proto__` are reported and left out. */
function readEntries(node: Node | null, reader: YamlReader, path: string): readonly Entry[] | undefined {
  if (!isMap(node)) return failType(node, reader, path, 'a mapping of `key: value` lines')
  const entries: Entry[] = []
  const seen = new Set<string>()
  for (const { key: rawKey, value } of node.items) {
    const keyNode = reader.resolve(rawKey as Node)
    const key = keyText(keyNode)
    if (keyNode === null || key === undefined || key === '') {
      reader.fail(offsetOf(keyNode ?? node), `a key of ${path} must be text`)
    } else if (key === '<<') {
      reader.fail(offsetOf(keyNode), 'merge keys (<<) are not supported; put common values under defaults')
    } else if (key === '__proto__') {
      reader.fail(offsetOf(keyNode), '__proto__ is not a key')
    } else if (seen.has(key)) {
      reader.fail(offsetOf(keyNode), `${printable(key)} is listed twice in ${path}; remove one`)
    } else {
      seen.add(key)
      entries.push({ key, keyNode, node: (value ?? null) as Node | null })
    }
  }
  return entries
}

function jsonOfField({ schema, about, example, fallback }: Field): JsonSchema {
  const description = fallback === undefined ? about : `${about} If absent: ${fallback}.`
  const examples = example === undefined ? {} : { examples: [parseYaml(example).toJS()] }
  return { ...schema.json(), description, ...examples }
}

/**
 * A mapping with known keys. Unknown ones are reported with the nearest valid word.
 * `isOneOf`: it has exactly one of them.
 */
export function object<F extends Fields>(fields: F, { isOneOf = false } = {}): Schema<Values<F>> {
  return {
    type: 'mapping',
    fields,
    json() {
      const required = Object.keys(fields).filter((key) => fields[key]?.isRequired)
      return {
        type: 'object',
        properties: Object.fromEntries(Object.entries(fields).map(([key, field]) => [key, jsonOfField(field)])),
        additionalProperties: false,
        ...(required.length === 0 ? {} : { required }),
        ...(isOneOf ? { minProperties: 1, maxProperties: 1 } : {}),
      }
    },
    read(node, reader, path) {
      const entries = readEntries(node, reader, path)
      if (!entries) return undefined
      const values: Record<string, unknown> = {}
      for (const { key, keyNode, node: valueNode } of entries) {
        const field = Object.hasOwn(fields, key) ? fields[key] : undefined
        if (field) {
          const value = reader.read(field.schema, valueNode, key)
          if (value !== undefined) values[key] = value
        } else {
          const known = Object.keys(fields)
          const hint = didYouMean(key, known) || `; known here: ${known.join(', ')}`
          reader.fail(offsetOf(keyNode), `unknown key ${printable(key)} in ${path}${hint}`)
        }
      }
      for (const [key, field] of Object.entries(fields)) {
        if (field.isRequired && !entries.some((entry) => entry.key === key)) {
          const example = field.example?.includes('\n') ? undefined : field.example
          reader.fail(offsetOf(node), `${path} has no ${key}${example ? `; write ${key}: ${example}` : ''}`)
        }
      }
      if (isOneOf && entries.length !== 1) {
        const known = new Intl.ListFormat('en-GB').format(Object.keys(fields))
        reader.fail(offsetOf(node), `${path} must have exactly one of ${known}`)
      }
      return values as Values<F>
    },
  }
}

const pluralOf = (type: string): string => (type.endsWith('s') ? type : `${type}s`)

export function list<T>(item: Schema<T>): Schema<readonly T[]> {
  return {
    type: `list of ${pluralOf(item.type)}`,
    ...(item.fields ? { fields: item.fields } : {}),
    json: () => ({ type: 'array', items: item.json() }),
    read(node, reader, path) {
      if (!isSeq(node)) return failType(node, reader, path, 'a list')
      return node.items
        .map((child, index) => reader.read(item, child as Node, `${path}[${index + 1}]`))
        .filter((value) => value !== undefined)
    },
  }
}

/** One value, or a list of them. */
export function oneOrMore<T>(item: Schema<T>): Schema<readonly T[]> {
  const many = list(item)
  return {
    type: `${item.type} or list of ${pluralOf(item.type)}`,
    ...(item.fields ? { fields: item.fields } : {}),
    json: () => ({ anyOf: [item.json(), many.json()] }),
    read(node, reader, path) {
      if (isSeq(node)) return many.read(node, reader, path)
      const value = item.read(node, reader, path)
      return value === undefined ? undefined : [value]
    },
  }
}

/** A mapping with names of the user's choice. */
export function mapOf<T>(item: Schema<T>, nameType = 'name'): Schema<readonly (Entry & { readonly value: T })[]> {
  return {
    type: `mapping: ${nameType} to ${item.type}`,
    ...(item.fields ? { fields: item.fields } : {}),
    json: () => ({ type: 'object', additionalProperties: item.json() }),
    read(node, reader, path) {
      return readEntries(node, reader, path)?.flatMap((entry) => {
        const value = reader.read(item, entry.node, entry.key)
        return value === undefined ? [] : [{ ...entry, value }]
      })
    },
  }
}

/** A mapping whose keys something else knows, as plain data. */
export const anyMapping = (type = 'mapping'): Schema<Readonly<Record<string, unknown>>> => ({
  type,
  json: () => ({ type: 'object' }),
  read: (node, reader, path) =>
    isMap(node)
      ? (anyValue.read(node, reader, path) as Record<string, unknown> | undefined)
      : failType(node, reader, path, 'a mapping of `key: value` lines'),
})

const anyValue: Schema<unknown> = {
  type: 'value',
  json: () => ({}),
  read(node, reader, path) {
    if (isMap(node)) {
      const entries = readEntries(node, reader, path) ?? []
      return Object.fromEntries(entries.map((entry) => [entry.key, reader.read(anyValue, entry.node, entry.key)]))
    }
    if (isSeq(node))
      return node.items.map((child, index) => reader.read(anyValue, child as Node, `${path}[${index + 1}]`))
    if (isAlias(node)) return failType(node, reader, path, 'a value')
    return isScalar(node) ? node.value : null
  },
}

const CONTROL = /[\u0000-\u001f\u007f-\u009f]/
/** The same as a pattern that a whole text matches. */
const NO_CONTROL = '^[^\\u0000-\\u001f\\u007f-\\u009f]+$'

/** A pattern for the text and what is wrong if it does not match, as a clause after the value; or a function that gives the clause. */
type Check = readonly [pattern: RegExp, wrong: string] | ((value: string) => string | undefined)

const judge = (check: Check, value: string): string | undefined => {
  if (typeof check === 'function') return check(value)
  return check[0].test(value) ? undefined : check[1]
}

/** A scalar of text. The first check that fails is reported. Editors know patterns, and no functions. */
export function text(type = 'text', ...checks: readonly Check[]): Schema<string> {
  const article = ['text', 'options', 'clients'].includes(type) ? '' : /^([aeio]|IPv4)/.test(type) ? 'an ' : 'a '
  return {
    type,
    json() {
      const patterns = checks.flatMap((check) => (typeof check === 'function' ? [] : [check]))
      const rules = patterns.map(([{ source }, wrong]) => ({
        type: 'string',
        pattern: source,
        patternErrorMessage: `It ${wrong}.`,
      }))
      return {
        type: 'string',
        pattern: NO_CONTROL,
        patternErrorMessage: `Write ${article}${type}.`,
        ...(rules.length === 0 ? {} : { allOf: rules }),
        ...(patterns.length === checks.length ? {} : { $comment: `Muster checks more: it is a ${type}.` }),
      }
    },
    read(node, reader, path) {
      if (!isScalar(node) || typeof node.value !== 'string' || node.value === '') {
        const isNumber = isScalar(node) && (typeof node.value === 'number' || typeof node.value === 'boolean')
        return failType(node, reader, path, `${article}${type}${isNumber ? ' (put it in quotes)' : ''}`)
      }
      const { value } = node
      const wrong = CONTROL.test(value)
        ? 'has a control character'
        : checks.map((check) => judge(check, value)).find((clause) => clause !== undefined)
      if (wrong === undefined) return value
      return reader.fail(offsetOf(node), `${path} ${printable(value)} ${wrong}`)
    },
  }
}

/** A scalar that `take` takes; `wanted`: what it has to be, in messages. */
export function scalar<T>(
  type: string,
  json: JsonSchema,
  take: (value: unknown) => T | undefined,
  wanted = type,
): Schema<T> {
  return {
    type,
    json: () => json,
    read: (node, reader, path) =>
      (isScalar(node) ? take(node.value) : undefined) ?? failType(node, reader, path, wanted),
  }
}

type Range = { readonly minimum: number; readonly maximum?: number }

const isIn = (value: unknown, { minimum, maximum = Number.MAX_VALUE }: Range): value is number =>
  typeof value === 'number' && value >= minimum && value <= maximum

export const number = (type: string, range: Range): Schema<number> =>
  scalar(type, { type: 'number', ...range }, (value) => (isIn(value, range) ? value : undefined))

export const wholeNumber = (type: string, { minimum, maximum = Number.MAX_SAFE_INTEGER }: Range): Schema<number> =>
  scalar(type, { type: 'integer', minimum, maximum }, (value) =>
    Number.isInteger(value) && isIn(value, { minimum, maximum }) ? value : undefined,
  )

export const flag = (): Schema<boolean> =>
  scalar('true or false', { type: 'boolean' }, (value) => (typeof value === 'boolean' ? value : undefined))

export function choice<T extends string>(words: readonly T[]): Schema<T> {
  const type = words.join(' | ')
  return {
    type,
    json: () => ({ enum: words }),
    read(node, reader, path) {
      const word = isScalar(node) ? words.find((candidate) => candidate === node.value) : undefined
      if (word !== undefined) return word
      const written = describe(node).replace(/^the text /, '')
      const hint = isScalar(node) && typeof node.value === 'string' ? didYouMean(node.value, words) : ''
      return reader.fail(offsetOf(node), `${path} must be ${words.join(', ')}, not ${written}${hint}`)
    },
  }
}

/** The same with its place, for what can only be judged when the whole file is known. */
export function located<T>(schema: Schema<T>): Schema<Located<T>> {
  return {
    ...schema,
    read(node, reader, path) {
      const value = schema.read(node, reader, path)
      return value === undefined ? undefined : { value, offset: textOffsetOf(node) }
    },
  }
}

/** An absent value is `{}`: `m8:` alone is a host. */
export function orEmpty<T extends object>(schema: Schema<T>): Schema<T> {
  return {
    ...schema,
    json: () => ({ ...schema.json(), type: ['object', 'null'] }),
    read: (node, reader, path) =>
      node === null || (isScalar(node) && node.value === null) ? ({} as T) : schema.read(node, reader, path),
  }
}

/** A hosts.yaml of every feature needs fewer than ten. */
const MAX_LEVELS = 100

/** As the library's `parseDocument`; `errors` of the document names nesting that is too deep, and then it is empty. */
export function parseYaml(text: string, options: Parameters<typeof parseDocument>[1] = {}): Document.Parsed {
  const parser = new Parser()
  for (const lexeme of new Lexer().lex(text)) {
    // What it gives are documents that are done and have left the stack.
    for (const _ of parser.next(lexeme));
    if (parser.stack.length <= MAX_LEVELS) continue
    const offset = parser.offset - lexeme.length
    // So much can be parsed, and tells the counter of lines where they begin.
    parseDocument(text.slice(0, offset), options)
    const document = parseDocument('')
    const message = `nested more than ${MAX_LEVELS} levels deep`
    document.errors.push(new YAMLParseError([offset, offset + 1], 'IMPOSSIBLE', message))
    return document
  }
  const document = parseDocument(text, options)
  // The library reports some mistakes twice.
  document.errors = [...new Map(document.errors.map((error) => [`${error.pos[0]} ${error.message}`, error])).values()]
  return document
}
