/** `muster init [TARGET…]`: a first hosts.yaml that explains itself. It connects to no host and looks up no name. */
import { once } from 'node:events'
import { resolve } from 'node:path'
import { createInterface } from 'node:readline/promises'
import { counted } from '../base/counted.ts'
import { MusterError } from '../base/errors.ts'
import { printable } from '../base/printable.ts'
import { writeFileAtomically } from '../inventory/edit-hosts-yaml.ts'
import { isExampleFile } from '../inventory/example-file.ts'
import { isExplicitSpec, matchesGlob, parseHostSpec } from '../inventory/host-name.ts'
import { expandHostSet, foldHostSet } from '../inventory/host-set.ts'
import { parseHostsYaml } from '../inventory/hosts-yaml.ts'
import { ImportedInventory } from '../inventory/import/imported-inventory.ts'
import { formatExplainedHostsYaml } from '../inventory/new-hosts-yaml.ts'
import { fileSections } from './bring-up/areas.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from './command-line/verb.ts'
import { type SshAliases, sshAliases } from './connect/ssh-aliases.ts'
import { notice } from './output/notices.ts'

type Options = GlobalOptions & { readonly output: string }

export const verb: VerbCode = {
  define: (command) =>
    command
      .argument('[target...]', 'hosts: m[1-8], root@10.0.0.5:2222, gpu* (names in ~/.ssh/config)')
      .option('-o, --output <file>', 'write to this file (-: stdout)', 'hosts.yaml'),
  help: `
Examples:
  muster init                      the names in ~/.ssh/config, or what you type
  muster init 'm[1-8]' gpu1        these names
  muster init 'gpu*'               the names in ~/.ssh/config that match
  muster init root@10.0.0.[1-8]    addresses, with a user
  muster init 'm[1-8]' -o -        show the file, write nothing

Muster connects to no host and looks up no name. The file explains its keys; an
existing file is replaced only with --yes. \`muster import\` reads files of other
tools.
`,
  async run(targets: readonly string[], options: Options, context: CliContext) {
    const { stdin, stderr, workingDirectory: cwd } = context
    const known = await sshAliases(context)
    let words = targets
    if (targets.length === 0) {
      const isAsked = stdin.isTTY === true && stderr.isTTY === true
      const answer = isAsked ? await ask(known, context) : []
      if (answer === undefined) return EXIT.interrupted
      words = answer.length === 0 ? [...known.keys()] : answer
      if (words.length === 0)
        throw new MusterError('usage', 'no targets given, and ~/.ssh/config names no host', {
          hint: "Name the hosts: muster init 'm[1-8]', or muster init root@10.0.0.5",
        })
    }
    const inventory = hostsOf(words, known)
    const text = formatExplainedHostsYaml(inventory, await fileSections())
    const { hosts } = parseHostsYaml(text, 'hosts.yaml', [])
    if (options.output === '-') {
      context.stdout.write(text)
      return EXIT.ok
    }
    const file = printable(options.output)
    const path = resolve(cwd, options.output)
    if (!(await writeFileAtomically(path, text, { isOverwriting: options.yes || isExampleFile(path) })))
      throw new MusterError('usage', `${file} already exists`, {
        hint: 'Add --yes to replace it, --output FILE to write another one, or -o - to see what would be written.',
      })
    const count = counted(hosts.length, 'host')
    notice(context, `${file}: ${count}, ${foldHostSet(hosts.map(({ name }) => name))}. Next: muster hosts --check\n`)
    return EXIT.ok
  },
}

/** Words of one line; undefined: interrupted, or the input ended (Ctrl-D). */
async function ask(known: SshAliases, { stdin, stderr, signal }: CliContext) {
  const found = known.size === 0 ? 'It names no host.' : `It names ${foldHostSet(known.keys())}.`
  stderr.write(`Muster reads ~/.ssh/config whenever it connects. ${found}\n`)
  const enter = known.size === 0 ? '' : '; press Enter for these'
  // The terminal itself edits the line, so that Ctrl-C stays a signal.
  const lines = createInterface({ input: stdin, output: stderr, terminal: false })
  try {
    const question = lines.question(`Hosts (for example m[1-8] or root@10.0.0.5${enter}): `, { signal })
    // Of an input that ends without a line the question itself never hears.
    const [answer] = await Promise.race([question.then((text) => [text]), once(lines, 'close')])
    if (typeof answer === 'string') return answer.split(/\s+/).filter((word) => word !== '')
  } catch {
    // Interrupted.
  } finally {
    lines.close()
  }
  stderr.write('\n')
  return undefined
}

/** @throws MusterError `usage` for a word that names no host */
function hostsOf(words: readonly string[], known: SshAliases): ImportedInventory {
  const inventory = new ImportedInventory()
  for (const word of words) {
    for (const name of namesOf(word, known)) {
      if (isExplicitSpec(name)) inventory.addSpec(name, 'init', 0)
      else inventory.addHost(name, known.get(name) ?? {}, 'init', 0)
    }
  }
  inventory.settle()
  const [note] = inventory.notes.filter(({ text }) => !text.includes(' is called '))
  if (note !== undefined) throw new MusterError('usage', note.text.replace(' is left out:', ':'))
  return inventory
}

function namesOf(word: string, known: SshAliases): readonly string[] {
  if (!/[*?]/.test(word)) return parseHostSpec(word) === undefined ? expandHostSet(word) : [word]
  const names = [...known.keys()].filter((name) => matchesGlob(word, name))
  if (names.length > 0) return names
  throw new MusterError('usage', `no name in ~/.ssh/config matches ${printable(word)}`)
}
