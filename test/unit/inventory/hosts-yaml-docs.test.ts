import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { parseDocument } from 'yaml'
import { renderHostsYamlDocs } from '../../../scripts/generate-hosts-yaml-docs.ts'
import { hostsYamlSchema } from '../../../src/inventory/hosts-yaml-schema.ts'
import { type Fields, YamlReader } from '../../../src/inventory/yaml-reader.ts'
import { SECTIONS } from '../../support/hosts-yaml.ts'

test('docs/hosts-yaml.md matches the schema', () => {
  expect(readFileSync(new URL('../../../docs/hosts-yaml.md', import.meta.url), 'utf8')).toBe(renderHostsYamlDocs())
})

function* fieldsIn(fields: Fields, path = ''): Generator<[string, Fields[string]]> {
  for (const [name, field] of Object.entries(fields)) {
    yield [`${path}${name}`, field]
    if (field.schema.fields) yield* fieldsIn(field.schema.fields, `${path}${name}.`)
  }
}

const withExample = [...fieldsIn(hostsYamlSchema(SECTIONS).fields ?? {})].filter(
  ([, field]) => field.example !== undefined,
)

test.each(withExample)('the example of %s is valid in its schema', (name, { schema, example }) => {
  const key = name.split('.').at(-1) ?? ''
  const reader = new YamlReader(`${key}:${example?.startsWith('\n') ? '' : ' '}${example}`)
  const document = parseDocument(`${key}:${example?.startsWith('\n') ? '' : ' '}${example}`)
  expect(document.errors).toEqual([])
  const value = schema.read(document.get(key, true) as never, reader, key)
  expect(reader.problems).toEqual([])
  expect(value).toBeDefined()
})
