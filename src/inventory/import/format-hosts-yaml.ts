/** An imported inventory as the text of a hosts.yaml. */
import { foldHostSet } from '../host-set.ts'
import { formatHostKeys, formatScalar } from '../yaml-text.ts'
import type { ImportedInventory } from './imported-inventory.ts'

/** The pieces of a folded set, apart at its commas outside brackets. */
function piecesOf(folded: string): string[] {
  return folded.match(/(?:[^,[]|\[[^\]]*\])+/g) ?? []
}

/** A group without a host is none in hosts.yaml, and neither is one of such groups alone. Names of those that remain. */
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

/** Hosts with equal entries share a line; groups name their hosts folded and their groups as `@group`. */
export function formatHostsYaml({ hosts, groups }: ImportedInventory, heading: string): string {
  const byEntry = new Map<string, string[]>()
  for (const [name, host] of hosts) {
    const keys = formatHostKeys(host)
    const entry = keys === '' ? '' : ` ${keys}`
    const names = byEntry.get(entry)
    if (names) names.push(name)
    else byEntry.set(entry, [name])
  }
  const hostLines = [...byEntry].flatMap(([entry, names]) =>
    piecesOf(foldHostSet(names)).map((piece) => `  ${formatScalar(piece)}:${entry}`),
  )
  const isWritten = withoutEmpty(groups)
  const groupLines = [...groups].flatMap(([name, group]) => {
    if (!isWritten.has(name)) return []
    const others = [...group.groups].filter((other) => isWritten.has(other)).map((other) => `@${other}`)
    const members = [...others, foldHostSet(group.hosts)].filter(Boolean)
    return [`  ${formatScalar(name)}: ${formatScalar(members.join(','))}`]
  })
  return [
    `# ${heading}`,
    'hosts:',
    ...hostLines,
    ...(groupLines.length > 0 ? ['groups:', ...groupLines] : []),
    '',
  ].join('\n')
}
