/** `muster schema [NAME|VERB]`: the JSON Schemas that are installed with Muster, of the files that it reads and of what `--json` prints. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { MusterError } from '../base/errors.ts'
import { packageRoot } from '../base/package-root.ts'
import { printable } from '../base/printable.ts'
import { didYouMean } from '../inventory/nearest-word.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from './command-line/verb.ts'
import { jsonLine } from './output/json-lines.ts'
import { formatTable } from './output/table.ts'

type Options = GlobalOptions & { readonly path?: boolean }

const ENDING = '.schema.json'

type Installed = { readonly name: string; readonly path: string; readonly verbs: readonly string[] }

/** Files first, then those of what verbs print, with the verbs. */
export function installedSchemas(): readonly Installed[] {
  const root = join(packageRoot(), 'docs', 'schema')
  const paths = [join(root, 'files'), root].flatMap((directory) =>
    readdirSync(directory)
      .filter((name) => name.endsWith(ENDING))
      .toSorted()
      .map((name) => join(directory, name)),
  )
  const verbs = JSON.parse(readFileSync(join(root, 'verbs.json'), 'utf8')) as Readonly<Record<string, string[]>>
  return paths.map((path) => {
    const name = basename(path, ENDING)
    return { name, path, verbs: verbs[name] ?? [] }
  })
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('[schema...]', 'the schema to print, or a verb that has --json, such as job list (default: list them)')
      .option('--path', 'print the path of the file instead of its content'),
  help: `
Examples:
  muster schema                                  list the schemas
  muster schema job list                         what \`muster job list --json\` prints
  muster schema hosts.yaml > hosts.schema.json   a copy beside a hosts.yaml that several people edit
  muster schema preferences.yaml --path          where it is, for the settings of an editor

An editor with yaml-language-server checks and completes a file whose first line names its schema:
  # yaml-language-server: $schema=hosts.schema.json
`,
  run(words: readonly string[], { path: isPath, json }: Options, context: CliContext) {
    const { stdout } = context
    const all = installedSchemas()
    const asked = words.join(' ')
    const chosen = asked === '' ? all : all.filter(({ name, verbs }) => name === asked || verbs.includes(asked))
    if (chosen.length === 0) {
      const known = all.flatMap(({ name, verbs }) => [name, ...verbs])
      throw new MusterError('usage', `there is no schema ${printable(asked)}${didYouMean(asked, known)}`, {
        hint: 'Run: muster schema',
      })
    }
    if (json) for (const each of chosen) stdout.write(jsonLine({ type: 'schema', ...each }, context))
    else if (isPath) for (const { path } of chosen) stdout.write(`${path}\n`)
    else if (asked !== '') for (const { path } of chosen) stdout.write(readFileSync(path, 'utf8'))
    else
      stdout.write(
        formatTable(
          ['NAME', 'VERBS'],
          chosen.map(({ name, verbs }) => [name, verbs.join(', ')]),
          stdout,
        ),
      )
    return EXIT.ok
  },
}
