/** The text of a new hosts.yaml, as `muster import` and `muster init` write it. */
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { packageRoot } from '../base/package-root.ts'
import { formatScalar } from './edit-hosts-yaml.ts'
import { expandHostSet, foldHostSet, piecesOf } from './host-set.ts'
import { fileFields, hostFields, type Section } from './hosts-yaml-schema.ts'
import type { ImportedHost, ImportedInventory } from './import/imported-inventory.ts'
import type { Fields } from './yaml-reader.ts'

/** Keys that a new file explains in place. */
const HOST_KEYS = ['address', 'port', 'user', 'jump', 'identity_file', 'resources'] as const

/** The schema that editors with yaml-language-server check and complete the file with: the one of this installation. */
export const SCHEMA_LINE = `# yaml-language-server: $schema=${pathToFileURL(join(packageRoot(), 'docs/schema/files/hosts.yaml.schema.json'))}`

/** A valid hosts.yaml. `heading`: the first line for people. */
export function formatHostsYaml(inventory: ImportedInventory, heading: string): string {
  const { hostLines, groupLines } = linesOf(inventory)
  const groups = groupLines.length === 0 ? [] : ['groups:', ...groupLines]
  return [SCHEMA_LINE, `# ${heading}`, 'hosts:', ...hostLines, ...groups, ''].join('\n')
}

/** The same, with every key that a beginner needs explained, and written as a comment where it has no value yet. */
export function formatExplainedHostsYaml(inventory: ImportedInventory, sections: readonly Section[]): string {
  const { hostLines } = linesOf(inventory)
  const first = inventory.hosts.keys().next().value ?? 'm8'
  const { cluster, defaults, groups } = fileFields
  const keys = HOST_KEYS.map(
    (key) => `  #   ${`${key}: ${exampleOf(hostFields, key)}`.padEnd(47)}${brief(hostFields[key].about)}`,
  )
  return [
    SCHEMA_LINE,
    '# The hosts of Muster. docs/hosts-yaml.md explains every key; `muster hosts --check` shows which hosts answer.',
    '',
    `# ${brief(cluster.about)}`,
    `# cluster: ${cluster.example}`,
    '',
    `# ${brief(defaults.about)}`,
    `# defaults: ${defaults.example}`,
    '',
    '# A name or a host set on each line. A name alone takes everything from ~/.ssh/config.',
    'hosts:',
    ...hostLines,
    '  # Keys of a host, for example `m9: { address: 10.0.0.9, user: root }`:',
    ...keys,
    '',
    `# ${brief(groups.about)}`,
    `# groups: { first: ${formatScalar(first)} }`,
    '',
    '# Sections for `muster up`, the queue and launchers; docs/hosts-yaml.md explains each:',
    ...sections.map(({ key, field }) => `#   ${key.padEnd(13)}${brief(field.about)}`),
    '',
  ].join('\n')
}

/** The first sentence. */
const brief = (about: string): string => /^.*?[.](?= |$)/s.exec(about)?.[0] ?? about

const exampleOf = (fields: Fields, key: string): string => fields[key]?.example ?? ''

/** The names of groups with hosts: hosts.yaml has no empty groups, and no groups of only empty groups. */
function withoutEmpty(groups: ImportedInventory['groups']): ReadonlySet<string> {
  const names = new Set(groups.keys())
  for (let before = Number.POSITIVE_INFINITY; names.size < before; ) {
    before = names.size
    for (const [name, group] of groups) {
      if (group.hosts.size === 0 && ![...group.groups].some((other) => names.has(other))) names.delete(name)
    }
  }
  return names
}

/** ` { address: …, port: … }`, or nothing. */
function formatHostKeys(host: ImportedHost): string {
  const entries = Object.entries(host).map(([key, value]) => {
    // A percent sign begins a token in these.
    const written = key === 'address' || key === 'ssh_alias' ? String(value).replaceAll('%', '%%') : value
    return `${key}: ${typeof written === 'number' ? written : formatScalar(String(written))}`
  })
  return entries.length === 0 ? '' : ` { ${entries.join(', ')} }`
}

/** YAML allows 1024 characters in a key that is followed by a colon. */
const MAX_KEY = 1000

/** The names as few host sets, each short enough to be a key. */
function keysFor(names: readonly string[]): string[] {
  return piecesOf(foldHostSet(names)).flatMap((piece) => {
    if (formatScalar(piece).length <= MAX_KEY) return [piece]
    const members = expandHostSet(piece)
    const middle = members.length >> 1
    return [members.slice(0, middle), members.slice(middle)].flatMap(keysFor)
  })
}

/** Hosts with equal entries share a line; groups name their hosts folded and their groups as `@group`. */
function linesOf({ hosts, groups }: ImportedInventory) {
  const byEntry = Map.groupBy(hosts, ([, host]) => formatHostKeys(host))
  const hostLines = [...byEntry].flatMap(([entry, members]) =>
    keysFor(members.map(([name]) => name)).map((key) => `  ${formatScalar(key)}:${entry}`),
  )
  const isWritten = withoutEmpty(groups)
  const groupLines = [...groups].flatMap(([name, group]) => {
    if (!isWritten.has(name)) return []
    const others = [...group.groups].filter((other) => isWritten.has(other)).map((other) => `@${other}`)
    const members = [...others, foldHostSet(group.hosts)].filter(Boolean)
    return [`  ${formatScalar(name)}: ${formatScalar(members.join(','))}`]
  })
  return { hostLines, groupLines }
}
