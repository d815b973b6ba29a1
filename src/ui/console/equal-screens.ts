/** Which hosts show the same screen: for folding equal panes and for telling who differs from the majority. Pure. */

/** What one host shows, and the names that stand for it in its own prompt. */
export type HostText = { readonly host: string; readonly names: readonly string[]; readonly rows: readonly string[] }

const PLACE = '\u0001'

const escapeForRegExp = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/-]/g, '\\$&')

/** Its own names replaced by a placeholder, blank rows at the end dropped: `root@m1:~#` equals `root@m2:~#`. */
export function normaliseScreen({ names, rows }: HostText): string[] {
  const known = names.filter((name) => name !== '').sort((a, b) => b.length - a.length)
  const pattern =
    known.length === 0
      ? undefined
      : new RegExp(`(?<![\\w.-])(?:${known.map(escapeForRegExp).join('|')})(?![\\w-])`, 'g')
  const result = rows.map((row) => (pattern ? row.replace(pattern, PLACE) : row).trimEnd())
  while (result.length > 0 && result.at(-1) === '') result.pop()
  return result
}

/** Hosts with equal screens together, the largest group first, otherwise in the order given. */
export function groupEqualScreens(texts: readonly HostText[]): string[][] {
  const groups = new Map<string, string[]>()
  for (const text of texts) {
    const key = normaliseScreen(text).join('\n')
    const group = groups.get(key)
    if (group) group.push(text.host)
    else groups.set(key, [text.host])
  }
  return [...groups.values()].sort((a, b) => b.length - a.length)
}

/** Rows of `text` that differ from the same row of `majority`. */
export function differentRows(text: HostText, majority: HostText): number[] {
  const own = normaliseScreen(text)
  const theirs = normaliseScreen(majority)
  const rows: number[] = []
  for (let row = 0; row < Math.max(own.length, theirs.length); row++) if (own[row] !== theirs[row]) rows.push(row)
  return rows
}
