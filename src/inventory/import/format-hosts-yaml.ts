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
  const byEntry = Map.groupBy(hosts, ([, host]) => {
    const keys = formatHostKeys(host)
    return keys === '' ? '' : ` ${keys}`
  })
  const hostLines = [...byEntry].flatMap(([entry, members]) =>
    piecesOf(foldHostSet(members.map(([name]) => name))).map((piece) => `  ${formatScalar(piece)}:${entry}`),
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
