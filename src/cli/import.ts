/** `muster import KIND [FILE]`: hosts.yaml from the files of other tools. */
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { Argument } from 'commander'
import { defined } from '../base/defined.ts'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import { MAX_TEXT_BYTES, readStream, TOO_LARGE } from '../base/read-bounded.ts'
import { writeFileAtomically } from '../inventory/edit-hosts-yaml.ts'
import { formatNote, IMPORT_KINDS, type ImportKind, importInventory } from '../inventory/import/import-inventory.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from './command-line/verb.ts'

type Options = GlobalOptions & { readonly output?: string }

export const verb: VerbCode = {
  define: (command) =>
    command
      .addArgument(new Argument('<kind>', 'the tool').choices(IMPORT_KINDS))
      .argument('[file]', "file to read (default: the tool's own; -: stdin)")
      .option('-o, --output <file>', 'write to this file (default: stdout)'),
  help: `
Examples:
  muster import ssh                            the aliases of ~/.ssh/config
  muster import clusterssh ~/.clusterssh/clusters
  muster import clush /etc/clustershell/groups.d/cluster.yaml -o hosts.yaml
  muster import ansible inventory.ini > hosts.yaml

Settings without a counterpart in hosts.yaml are listed on stderr, line by line.
`,
  async run(kind: ImportKind, file: string | undefined, options: Options, context: CliContext) {
    const { environment: env, workingDirectory: cwd } = context
    const tooLarge = () => new MusterError('configuration', `cannot read stdin: ${TOO_LARGE}`)
    const text = file === '-' ? (await readStream(context.stdin, MAX_TEXT_BYTES, tooLarge)).toString('utf8') : undefined
    const home = env.HOME || homedir()
    const result = importInventory({ kind, cwd, env, home, ...defined({ file, text }) })
    for (const note of result.notes) context.stderr.write(`${formatNote(note)}\n`)
    if (options.output === undefined) {
      context.stdout.write(result.text)
      return EXIT.ok
    }
    const path = resolve(cwd, options.output)
    if (!(await writeFileAtomically(path, result.text, { isOverwriting: options.yes ?? false }))) {
      throw new MusterError('usage', `${printable(options.output)} already exists`, {
        hint: 'Add --yes to replace it, or name another file.',
      })
    }
    context.stderr.write(`${printable(options.output)}: ${result.hosts} hosts\n`)
    return EXIT.ok
  },
}
