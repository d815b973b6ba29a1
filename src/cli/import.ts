/** `muster import [FORMAT] [FILE]`: hosts.yaml from the files of other tools; `muster import dijob FILE`: a job from a DIJob. */
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { Argument, Option } from 'commander'
import { counted } from '../base/counted.ts'
import { defined } from '../base/defined.ts'
import { fileReason, MusterError, messageOf } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import { MAX_TEXT_BYTES, readStream, TOO_LARGE } from '../base/read-bounded.ts'
import { shellQuote } from '../base/shell-quote.ts'
import { homeDirectory } from '../base/user-directories.ts'
import { writeFileAtomically } from '../inventory/edit-hosts-yaml.ts'
import { isExampleFile } from '../inventory/example-file.ts'
import { readSource } from '../inventory/import/format.ts'
import { FORMATS } from '../inventory/import/formats.ts'
import { formatNote, IMPORT_KINDS, importInventory } from '../inventory/import/import-inventory.ts'
import { keepAutoClose } from '../inventory/import/keep-preference.ts'
import { readHostsFile } from '../inventory/load-inventory.ts'
import { convertDijob } from '../scheduler/launch/dijob.ts'
import { stdinOf } from './command-line/stdin.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from './command-line/verb.ts'
import { notice } from './output/notices.ts'

type Options = GlobalOptions & { readonly output?: string; readonly as?: string }

const DIJOB = 'dijob'

export const verb: VerbCode = {
  define: (command) =>
    command
      .addArgument(
        new Argument('<format>', 'the format of the file, or a file whose format is recognised')
          .choices([...IMPORT_KINDS, DIJOB])
          .argParser((word: string) => word),
      )
      .argument('[file]', "file to read (default: the tool's own; -: stdin)")
      .option('-o, --output <file>', 'write to this file (default, and -: stdout)')
      .addOption(
        new Option(
          '--as <what>',
          'with dijob: write a muster command (job, the default) or a DIJob that the current operator accepts (dijob)',
        ).choices(['job', DIJOB]),
      ),
  help: `
Formats:
${[...FORMATS, { name: DIJOB, about: 'a DIJob of DI-engine for Kubernetes, which becomes a job' }]
  .map(({ name, about }) => `  ${name.padEnd(12)}${about}`)
  .join('\n')}

Examples:
  muster import ssh                            the aliases of ~/.ssh/config
  muster import ansible                        the inventory that ansible.cfg names
  muster import inventory.ini > hosts.yaml     the format is recognised
  muster import clusterssh ~/.clusterssh/clusters
  muster import clush /etc/clustershell/groups.d/cluster.yaml -o hosts.yaml
  muster import hostfile /job/hostfile
  muster import dijob job.yaml                 the command that submits the same job
  muster import dijob job.yaml --as dijob      the DIJob in the current schema

Muster connects to no host and looks up no name. Where ansible-inventory is
installed, it reads inventories of Ansible; scripts and plugins in them do
what they do for Ansible. Settings without a counterpart are listed on stderr,
line by line.
`,
  async run(first: string, second: string | undefined, options: Options, context: CliContext) {
    const { environment: env, workingDirectory: cwd, signal } = context
    const kind = [...IMPORT_KINDS, DIJOB].includes(first) ? first : undefined
    if (kind === undefined && second !== undefined)
      throw new MusterError('usage', `unknown format: ${printable(first)}`, {
        hint: `Formats are ${[...IMPORT_KINDS, DIJOB].join(', ')}.`,
      })
    const file = kind === undefined ? first : second
    const text = await readOnce(file, context)
    const home = homeDirectory(env)
    if (kind !== DIJOB && options.as !== undefined)
      throw new MusterError('usage', `--as can only be used with ${DIJOB}`)
    const output = options.output === '-' ? undefined : options.output
    const keepPreferences = async () => {
      if (kind !== 'clusterssh') return
      const note = await keepAutoClose({ home, env }, output !== undefined)
      if (note !== undefined) context.stderr.write(`${formatNote(note)}\n`)
    }
    let result: ReturnType<typeof importDijob> | Awaited<ReturnType<typeof importInventory>>
    try {
      result =
        kind === DIJOB
          ? importDijob(file, text, options.as === DIJOB, cwd)
          : await importInventory({ others: [DIJOB], cwd, env, home, signal, ...defined({ kind, file, text }) })
    } catch (error) {
      // With hosts on the command line there are settings, but no clusters.
      await keepPreferences()
      throw error
    }
    for (const note of result.notes) context.stderr.write(`${formatNote(note)}\n`)
    if (output === undefined) {
      context.stdout.write(result.text)
      await keepPreferences()
      return EXIT.ok
    }
    const path = resolve(cwd, output)
    if (!(await writeFileAtomically(path, result.text, { isOverwriting: options.yes || isExampleFile(path) }))) {
      throw new MusterError('usage', `${printable(output)} already exists`, {
        hint: 'Add --yes to replace it, or name another file.',
      })
    }
    const what = 'hosts' in result ? `: ${counted(result.hosts, 'host')}` : ' written'
    notice(context, `${printable(output)}${what}\n`)
    await keepPreferences()
    return EXIT.ok
  },
}

/** The text of what can be read only once: stdin, or a pipe such as `<(…)`. Undefined: a file, or none. */
async function readOnce(file: string | undefined, context: CliContext) {
  const { workingDirectory, signal } = context
  if (file === undefined) return undefined
  if (file === '-') {
    const tooLarge = () => new MusterError('configuration', `cannot read stdin: ${TOO_LARGE}`)
    return (await readStream(stdinOf(context), MAX_TEXT_BYTES, tooLarge)).toString('utf8')
  }
  const path = resolve(workingDirectory, file)
  if (!statSync(path, { throwIfNoEntry: false })?.isFIFO()) return undefined
  try {
    return (await readHostsFile(path, { signal })).toString('utf8')
  } catch (error) {
    signal.throwIfAborted()
    throw new MusterError('configuration', `${printable(file)} cannot be read: ${fileReason(error)}`, { cause: error })
  }
}

function importDijob(file: string | undefined, given: string | undefined, isDijob: boolean, cwd: string) {
  if (file === undefined)
    throw new MusterError('usage', 'the file is missing', { hint: 'Run: muster import dijob FILE' })
  const { path, text } = given === undefined ? readSource(resolve(cwd, file)) : { path: file, text: given }
  try {
    const { words, dijob, notes } = convertDijob(text)
    const command = `${['muster', ...words].map((word) => (/^[\w./:=,-]+$/.test(word) ? word : shellQuote(word))).join(' ')}\n`
    return { text: isDijob ? dijob : command, notes: notes.map((note) => ({ path, ...note })) }
  } catch (error) {
    throw new MusterError('configuration', `cannot convert ${printable(path)}: ${printable(messageOf(error))}`)
  }
}
