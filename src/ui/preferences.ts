/**
 * The user's own settings: `$XDG_CONFIG_HOME/muster/preferences.yaml`. Every mistake is reported at once with its line and
 * column; a file that is wrong stops the start, so that a key does not silently do something else.
 */
import { join } from 'node:path'
import { isMap, isScalar, LineCounter } from 'yaml'
import * as z from 'zod'
import { fileReason, MusterError } from '../base/errors.ts'
import { foreignFile, notOwn } from '../base/foreign-place.ts'
import { printable } from '../base/printable.ts'
import { decodeText, readBoundedSync } from '../base/read-bounded.ts'
import { configurationDirectory } from '../base/user-directories.ts'
import { didYouMean } from '../inventory/nearest-word.ts'
import { type JsonSchema, parseYaml, problemList, problemText } from '../inventory/yaml-reader.ts'
import { KEY_LABEL, LEADER_LABEL, labelFor, leaderSentAs } from './keys/key-table.ts'
import { type ActionId, actionSpecs, createKeymap, keysOf } from './keys/registry.ts'

const keyLabelSchema = z.string().regex(KEY_LABEL, {
  error: ({ input }) =>
    `is not a key; write ${labelFor(String(input)) ?? 'a, Space, Ctrl-], Alt-n, Shift-Tab, PageUp, F5 …'}`,
})
const actionIds = actionSpecs.map((spec) => spec.id) as [ActionId, ...ActionId[]]

const keysSchema = z.partialRecord(
  z.enum(actionIds),
  z.preprocess(
    (keys) => (typeof keys === 'string' ? [keys] : keys),
    z.array(keyLabelSchema, { error: 'must be a key or a list of keys' }),
  ),
)

const macroName = z.string().min(1).describe('Its name, in the list of macros.')
const MACROS = [
  z.strictObject({
    name: macroName,
    text: z
      .string()
      .min(1)
      .describe(
        'The text to type. `%h` is the host, `%n` its position in hosts.yaml (from 1), `%u` the user, `%a` the address.',
      ),
  }),
  z.strictObject({
    name: macroName,
    command: z.array(z.string()).min(1).describe('A program of this machine with its arguments; its output is typed.'),
  }),
] as const

function leaderError(text: string): string {
  const label = labelFor(text)
  if (label !== undefined && LEADER_LABEL.test(label)) return `is not a key; write ${label}`
  const sent = leaderSentAs(label ?? text)
  const other = 'a key with Ctrl or Alt, or a function key: Ctrl-a, Alt-x, F12'
  return sent === undefined ? `must be ${other}` : `terminals send ${sent} for ${label ?? text}; write ${other}`
}

const preferencesSchema = z.strictObject({
  leader: z
    .string()
    .regex(LEADER_LABEL, { error: ({ input }) => leaderError(String(input)) })
    .default('Ctrl-]')
    .describe('The key after which a key is a command.'),
  theme: z.enum(['auto', 'dark', 'light', 'none']).default('auto').describe('The colours of the console.'),
  pane: z
    .strictObject({
      columns: z.int().min(10).max(500).default(40).describe('Columns of the smallest pane.'),
      rows: z.int().min(4).max(200).default(8).describe('Rows of the smallest pane.'),
    })
    .prefault({})
    .describe('The smallest pane; further hosts are on other pages.'),
  history: z.int().min(0).max(100_000).default(1000).describe('Lines of scroll-back of each host.'),
  mouse: z.boolean().default(true).describe('Whether the console uses the mouse.'),
  greeting: z.enum(['hide', 'show']).default('hide').describe('Whether what a host prints at login stays in its pane.'),
  auto_close: z
    .number()
    .min(0)
    .max(86_400)
    .default(0)
    .describe('Seconds after which a pane closes when its shell has ended; 0: never.'),
  clipboard: z.boolean().default(true).describe('Whether marked text goes to the clipboard of your terminal.'),
  keep: z.boolean().default(false).describe('Whether a console that loses its terminal continues, detached.'),
  // A timer can wait for 24 days.
  keep_for: z.number().positive().max(500).default(8).describe('Hours after which a detached console ends.'),
  keys: keysSchema.default({}).describe('Other keys for actions: a key, or a list of keys, after the leader.'),
  macros: z
    .array(z.union(MACROS, { error: 'must be { name: …, text: … } or { name: …, command: [program, argument …] }' }))
    .default([])
    .describe('Texts to insert on each receiver.'),
})

export type Preferences = z.infer<typeof preferencesSchema> & {
  /** What is probably not meant: `line 3: …`. */
  readonly warnings?: readonly string[]
}

export const defaultPreferences: Preferences = preferencesSchema.parse({})

/** The same for editors, as JSON Schema. That no key has two actions, only Muster itself checks. */
export function preferencesJson(): JsonSchema {
  const { $schema, ...schema } = z.toJSONSchema(preferencesSchema, {
    io: 'input',
    target: 'draft-7',
    override({ zodSchema, jsonSchema }) {
      if (zodSchema !== keysSchema) return
      // Editors complete properties, each with its help; and one key needs no list.
      const label = { type: 'string', pattern: KEY_LABEL.source }
      const anyOf = [label, { type: 'array', items: label }]
      const properties = actionSpecs.map(({ id, help }) => [id, { anyOf, description: help }])
      delete jsonSchema.propertyNames
      Object.assign(jsonSchema, { properties: Object.fromEntries(properties), additionalProperties: false })
    },
  })
  // An empty file uses the defaults.
  return { $schema, title: 'preferences.yaml of Muster', ...schema, type: ['object', 'null'] }
}

export function preferencesFile(environment: Readonly<Record<string, string | undefined>>): string {
  return join(configurationDirectory(environment), 'muster', 'preferences.yaml')
}

/** `fileName` is what messages call the file. Throws a configuration error that names every problem. */
export function parsePreferences(text: string, fileName: string): Preferences {
  const lines = new LineCounter()
  const document = parseYaml(text, { lineCounter: lines, prettyErrors: false })
  const problems: string[] = []
  const fail = (offset: number, message: string): void => {
    const { line, col } = lines.linePos(offset)
    problems.push(`${printable(fileName)}:${line}:${col}: ${problemText(message)}`)
  }
  for (const { pos, message } of document.errors) fail(pos[0], message)
  if (problems.length === 0) {
    const parsed = preferencesSchema.safeParse(contentsOf(document, fail), { error: sentenceOf })
    if (parsed.success) failSharedKeys(parsed.data, (path, message) => fail(offsetOf(document, path), message))
    if (parsed.success && problems.length === 0) {
      const warnings = lostKeys(parsed.data, (path) => lines.linePos(offsetOf(document, path)).line)
      return warnings.length === 0 ? parsed.data : { ...parsed.data, warnings }
    }
    for (const issue of problems.length === 0 ? (parsed.error?.issues ?? []) : []) {
      const path = issue.path.map((part) => (typeof part === 'symbol' ? String(part) : part))
      if (issue.code === 'unrecognized_keys') {
        const known = path.length === 0 ? Object.keys(preferencesSchema.shape) : (KNOWN_KEYS[path.join('.')] ?? [])
        for (const key of issue.keys)
          fail(offsetOf(document, [...path, key]), `unknown key ${key}${didYouMean(key, known)}`)
      } else fail(offsetOf(document, path), `${path.join('.') || 'the file'}: ${issue.message}`)
    }
  }
  throw new MusterError('configuration', problemList(problems), {
    hint: 'Fix the file, or move it away to use the defaults.',
  })
}

/** One key cannot do two things; that it takes the place of what the table has for it is meant. */
function failSharedKeys({ keys }: Preferences, fail: (path: readonly string[], message: string) => void): void {
  const owners = new Map<string, string>()
  for (const [action, labels = []] of Object.entries(keys)) {
    for (const label of new Set(labels)) {
      const owner = owners.get(label)
      if (owner === undefined) owners.set(label, action)
      else fail(['keys', action], `keys.${action}: ${label} is the key of ${owner}, too`)
    }
  }
}

/** Actions that have no key any more, though the file does not name them. */
function lostKeys({ keys }: Preferences, lineOf: (path: readonly string[]) => number): string[] {
  const keymap = createKeymap(keys)
  return actionSpecs.flatMap(({ id, keys: [key = ''] }) => {
    const owner = keymap.get(key)
    if (owner === undefined || id in keys || keysOf(keymap, id).length > 0) return []
    return [`line ${lineOf(['keys', owner])}: keys.${owner}: ${key} was the key of ${id}, which has none now`]
  })
}

const KINDS: Readonly<Record<string, string>> = {
  string: 'text',
  number: 'a number',
  int: 'a whole number',
  boolean: 'true or false',
  object: 'a mapping of `key: value` lines',
  record: 'a mapping of `key: value` lines',
  array: 'a list',
}

/** What the schema finds wrong, where it has no words of its own for it. */
function sentenceOf(issue: z.core.$ZodRawIssue): string | undefined {
  if (issue.code === 'invalid_type') return `must be ${KINDS[issue.expected] ?? issue.expected}`
  if (issue.code === 'too_small') return issue.origin === 'string' ? 'is empty' : `must be ${issue.minimum} or more`
  if (issue.code === 'too_big') return `must be ${issue.maximum} or less`
  if (issue.code === 'invalid_value') return `must be one of ${issue.values.join(', ')}`
  return undefined
}

/** What unknown keys are compared with, by the key of their mapping. */
const KNOWN_KEYS: Readonly<Record<string, readonly string[]>> = {
  keys: actionIds,
  pane: ['columns', 'rows'],
}

/** Of a file whose aliases multiply, nothing is read. */
function contentsOf(document: ReturnType<typeof parseYaml>, fail: (offset: number, message: string) => void): unknown {
  try {
    return document.toJS({ maxAliasCount: 10 }) ?? {}
  } catch {
    fail(0, 'its aliases (*NAME) stand for too much: write out the values')
    return {}
  }
}

function offsetOf(document: ReturnType<typeof parseYaml>, path: readonly (string | number)[]): number {
  for (let length = path.length; length > 0; length--) {
    const parent = length === 1 ? document.contents : document.getIn(path.slice(0, length - 1), true)
    if (!isMap(parent)) continue
    const pair = parent.items.find((item) => isScalar(item.key) && item.key.value === path[length - 1])
    if (pair && isScalar(pair.key) && pair.key.range) return pair.key.range[0]
  }
  return 0
}

/** The defaults when there is no file. */
export function loadPreferences(environment: Readonly<Record<string, string | undefined>>): Preferences {
  const file = preferencesFile(environment)
  let text: string
  try {
    // Its macros run programs.
    const reason = foreignFile(file)
    if (reason !== undefined) throw notOwn(printable(file), reason, `chmod go-w ${printable(file)}, and its directory`)
    text = decodeText(readBoundedSync(file))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return defaultPreferences
    if (error instanceof MusterError) throw error
    throw new MusterError('configuration', `${printable(file)} cannot be read: ${fileReason(error)}`, {
      hint: 'Make it readable, or move it away.',
      cause: error,
    })
  }
  return parsePreferences(text, file)
}
