/**
 * Modes and times of files. Setuid, setgid and sticky bits are copied only on request, and never to a file of another owner: a
 * program must not run as somebody else because it was copied.
 */

export type Owner = { readonly uid: number; readonly gid: number }

export const PERMISSION_BITS = 0o777
export const MODE_BITS = 0o7777

/** The mode of a copy that belongs to `to`. */
export function modeOfCopy(mode: number, from: Owner, to: Owner | undefined): number {
  if (to === undefined || from.uid !== to.uid) return mode & PERMISSION_BITS
  return from.gid === to.gid ? mode : mode & ~0o2000
}

/** For chmod, as `u+rwx,g+rx,g-w,…`, which keeps the special bits that a directory already has. */
export function symbolicMode(mode: number): string {
  const clauses: string[] = []
  for (const [index, who] of ['u', 'g', 'o'].entries()) {
    const bits = (mode >> (6 - 3 * index)) & 7
    const letters = (wanted: number) => ['r', 'w', 'x'].filter((_, bit) => (wanted >> (2 - bit)) & 1).join('')
    if (bits !== 0) clauses.push(`${who}+${letters(bits)}`)
    if (bits !== 7) clauses.push(`${who}-${letters(~bits & 7)}`)
  }
  for (const [bit, clause] of [
    [0o4000, 'u+s'],
    [0o2000, 'g+s'],
    [0o1000, '+t'],
  ] as const)
    if ((mode & bit) !== 0) clauses.push(clause)
  return clauses.join(',')
}

/** For touch, in UTC: `2026-11-21 10:00:00.000000001`, and `202611211000.00` for one without fractions. */
export function touchTimes(mtimeNs: bigint): readonly [time: string, stamp: string] {
  const second = 1_000_000_000n
  const fraction = ((mtimeNs % second) + second) % second
  const iso = new Date(Number((mtimeNs - fraction) / 1_000_000n)).toISOString()
  const time = `${iso.slice(0, 10)} ${iso.slice(11, 19)}.${String(fraction).padStart(9, '0')}`
  const stamp = `${iso.slice(0, 16).replace(/[-T:]/g, '')}.${iso.slice(17, 19)}`
  return [time, stamp]
}
