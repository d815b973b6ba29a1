/** Everything that is wrong with an inventory file, at once. */
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import type { YamlProblem } from './yaml-reader.ts'

const MAX_SHOWN = 100

/** The message has a line `FILE:LINE:COLUMN: what is wrong` for each problem. */
export class InventoryError extends MusterError {
  readonly file: string
  readonly problems: readonly YamlProblem[]

  constructor(file: string, problems: readonly YamlProblem[]) {
    const lines = problems
      .slice(0, MAX_SHOWN)
      .map(({ line, column, message }) => `${printable(file)}:${line}:${column}: ${message}`)
    if (problems.length > MAX_SHOWN) lines.push(`… and ${problems.length - MAX_SHOWN} more`)
    super('configuration', lines.join('\n'), { hint: 'docs/hosts-yaml.md lists every key.' })
    this.file = file
    this.problems = problems
  }
}
