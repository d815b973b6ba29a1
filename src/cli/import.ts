/** `muster import KIND [FILE]`: hosts.yaml out of what people already have. */
import { homedir } from 'node:os'
import { resolve } from 'node:path'
import { Argument, type Command } from 'commander'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import { MAX_TEXT_BYTES, TOO_LARGE } from '../base/read-bounded.ts'
import { formatNote, IMPORT_KINDS, type ImportKind, importInventory } from '../inventory/import/import-inventory.ts'
import { writeFileAtomically } from '../inventory/write-file.ts'
import { type CliContext, EXIT, type GlobalOptions, type Outcome } from './command-line/context.ts'

type Options = GlobalOptions & { readonly output?: string }

export function registerImport(program: Command, context: CliContext, outcome: Outcome): void {
  const command = program
    .command('import')
    .description("write hosts.yaml out of another tool's files")
    .addArgument(new Argument('<kind>', 'whose files').choices(IMPORT_KINDS))
    .argument('[file]', 'the file to read (default: where the tool itself looks; - is stdin)')
    .option('-o, --output <file>', 'write there instead of to stdout')
    .addHelpText(
      'after',
      `
What cannot be carried over is said on stderr, line by line.

Examples:
  muster import ssh                            the aliases of ~/.ssh/config
  muster import clusterssh ~/.clusterssh/clusters
  muster import clush /etc/clustershell/groups.d/cluster.yaml -o hosts.yaml
  muster import ansible inventory.ini > hosts.yaml
`,
    )
    .action(async (kind: ImportKind, file: string | undefined) => {
      await importTo(kind, file, command.optsWithGlobals<Options>(), context)
      outcome.exitCode = EXIT.ok
    })
}

async function importTo(
  kind: ImportKind,
  file: string | undefined,
  options: Options,
  context: CliContext,
): Promise<void> {
  const { environment: env, workingDirectory: cwd } = context
  const text = file === '-' ? await readAll(context.stdin) : undefined
  const result = importInventory({
    kind,
    cwd,
    env,
    home: env.HOME || homedir(),
    ...(file === undefined ? {} : { file }),
    ...(text === undefined ? {} : { text }),
  })
  for (const note of result.notes) context.stderr.write(`${formatNote(note)}\n`)
  if (options.output === undefined) {
    context.stdout.write(result.text)
    return
  }
  const path = resolve(cwd, options.output)
  if (!(await writeFileAtomically(path, result.text, { isOverwriting: options.yes ?? false }))) {
    throw new MusterError('usage', `${printable(options.output)} exists and is left as it is`, {
      hint: 'Give --yes to replace it, or another name to --output.',
    })
  }
  context.stderr.write(`${printable(options.output)}: ${result.hosts} hosts\n`)
}

async function readAll(stdin: CliContext['stdin']): Promise<string> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stdin) {
    chunks.push(Buffer.from(chunk as Uint8Array | string))
    bytes += chunks.at(-1)?.length ?? 0
    if (bytes > MAX_TEXT_BYTES) throw new MusterError('configuration', `stdin cannot be read: ${TOO_LARGE}`)
  }
  return Buffer.concat(chunks).toString('utf8')
}
