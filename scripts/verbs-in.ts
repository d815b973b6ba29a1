import type { Verb, VerbTable } from '../src/cli/command-line/verb.ts'
import { VERBS } from '../src/cli/verbs.ts'

/** Every verb with its path: `job list`. */
export const verbsIn = (table: VerbTable = VERBS, path = ''): readonly (readonly [string, Verb])[] =>
  Object.entries(table).flatMap(([name, entry]) =>
    'verbs' in entry ? verbsIn(entry.verbs, `${path}${name} `) : [[`${path}${name}`, entry] as const],
  )
