/** The doctor's report as lines for a terminal: the gravest first, one line for each finding with all its hosts, and the fix below. */
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { type Finding, GRAVITIES, type Gravity } from '../kernel/finding.ts'
import { sortByGravity } from './host-report.ts'
import type { Counts } from './report-events.ts'

export type Paint = (gravity: Gravity, text: string) => string

const PLAIN: Paint = (_, text) => text
const MAX_DETAILS = 4

/** `order`: all hosts, as the inventory has them. */
export function formatFindings(findings: readonly Finding[], order: readonly string[], paint: Paint = PLAIN): string {
  const place = new Map(order.map((host, index) => [host, index]))
  const placeOf = ({ host }: Finding) => place.get(host) ?? 0
  const inOrder = findings.toSorted((one, other) => placeOf(one) - placeOf(other))
  const groups = Map.groupBy(sortByGravity(inOrder), ({ gravity, id, cause, fix, hint }) =>
    JSON.stringify([gravity, id, cause, fix, hint]),
  )
  const width = Math.max(...GRAVITIES.map((word) => word.length))
  return [...groups.values()]
    .map((group) => {
      const { gravity, cause, fix, hint } = group[0] as Finding
      const hosts = foldHostSet(group.map(({ host }) => host))
      const details = describeDetails(group)
      const command = fix && `${fix.where === 'here' ? 'here' : `on ${hosts}`}: ${fix.command}`
      const remedy = hint ?? command
      const label = paint(gravity, gravity.padEnd(width))
      const line = `${label}  ${printable(`${hosts}: ${cause}${details === '' ? '' : ` [${details}]`}`)}\n`
      return remedy === undefined ? line : `${line}${' '.repeat(width + 4)}${printable(remedy)}\n`
    })
    .join('')
}

/** One detail if it is the same for all hosts, else the first few by host. */
function describeDetails(findings: readonly Finding[]): string {
  const byDetail = Map.groupBy(
    findings.filter(({ detail }) => detail !== undefined),
    ({ detail }) => detail ?? '',
  )
  const groups = [...byDetail].map(([detail, group]) => ({ detail, hosts: group.map(({ host }) => host) }))
  const [only] = groups
  if (only === undefined) return ''
  if (groups.length === 1 && only.hosts.length === findings.length) return only.detail
  const shown = groups.slice(0, MAX_DETAILS).map(({ detail, hosts }) => `${foldHostSet(hosts)} ${detail}`)
  const left = groups.length - shown.length
  return left === 0 ? shown.join('; ') : `${shown.join('; ')}; ${left} more`
}

/** `9 hosts: 6 ok, 1 at risk, 1 blocked, 1 unreachable` */
export function formatSummary(counts: Counts): string {
  const { well, risk, blocked, unreachable } = counts
  const total = well + risk + blocked + unreachable
  const words = [`${well} ok`]
  if (risk > 0) words.push(`${risk} at risk`)
  if (blocked > 0) words.push(`${blocked} blocked`)
  if (unreachable > 0) words.push(`${unreachable} not reached`)
  return `${total} ${total === 1 ? 'host' : 'hosts'}: ${words.join(', ')}\n`
}
