/** Ansible: an inventory as `ansible-inventory --list` prints it where that is installed, otherwise as INI or YAML. */
import { statSync } from 'node:fs'
import { basename, dirname, resolve } from 'node:path'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { runProgram } from '../../base/run-program.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { findProgram } from '../ssh-config/openssh-source.ts'
import { readAnsibleFile, readAnsibleList } from './ansible-files.ts'
import { type ImportFormat, type ImportSource, inEtc, refuse, sourcesOf } from './format.ts'
import type { ImportedInventory, SourceFile } from './imported-inventory.ts'
import { isTree, readYaml } from './read-yaml.ts'

const PROGRAM = 'ansible-inventory'
/** Scripts and plugins may ask a cloud. */
const LIMIT_MS = 120_000
const MAX_LIST_BYTES = 64 * 1024 * 1024
/** Settings under which a file that cannot be read is an error, and the output has no colours. */
const SETTINGS = {
  ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED: '1',
  ANSIBLE_INVENTORY_UNPARSED_FAILED: '1',
  ANSIBLE_NOCOLOR: '1',
  ANSIBLE_DEPRECATION_WARNINGS: '0',
  LC_ALL: 'C.UTF-8',
}

/** The output of `ansible-inventory --list` about this file, or about what ansible.cfg names. @throws MusterError `configuration` */
async function listWithAnsible(
  program: string,
  path: string | undefined,
  { cwd, env, signal }: ImportSource,
): Promise<string> {
  const failed = (reason: string) => {
    const alone = `To read the file without Ansible: muster import ansible - < ${shellQuote(printable(path ?? 'FILE'))}`
    const password = 'If a password is missing, name a file with it: export ANSIBLE_VAULT_PASSWORD_FILE=FILE\n'
    const hint = /vault secrets/.test(reason) ? password + alone : alone
    return new MusterError('configuration', `${PROGRAM} ${reason}`, { hint })
  }
  const end = await runProgram(program, [...(path === undefined ? [] : ['-i', path]), '--list'], {
    cwd,
    env: { ...env, ...SETTINGS, ANSIBLE_FORCE_COLOR: undefined },
    limitMs: LIMIT_MS,
    mostBytes: MAX_LIST_BYTES,
    signal,
  })
  signal?.throwIfAborted()
  if (end.kind === 'unable') throw failed(`cannot be started: ${printable(messageOf(end.error))}`)
  if (end.kind === 'too-much') throw failed('printed too much')
  if (end.kind !== 'exit') throw failed(`did not finish within ${LIMIT_MS / 1000} seconds`)
  if (end.code === 0) return end.stdout.toString('utf8')
  const lines = end.stderr
    .toString('utf8')
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '')
  throw failed(
    `cannot read ${printable(path ?? 'the inventory')}:\n${lines
      .slice(-8)
      .map((line) => `  ${printable(line)}`)
      .join('\n')}`,
  )
}

async function read(source: ImportSource, inventory: ImportedInventory): Promise<void> {
  const { file, text, cwd, env } = source
  const path = file === undefined ? undefined : resolve(cwd, file)
  const status = path === undefined || text !== undefined ? undefined : statSync(path, { throwIfNoEntry: false })
  const usual = inEtc(source, 'ansible/hosts')
  const program = text === undefined ? findProgram(PROGRAM, env.PATH) : undefined
  if (program !== undefined && source.isRecognised && status?.isFile() && (status.mode & 0o111) !== 0)
    refuse(
      path ?? '',
      0,
      'it is executable, and Ansible would run it',
      'To have it run: muster import ansible FILE. To read it as text: muster import ansible - < FILE',
    )
  // Ansible chooses the file itself, reads directories, and runs programs, which need not be text.
  const isItsOwn = path === undefined || status?.isDirectory() || ((status?.mode ?? 0) & 0o111) !== 0
  const isLeftToAnsible = status?.isDirectory() || (program !== undefined && isItsOwn)
  const only = isLeftToAnsible ? undefined : sourcesOf(source, 'ansible', [usual])[0]
  const list = only && readAnsibleList(only.path, only.text, inventory)
  if (list) return list.import()
  if (program === undefined) {
    if (only) return readAnsibleFile(only, inventory, text !== undefined).import()
    refuse(
      path ?? usual,
      0,
      'a directory of inventories can only be read by Ansible',
      'Install Ansible and import again, or name one file of it.',
    )
  }
  const place = path ?? 'ansible.cfg'
  const output = readAnsibleList(place, await listWithAnsible(program, path, source), inventory)
  if (output === undefined) refuse(place, 0, `${PROGRAM} printed something else than an inventory`)
  inventory.note(place, 0, `read with ${printable(program)}`)
  output.import()
}

/** Sections of an INI inventory are followed by hosts; groups.conf of ClusterShell and ansible.cfg have settings. */
function recognises({ path, text }: SourceFile): boolean {
  if (text.startsWith('$ANSIBLE_VAULT;') || /ansible/.test(basename(dirname(path)))) return true
  if (/^\[[^\]\n]+:(?:vars|children)\]|(?:^|\s)ansible_\w+\s*[=:]|^\[[\w.-]+\.hosts\]/m.test(text)) return true
  if (/^\s*\{/.test(text) && text.includes('"_meta"')) return true
  if (/^\[[^\]:=]+\]\s*$/m.test(text) && !/^\w+\s*[:=]/m.test(text)) return true
  const yaml = readYaml({ text }, '1.1')
  if (typeof yaml === 'string') return false
  return [...yaml.tree.values()].some(
    (group) => isTree(group) && ['hosts', 'children'].some((key) => group.has(key) && !Array.isArray(group.get(key))),
  )
}

export const ansible: ImportFormat = {
  name: 'ansible',
  about: 'an inventory of Ansible; with ansible-inventory installed, of any kind',
  recognises,
  read,
}
