/** `--json=FIELD,…`: which lines and fields of a verb's JSON are printed. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { fieldsByType, type OutputSchema } from '../schemas/shape.ts'
import type { FieldSelection } from './verb.ts'

/**
 * `--json=a,b` as an option of its own: Commander would take the word after a plain `--json` for its value. What stands behind `--`
 * belongs to another program.
 */
export function splitJsonFields(args: readonly string[]): readonly string[] {
  const end = args.indexOf('--')
  return args.map((arg, index) =>
    (end < 0 || index < end) && arg.startsWith('--json=') ? arg.replace('--json=', '--json-fields=') : arg,
  )
}

/** Lines of the types that have all of these fields. @throws MusterError `usage` for a field that no line has */
export function selectionOf(text: string, schema: OutputSchema): FieldSelection {
  const byType = fieldsByType(schema)
  const fields = text.split(',').map((name) => name.trim())
  const known = new Set([...byType.values()].flatMap((names) => [...names]))
  const hint = [...byType].map(([type, names]) => `  ${type}: ${[...names].join(', ')}`).join('\n')
  const unknown = fields.filter((name) => !known.has(name))
  if (unknown.length > 0) {
    const words = text.trim() === '' ? 'names no field' : `has no field ${unknown.map(printable).join(', ')}`
    throw new MusterError('usage', `--json= ${words}. Fields, by type of line:`, { hint })
  }
  const types = new Set([...byType].flatMap(([type, names]) => (fields.every((name) => names.has(name)) ? [type] : [])))
  if (types.size === 0)
    throw new MusterError('usage', `no line has all of ${fields.join(', ')}. Fields, by type of line:`, { hint })
  return { types, fields: [...new Set(fields)] }
}
