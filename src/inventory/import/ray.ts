/** Ray's cluster YAML (`ray up`): only its provider `local` names hosts; clouds make theirs. */

import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { type ImportFormat, type ImportSource, refuse, sourcesOf } from './format.ts'
import type { ImportedHost, ImportedInventory } from './imported-inventory.ts'
import { jumpOfCommand } from './proxy-command.ts'
import { entriesOf, isTree, readYaml } from './read-yaml.ts'
import { splitShellWords } from './shell-words.ts'

const USED = ['type', 'head_ip', 'worker_ips', 'ssh_user', 'ssh_private_key', 'ssh_proxy_command']

function read(source: ImportSource, inventory: ImportedInventory): void {
  const [file] = sourcesOf(source, 'ray', [])
  if (file === undefined) return
  const { path } = file
  const yaml = readYaml(file, '1.1')
  if (typeof yaml === 'string') refuse(path, 0, `it is not a cluster of Ray: ${yaml}`)
  const provider = new Map(entriesOf(yaml.tree.get('provider')))
  const auth = new Map(entriesOf(yaml.tree.get('auth')))
  const type = provider.get('type')
  if (type !== 'local')
    refuse(
      path,
      yaml.lineOf('provider', 'type'),
      `the provider ${printable(String(type))} names no hosts: it makes them`,
      'Ask the running cluster for its hosts, and write them in a list: muster import list FILE',
    )
  const textOf = (value: unknown): string | undefined => (typeof value === 'string' && value !== '' ? value : undefined)

  const command = textOf(auth.get('ssh_proxy_command'))
  const gate = command === undefined ? undefined : jumpOfCommand(splitShellWords(command) ?? [])
  const line = yaml.lineOf('auth', 'ssh_proxy_command')
  if (command !== undefined && gate === undefined) inventory.note(path, line, 'ssh_proxy_command has no counterpart')
  if (gate && gate.leftOut.length > 0)
    inventory.note(
      path,
      line,
      `the jump host ${printable(gate.jump)} is kept without ${printable(gate.leftOut.join(' '))}`,
    )
  const keys: ImportedHost = defined({
    user: textOf(auth.get('ssh_user')),
    jump: gate?.jump,
    identity_file: textOf(auth.get('ssh_private_key')),
  })
  const workers = provider.get('worker_ips')
  const members = { head: [provider.get('head_ip')], workers: Array.isArray(workers) ? workers : [] }
  for (const [group, hosts] of Object.entries(members)) {
    const at = yaml.lineOf('provider', group === 'head' ? 'head_ip' : 'worker_ips')
    for (const host of hosts) {
      const name = typeof host === 'string' ? inventory.addHost(host, keys, path, at) : undefined
      if (name !== undefined) inventory.group(group, path, at).hosts.add(name)
      else if (typeof host !== 'string')
        inventory.note(path, at, `${group} is left out: it is not the address of a host`)
    }
  }
  for (const [section, entries] of [
    ['provider', provider],
    ['auth', auth],
  ] as const)
    for (const key of entries.keys())
      if (!USED.includes(key))
        inventory.note(path, yaml.lineOf(section, key), `${section}.${printable(key)} has no counterpart`)
}

export const ray: ImportFormat = {
  name: 'ray',
  about: "Ray's cluster YAML with the provider local",
  recognises({ text }) {
    const yaml = readYaml({ text }, '1.1')
    return typeof yaml !== 'string' && isTree(yaml.tree.get('provider')) && yaml.tree.has('cluster_name')
  },
  read,
}
