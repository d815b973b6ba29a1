/** docs/schema: a JSON Schema for each verb with --json, and docs/json-fields.md: the fields of all of them. From src/cli/schemas. */
import { type ObjectShape, OUTPUT_VERSION, type OutputSchema, type ValueShape } from '../src/cli/schemas/shape.ts'
import { verbsIn } from './verbs-in.ts'

const WIDTH = 120

/** With the verbs that print it. */
const schemas = new Map<OutputSchema, string[]>()
for (const [path, { output }] of verbsIn()) {
  const schema = await output?.()
  if (schema !== undefined) schemas.set(schema, [...(schemas.get(schema) ?? []), path])
}

/** What fits stands in one line. */
function jsonText(value: unknown, indent = ''): string {
  const flat = JSON.stringify(value)
  if (typeof value !== 'object' || value === null || indent.length + flat.length < WIDTH) return flat
  const deeper = `${indent}  `
  const parts = Array.isArray(value)
    ? value.map((each) => jsonText(each, deeper))
    : Object.entries(value).map(([name, each]) => `${JSON.stringify(name)}: ${jsonText(each, deeper)}`)
  const [open, close] = Array.isArray(value) ? '[]' : '{}'
  return `${open}\n${parts.map((part) => `${deeper}${part}`).join(',\n')}\n${indent}${close}`
}

/** For `muster schema VERB`: schemas with the verbs that print them. */
const verbsBySchema = () =>
  Object.fromEntries([...schemas].map(([{ $id }, paths]) => [$id.replace('.schema.json', ''), paths]))

export const schemaDocuments: readonly (readonly [path: string, render: () => string])[] = [
  ['docs/schema/verbs.json', () => `${jsonText(verbsBySchema())}\n`],
  ...[...schemas.keys()].map((schema) => [`docs/schema/${schema.$id}`, () => `${jsonText(schema)}\n`] as const),
]

export const renderFieldsDocs = (): string => `# Fields of JSON output

<!-- Generated from src/cli/schemas by \`npm run docs\`: change them there. -->

What \`--json\` prints, verb by verb; [json.md](json.md) explains it, with examples. Every object also has \`version\` (now ${OUTPUT_VERSION}) and \`type\`.
A field with \`?\` may be missing. \`muster VERB --json=FIELD,…\` prints only these fields.

${[...schemas].map(([schema, paths]) => sectionOf(schema, paths)).join('\n')}`

const sectionOf = (
  schema: OutputSchema,
  paths: readonly string[],
): string => `## ${paths.map((path) => `\`${path}\``).join(', ')}

Schema: [${schema.$id}](schema/${schema.$id})

| \`type\` | line | fields |
| --- | --- | --- |
${schema.oneOf.map(rowOf).join('\n')}
`

function rowOf({ title = '', required, properties }: ObjectShape): string {
  const { type, version: _, ...rest } = properties
  const fields = Object.entries(rest).map(([name, shape]) => {
    const words = wordsOf(shape)
    return `\`${name}${required.includes(name) ? '' : '?'}\`${words === '' ? '' : ` (${words})`}`
  })
  return `| \`${type?.const}\` | ${title.replace(/\.$/, '')} | ${fields.join(', ')} |`
}

function wordsOf(shape: ValueShape): string {
  const values = [...(Array.isArray(shape.enum) ? shape.enum : 'const' in shape ? [shape.const] : [])]
  const parts = [
    ...(values.length === 0 ? [] : [values.map((value) => `\`${value}\``).join(', ')]),
    ...(typeof shape.description === 'string' ? [shape.description.replace(/\.$/, '')] : []),
  ]
  return parts.join('; ').replaceAll('|', '\\|')
}
