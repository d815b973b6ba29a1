/** The JSON Schemas in docs/schema/files refuse and accept what the program does. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it, test } from 'vitest'
import { parse, parseDocument } from 'yaml'
import * as z from 'zod'
import { renderHostsYamlSchema, renderPreferencesSchema } from '../../../scripts/generate-file-schemas.ts'
import { packageRoot } from '../../../src/base/package-root.ts'
import { hostsYamlSchema } from '../../../src/inventory/hosts-yaml-schema.ts'
import { type Fields, type Schema, YamlReader } from '../../../src/inventory/yaml-reader.ts'
import { parsePreferences } from '../../../src/ui/preferences.ts'
import { readInventory, SECTIONS } from '../../support/hosts-yaml.ts'

const ROOT = packageRoot()
const read = (path: string): string => readFileSync(join(ROOT, path), 'utf8')
const hostsSchema = JSON.parse(read('docs/schema/files/hosts.yaml.schema.json'))
const preferencesSchema = JSON.parse(read('docs/schema/files/preferences.yaml.schema.json'))
const accepts = (schema: object) => {
  const validator = z.fromJSONSchema(schema as Parameters<typeof z.fromJSONSchema>[0])
  return (value: unknown): boolean => validator.safeParse(value).success
}
const isRead = (parse: () => unknown): boolean => {
  try {
    parse()
    return true
  } catch {
    return false
  }
}

it('is generated', async () => {
  expect(read('docs/schema/files/hosts.yaml.schema.json')).toBe(await renderHostsYamlSchema())
  expect(read('docs/schema/files/preferences.yaml.schema.json')).toBe(renderPreferencesSchema())
})

it('has only patterns that editors can read', () => {
  const patterns = [hostsSchema, preferencesSchema].flatMap((schema) => [
    ...JSON.stringify(schema).matchAll(/"pattern":("(?:[^"\\]|\\.)*")/g),
  ])
  expect(patterns.length).toBeGreaterThan(20)
  for (const [, pattern = ''] of patterns) expect(() => new RegExp(JSON.parse(pattern), 'u')).not.toThrow()
})

const SAMPLES = [
  'true',
  '0',
  '5',
  '-1',
  '1.5',
  '99999',
  'word',
  '"two words"',
  '"a\\tb"',
  "'\"'",
  '../up',
  '/a/../b',
  '""',
  'null',
  '[]',
  '[word]',
  '[5]',
  '{}',
  '{ x: 1 }',
  '{ x: word }',
  '[{}]',
]

function* fieldsIn(fields: Fields, path = ''): Generator<[string, Schema<unknown>, string | undefined]> {
  for (const [name, { schema, example }] of Object.entries(fields)) {
    yield [`${path}${name}`, schema, example]
    if (schema.fields) yield* fieldsIn(schema.fields, `${path}${name}.`)
  }
}

describe('each key of hosts.yaml', () => {
  test.each([...fieldsIn(hostsYamlSchema(SECTIONS).fields ?? {})])('%s', (_, schema, example) => {
    const json = schema.json()
    const isAccepted = accepts(json)
    const isExact = !JSON.stringify(json).includes('"$comment"')
    for (const sample of [...SAMPLES, ...(example === undefined ? [] : [example])]) {
      const text = `key: ${sample}`
      const reader = new YamlReader(text)
      schema.read(parseDocument(text).get('key', true) as never, reader, 'key')
      const isWrong = reader.problemCount > 0
      const verdict = isAccepted(parse(text).key)
      if (isExact || !isWrong) expect([sample, reader.problems, verdict]).toEqual([sample, reader.problems, !isWrong])
    }
  })
})

const HOSTS_FILES = [
  ...globSync('{hosts.yaml,docs/examples/*.yaml}', { cwd: ROOT }).map((path) => read(path)),
  ...globSync('{README.md,docs/*.md}', { cwd: ROOT }).flatMap((path) =>
    [...read(path).matchAll(/```yaml\n([\s\S]*?)```/g)].flatMap(([, text = '']) =>
      /^hosts:/m.test(text) ? [text] : [],
    ),
  ),
]

describe('hosts.yaml', () => {
  // zod's intersections let unknown keys pass.
  const { anyOf, ...keys } = hostsSchema
  const [hasHosts, hasKeys] = [accepts({ anyOf }), accepts(keys)]
  const isAccepted = (value: unknown): boolean => hasHosts(value) && hasKeys(value)

  it.each(HOSTS_FILES)('accepts the example %#', (text) => {
    expect([isRead(() => readInventory(text)), isAccepted(parse(text))]).toEqual([true, true])
  })

  it.each([
    ['', false],
    ['[]', false],
    ['hosts:', false],
    ['hosts: {}', false],
    ['hosts: [m8]', false],
    ['cluster: lab', false],
    ['hosts: { m8: }', true],
    ['hosts: { m8: {} }', true],
    ['hosts: { m8: m9 }', false],
    ['hosts: { m8: { adress: 10.0.0.8 } }', false],
    ['host: { m8: }', false],
    ['hosts: { m8: }\nextra: 1', false],
    ['k8s: {}', true],
    ['k8s: {}\nhosts: {}', true],
    ['hosts: { m8: }\nray: {}', false],
    ['hosts: { m8: }\nray: { head: m8 }', true],
    ['hosts: { m8: }\nenvironment: {}', false],
    ['hosts: { m8: }\nenvironment: { conda: { name: x } }', true],
    ['hosts: { m8: }\nenvironment: { conda: { name: x }, venv: { path: /x } }', false],
    ['hosts: { m8: }\npackages: { install: [vim] }', true],
    ['hosts: { m8: }\npackages: [{ install: [vim] }]', true],
    ['hosts: { m8: }\nslurm: { login: m8, options: --array=3 }', false],
    ['hosts: { m8: }\nnfs: { server: m8 }', false],
  ])('judges %j', (text, isValid) => {
    expect([isRead(() => readInventory(text)), isAccepted(parse(text))]).toEqual([isValid, isValid])
  })
})

describe('preferences.yaml', () => {
  const isAccepted = accepts(preferencesSchema)
  const readme = [...read('README.md').matchAll(/```yaml\n(leader:[\s\S]*?)```/g)].map(([, text = '']) => text)
  const keys = Object.keys(preferencesSchema.properties)
  const wrong = keys.flatMap((key) => SAMPLES.map((sample) => `${key}: ${sample}`))

  it('has an example in the README', () => expect(readme).toHaveLength(1))

  it.each([
    ...readme,
    ...wrong,
    '',
    'leeder: Ctrl-a',
    'leader: a',
    'leader: F5',
    'keys: { zoom: z }',
    'keys: { zoom: [z, F11] }',
    'keys: { zoom: Strg-z }',
    'keys: { zooom: z }',
    'pane: { rows: 3 }',
    'pane: { colums: 30 }',
    'macros: [{ name: a, text: b }]',
    'macros: [{ name: a, command: [b] }]',
    'macros: [{ name: a, command: b }]',
    'macros: [{ name: a, text: b, command: [c] }]',
  ])('judges %j as the console does', (text) => {
    expect(isAccepted(parse(text))).toBe(isRead(() => parsePreferences(text, 'preferences.yaml')))
  })
})
