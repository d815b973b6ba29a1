/**
 * JSON Schemas of what `--json` prints, as plain data. A field whose name ends with `?` may be missing. Nothing here may import
 * more than this file: tests load the schemas into every process that prints JSON.
 */

export type ValueShape = Readonly<Record<string, unknown>>
export type FieldShapes = Readonly<Record<string, ValueShape>>

/** An object: a whole line, or a part of one. */
export type ObjectShape = {
  readonly title?: string
  readonly type: 'object'
  readonly required: readonly string[]
  readonly properties: FieldShapes
  readonly additionalProperties: false
}

/** The schema of one or more verbs: each line that they print is one of these objects. */
export type OutputSchema = {
  readonly $schema: string
  /** Of its file in docs/schema, without the ending. */
  readonly $id: string
  readonly title: string
  readonly oneOf: readonly ObjectShape[]
}

/** Goes up when a field goes away or gets another meaning; new fields and types do not change it. */
export const OUTPUT_VERSION = 1

export const text: ValueShape = { type: 'string' }
export const number: ValueShape = { type: 'number' }
export const whole: ValueShape = { type: 'integer' }
/** From 0 on. */
export const count: ValueShape = { type: 'integer', minimum: 0 }
export const flag: ValueShape = { type: 'boolean' }
export const time: ValueShape = { type: 'string', format: 'date-time' }
/** Of any fields. */
export const anyObject: ValueShape = { type: 'object' }

export const about = (description: string, shape: ValueShape): ValueShape => ({ ...shape, description })
export const is = (...values: readonly (string | number | boolean | null)[]): ValueShape =>
  values.length === 1 ? { const: values[0] } : { enum: values }
export const list = (items: ValueShape): ValueShape => ({ type: 'array', items })
export const orNull = (shape: ValueShape): ValueShape => ({ anyOf: [shape, { type: 'null' }] })
/** An object whose names are not known before. */
export const map = (values: ValueShape): ValueShape => ({ type: 'object', additionalProperties: values })

export function object(fields: FieldShapes): ObjectShape {
  const names = Object.entries(fields).map(([name, shape]) => [name.replace(/\?$/, ''), shape] as const)
  return {
    type: 'object',
    required: Object.keys(fields).filter((name) => !name.endsWith('?')),
    properties: Object.fromEntries(names),
    additionalProperties: false,
  }
}

/** One kind of line. */
export const line = (type: string, title: string, fields: FieldShapes): ObjectShape => ({
  title,
  ...object({ version: is(OUTPUT_VERSION), type: is(type), ...fields }),
})

/** `name`: of its file in docs/schema; `verbs`: for the title. */
export const output = (name: string, verbs: string, ...lines: readonly ObjectShape[]): OutputSchema => ({
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  $id: `${name}.schema.json`,
  title: `A line of ${verbs}`,
  oneOf: lines,
})

/** The fields of each type of line, in the order of the schema. */
export function fieldsByType({ oneOf }: OutputSchema): ReadonlyMap<string, ReadonlySet<string>> {
  const types = new Map<string, Set<string>>()
  for (const { properties } of oneOf) {
    const type = String(properties.type?.const)
    const fields = types.get(type) ?? new Set()
    for (const name of Object.keys(properties)) fields.add(name)
    types.set(type, fields)
  }
  return types
}
