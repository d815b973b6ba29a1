/** What the last name of an unfinished host set may become. */
import { counted } from '../base/counted.ts'
import type { Inventory } from './inventory.ts'

/** The description of a host. */
export const HOST = 'host'

/** The last operand: what follows the last comma, operator or parenthesis; undefined inside [ranges]. */
export function lastOperand(text: string): { readonly from: number; readonly word: string } | undefined {
  const from = Math.max(...[',', '!', '&', '^', ' ', '('].map((sign) => text.lastIndexOf(sign))) + 1
  return text.lastIndexOf('[') > text.lastIndexOf(']') ? undefined : { from, word: text.slice(from) }
}

/** Every host and group, and `all`, each with a description. */
export function operandsOf({
  hosts,
  groups,
}: Pick<Inventory, 'hosts' | 'groups'>): readonly (readonly [string, string])[] {
  return [
    ...hosts.map(({ name }) => [name, HOST] as const),
    ...[...groups].map(([name, { length }]) => [`@${name}`, counted(length, 'host')] as const),
    ['all', counted(hosts.length, 'host')],
  ]
}
