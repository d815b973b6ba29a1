/** An imported inventory as the text of a hosts.yaml. */
import { foldHostSet } from '../host-set.ts'
import { formatHostKeys, formatScalar } from '../yaml-text.ts'
import type { ImportedInventory } from './imported-inventory.ts'

/** The pieces of a folded set, apart at its commas outside brackets. */
function piecesOf(folded: string): string[] {
  return folded.match(/(?:[^,[]|\[[^\]]*\])+/g) ?? []
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
  const groupLines = [...groups]
    .filter(([, group]) => group.hosts.size + group.groups.size > 0)
    .map(([name, group]) => {
      const members = [...[...group.groups].map((other) => `@${other}`), foldHostSet(group.hosts)].filter(Boolean)
      return `  ${formatScalar(name)}: ${formatScalar(members.join(','))}`
    })
  return [
    `# ${heading}`,
    'hosts:',
    ...hostLines,
    ...(groupLines.length > 0 ? ['groups:', ...groupLines] : []),
    '',
  ].join('\n')
}
