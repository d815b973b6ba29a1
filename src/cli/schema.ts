/** `muster schema [NAME]`: the JSON Schemas that are installed with Muster, of the files that it reads and of what `--json` prints. */
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { Argument } from 'commander'
import { packageRoot } from '../base/package-root.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from './command-line/verb.ts'

type Options = GlobalOptions & { readonly path?: boolean }

const ENDING = '.schema.json'

/** Files first, then verbs with `--json`: names to absolute paths. */
function schemas(): ReadonlyMap<string, string> {
  const root = join(packageRoot(), 'docs', 'schema')
  const paths = [join(root, 'files'), root].flatMap((directory) =>
    readdirSync(directory)
      .filter((name) => name.endsWith(ENDING))
      .toSorted()
      .map((name) => join(directory, name)),
  )
  return new Map(paths.map((path) => [basename(path, ENDING), path]))
}

export const verb: VerbCode = {
  define: (command) =>
    command
      .addArgument(new Argument('[name]', 'the schema to print (default: list them)').choices([...schemas().keys()]))
      .option('--path', 'print the path of the file instead of its content'),
  help: `
Examples:
  muster schema                                list the schemas
  muster schema hosts.yaml > hosts.schema.json a copy beside a hosts.yaml that several people edit
  muster schema preferences.yaml --path        where it is, for the settings of an editor

An editor with yaml-language-server checks and completes a file whose first line names its schema:
  # yaml-language-server: $schema=hosts.schema.json
`,
  run(name: string | undefined, { path: isPath }: Options, { stdout }: CliContext) {
    const all = schemas()
    const chosen = name === undefined ? undefined : all.get(name)
    if (chosen !== undefined) stdout.write(isPath ? `${chosen}\n` : readFileSync(chosen, 'utf8'))
    else for (const [each, path] of all) stdout.write(`${isPath ? path : each}\n`)
    return EXIT.ok
  },
}
