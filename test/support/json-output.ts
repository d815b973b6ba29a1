/** What `--json` printed, checked against the schema of its verb: every test that reads such output is a test of its schema. */
import { appendFileSync, chmodSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import { verbsIn } from '../../scripts/verbs-in.ts'
import { splitJsonFields } from '../../src/cli/command-line/json-fields.ts'
import { TAKES_A_VALUE } from '../../src/cli/command-line/options.ts'
import type { Verb, VerbTable } from '../../src/cli/command-line/verb.ts'
import type { ObjectShape } from '../../src/cli/schemas/shape.ts'
import { VERBS } from '../../src/cli/verbs.ts'

/** Exists while all tests run: the schemas and types of lines that were seen, `job-list.schema.json job`. */
const SEEN_FILE = join(import.meta.dirname, '..', '..', 'node_modules', '.cache', 'muster-json-output')

/** From now on it is noted whose output tests see. */
export class SeenOutput implements Disposable {
  constructor() {
    mkdirSync(dirname(SEEN_FILE), { recursive: true })
    writeFileSync(SEEN_FILE, '')
    // Tests start the program as other users, too.
    chmodSync(SEEN_FILE, 0o666)
  }

  /** Verbs with --json of which no test has seen a line. */
  async missing(): Promise<readonly string[]> {
    const seen = new Set(
      readFileSync(SEEN_FILE, 'utf8')
        .split('\n')
        .map((line) => line.split(' ')[0]),
    )
    const verbs = await Promise.all(verbsIn().map(async ([path, verb]) => [path, await verb.output?.()] as const))
    return verbs.flatMap(([path, schema]) => (schema === undefined || seen.has(schema.$id) ? [] : [path]))
  }

  [Symbol.dispose](): void {
    rmSync(SEEN_FILE, { force: true })
  }
}

type Found = { readonly path: string; readonly verb: Verb }

/** The verb of a command line that asks for whole lines of JSON. */
export function jsonVerbOf(args: readonly string[]): Found | undefined {
  const end = args.indexOf('--')
  const own = splitJsonFields(end < 0 ? args : args.slice(0, end))
  if (!own.includes('--json')) return undefined
  const words = own.filter((arg, index) => !arg.startsWith('-') && !TAKES_A_VALUE.has(own[index - 1] ?? ''))
  let table: VerbTable = VERBS
  const path: string[] = []
  for (const word of words) {
    const entry: VerbTable[string] | undefined = Object.hasOwn(table, word) ? table[word] : undefined
    if (entry === undefined) {
      const row = Object.entries(table).find(([, each]) => 'isDefault' in each)
      return path.length > 0 && row ? { path: [...path, row[0]].join(' '), verb: row[1] as Verb } : undefined
    }
    path.push(word)
    if (!('verbs' in entry)) return { path: path.join(' '), verb: entry }
    table = entry.verbs
  }
  return undefined
}

/** Says what is wrong with a line; undefined: nothing. */
export async function jsonChecker({ path, verb }: Found): Promise<(line: string) => string | undefined> {
  const schema = await verb.output?.()
  const byType = Map.groupBy(schema?.oneOf ?? [], ({ properties }) => String(properties.type?.const))
  const shapes = new Map<string, z.ZodType>()
  const shapeOf = (type: string, lines: readonly ObjectShape[]): z.ZodType => {
    const known = shapes.get(type)
    if (known) return known
    const made = z.fromJSONSchema({ anyOf: lines } as unknown as Parameters<typeof z.fromJSONSchema>[0])
    shapes.set(type, made)
    if (existsSync(SEEN_FILE)) appendFileSync(SEEN_FILE, `${schema?.$id} ${type}\n`)
    return made
  }
  return (line) => {
    let parsed: { readonly type?: unknown }
    try {
      parsed = JSON.parse(line)
    } catch (error) {
      return `muster ${path} --json prints what is no JSON (${String(error)}): ${line}`
    }
    const type = String(parsed.type)
    const lines = byType.get(type)
    if (lines === undefined) return `the schema of muster ${path} has no line of type ${type}: ${line}`
    const { error } = shapeOf(type, lines).safeParse(parsed)
    return (
      error && `muster ${path} --json prints a line that its schema does not allow: ${line}\n${z.prettifyError(error)}`
    )
  }
}

/** @throws Error if a line of stdout is not as the schema of the verb says */
export async function checkJsonOutput(args: readonly string[], stdout: string): Promise<void> {
  const found = jsonVerbOf(args)
  if (found === undefined) return
  const check = await jsonChecker(found)
  for (const line of stdout.split('\n').slice(0, -1)) {
    const problem = check(line)
    if (problem !== undefined) throw new Error(problem)
  }
}
