/**
 * Compares `muster import ansible` with `ansible-inventory --list` on the inventories of Ansible's own tests, in a checkout of it:
 *
 *     PATH=VENV/bin:$PATH node --import tsx scripts/compare/ansible.ts CHECKOUT
 *
 * Every file of the tests whose path has `inventory` in it, or that is called hosts, is imported with and without ansible-inventory; most
 * are no inventory at all. Hosts, members of groups, and address, port, user, key file and connection of every host must be those
 * that Ansible sees, or the file must be refused. Executable files are left out, because Ansible runs them. The exit code is 1
 * if a file disagrees. Nothing is written into the checkout.
 */
import { execFile } from 'node:child_process'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join, relative } from 'node:path'
import { promisify } from 'node:util'
import { messageOf } from '../../src/base/errors.ts'
import { printable } from '../../src/base/printable.ts'
import { parseHostsYaml } from '../../src/inventory/hosts-yaml.ts'
import { importInventory } from '../../src/inventory/import/import-inventory.ts'

type HostKeys = {
  readonly address: string
  readonly port?: number
  readonly user?: string
  readonly key?: string
  readonly isLocal: boolean
}
/** What both sides say about one file, by the names of hosts and of groups. */
type Seen = { readonly hosts: ReadonlyMap<string, HostKeys>; readonly groups: ReadonlyMap<string, readonly string[]> }
type Outcome = Seen | { readonly refused: string }

type Listed = { readonly hosts?: readonly string[]; readonly children?: readonly string[] }
type Variables = Readonly<Record<string, unknown>>

const LIMITS = { timeout: 120_000, maxBuffer: 2 ** 26 }
const SETTINGS = {
  ANSIBLE_INVENTORY_ANY_UNPARSED_IS_FAILED: '1',
  ANSIBLE_INVENTORY_UNPARSED_FAILED: '1',
  LC_ALL: 'C.UTF-8',
}

async function askAnsible(path: string, cwd: string): Promise<Outcome> {
  const env = { PATH: process.env.PATH, HOME: cwd, ...SETTINGS }
  try {
    const { stdout } = await promisify(execFile)('ansible-inventory', ['-i', path, '--list'], { ...LIMITS, cwd, env })
    const seen = seenByAnsible(JSON.parse(stdout))
    const resolved = new Map<string, HostKeys>()
    for (const [name, keys] of seen.hosts) {
      if (!keys.address.includes('{{')) continue
      // Ansible resolves templates for tasks only; this one connects to no host.
      const task = ['-i', path, name, '-m', 'ansible.builtin.debug', '-a', 'msg={{ ansible_host }}']
      const answer = await promisify(execFile)('ansible', task, { ...LIMITS, cwd, env })
      resolved.set(name, { ...keys, address: /"msg": "([^"]*)"/.exec(answer.stdout)?.[1] ?? keys.address })
    }
    return { ...seen, hosts: new Map([...seen.hosts, ...resolved]) }
  } catch (error) {
    return {
      refused:
        messageOf(error)
          .split('\n')
          .filter((line) => /ERROR/.test(line))
          .join(' ') || messageOf(error),
    }
  }
}

function seenByAnsible({
  _meta,
  ...groups
}: {
  readonly _meta: { readonly hostvars: Readonly<Record<string, Variables>> } & Readonly<Record<string, unknown>>
}): Seen {
  const listed = new Map(Object.entries(groups as Readonly<Record<string, Listed>>))
  const membersOf = (name: string): string[] => {
    const { hosts = [], children = [] } = listed.get(name) ?? {}
    return [...hosts, ...children.flatMap(membersOf)]
  }
  const names = [...new Set([...[...listed.keys()].flatMap(membersOf), ...Object.keys(_meta.hostvars)])]
  return {
    hosts: new Map(names.map((name) => [name, keysOf(name, _meta.hostvars[name] ?? {})])),
    groups: new Map(
      [...listed.keys()]
        .filter((name) => !['all', 'ungrouped'].includes(name) && membersOf(name).length > 0)
        .map((name) => [name, membersOf(name)]),
    ),
  }
}

/** In the order of Ansible's connection plugin for ssh: the last name wins. */
function keysOf(name: string, variables: Variables): HostKeys {
  const take = (...keys: readonly string[]): string | undefined => {
    const found = keys.findLast((key) => variables[key] !== undefined)
    return found === undefined ? undefined : String(variables[found])
  }
  const port = take('ansible_port', 'ansible_ssh_port')
  const user = take('ansible_user', 'ansible_ssh_user')
  const key = take('ansible_private_key_file', 'ansible_ssh_private_key_file')
  return {
    address: take('ansible_host', 'ansible_ssh_host') ?? name,
    isLocal: /(?:^|\.)local$/.test(take('ansible_connection') ?? ''),
    ...(port !== undefined && { port: Number(port) }),
    ...(user !== undefined && { user }),
    ...(key !== undefined && { key }),
  }
}

/** By the names of the source, which the notes tell for hosts and groups whose names hosts.yaml cannot have. */
async function askMuster(
  path: string,
  cwd: string,
  PATH: string,
): Promise<Outcome & { readonly leftOut?: readonly string[] }> {
  try {
    const { text, notes } = await importInventory({
      kind: 'ansible',
      file: path,
      cwd,
      home: cwd,
      etc: cwd,
      env: { PATH, HOME: cwd },
    })
    const { hosts, groups } = parseHostsYaml(text, 'hosts.yaml', [])
    const renamed = new Map<string, string>()
    const leftOut: string[] = []
    for (const note of notes) {
      const [, before, after] = /^(?:group )?(.*) is called (.*) here$/.exec(note.text) ?? []
      if (before !== undefined && after !== undefined) renamed.set(after, before)
      const [, host] = /^(.*) is left out: /.exec(note.text) ?? []
      if (host !== undefined) leftOut.push(host)
    }
    const named = (name: string): string => renamed.get(name) ?? name
    return {
      leftOut,
      hosts: new Map(
        hosts.map(({ name, address, port, user, identityFiles, transport }) => [
          named(name),
          {
            address: address ?? named(name),
            isLocal: transport === 'local',
            ...(port !== undefined && { port }),
            ...(user !== undefined && { user }),
            ...(identityFiles !== undefined && { key: identityFiles.join() }),
          },
        ]),
      ),
      groups: new Map([...groups].map(([name, members]) => [named(name), members.map(named)])),
    }
  } catch (error) {
    return { refused: messageOf(error) }
  }
}

/** Hosts that were left out with a reason are no difference. */
function differencesBetween(theirs: Seen, ours: Seen, leftOut: readonly string[]): string[] {
  const differences: string[] = []
  const kept = (names: Iterable<string>): string[] =>
    [...new Set(names)].filter((name) => !leftOut.includes(name)).sort()
  const compare = (what: string, left: unknown, right: unknown): void => {
    if (JSON.stringify(left) !== JSON.stringify(right))
      differences.push(`${what}: Ansible ${JSON.stringify(left)}, Muster ${JSON.stringify(right)}`)
  }
  compare('hosts', kept(theirs.hosts.keys()), [...ours.hosts.keys()].sort())
  for (const [name, keys] of ours.hosts) if (theirs.hosts.has(name)) compare(name, theirs.hosts.get(name), keys)
  const groups = [...theirs.groups].filter(([, members]) => kept(members).length > 0)
  compare('groups', groups.map(([name]) => name).sort(), [...ours.groups.keys()].sort())
  for (const [name, members] of groups) compare(`@${name}`, kept(members), kept(ours.groups.get(name) ?? []))
  return differences
}

function filesIn(directory: string): string[] {
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .map((entry) => join(entry.parentPath, entry.name))
    .filter((path) => {
      const status = lstatSync(path)
      const isInventory = /inventory/i.test(relative(directory, path)) || /^hosts/.test(basename(path))
      return status.isFile() && (status.mode & 0o111) === 0 && isInventory && !/\.py$/.test(path)
    })
    .sort()
}

async function main(checkout: string): Promise<void> {
  const home = mkdtempSync(join(tmpdir(), 'muster-ansible-'))
  const counts = new Map<string, number>()
  const count = (what: string) => counts.set(what, (counts.get(what) ?? 0) + 1)
  try {
    for (const path of filesIn(join(checkout, 'test'))) {
      const theirs = await askAnsible(path, home)
      count(`Ansible: ${'refused' in theirs ? 'refused' : 'read'}`)
      for (const [how, PATH] of [
        ['with ansible-inventory', process.env.PATH ?? ''],
        ['without', ''],
      ] as const) {
        const ours = await askMuster(path, home, PATH)
        const isEmpty = !('refused' in theirs) && theirs.hosts.size === 0
        const differences =
          'refused' in ours
            ? []
            : 'refused' in theirs
              ? [`Ansible refuses it: ${theirs.refused.slice(0, 300)}`]
              : differencesBetween(theirs, ours, ours.leftOut ?? [])
        // Ansible reads this output from scripts only; Muster reads it from files, too.
        const isList = 'refused' in theirs && !('refused' in ours) && readFileSync(path, 'utf8').includes('"_meta"')
        const outcome = isList
          ? 'the output of a script, read by Muster only'
          : differences.length > 0
            ? 'DISAGREES'
            : !('refused' in ours)
              ? 'agrees'
              : 'refused' in theirs || isEmpty
                ? 'refused by both'
                : 'refused by Muster only'
        count(`${how}: ${outcome}`)
        if (outcome === 'DISAGREES' || outcome === 'refused by Muster only') {
          console.log(`${relative(checkout, path)} (${how}): ${outcome}`)
          for (const line of 'refused' in ours ? [ours.refused] : differences) console.log(`    ${printable(line)}`)
        }
      }
    }
  } finally {
    rmSync(home, { recursive: true })
  }
  for (const [what, number] of [...counts].sort()) console.log(`${what}: ${number}`)
  if ([...counts.keys()].some((what) => what.endsWith('DISAGREES'))) process.exitCode = 1
}

const [checkout] = process.argv.slice(2)
if (checkout === undefined) {
  console.error(
    'Usage: ansible.ts CHECKOUT, a checkout of https://github.com/ansible/ansible, with ansible-inventory in PATH',
  )
  process.exitCode = 2
} else await main(checkout)
