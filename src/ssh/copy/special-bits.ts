/**
 * Set-user-id, set-group-id and sticky bits. They are not copied unless that was asked for, and never to a file of another
 * owner: a program that runs as root there would run as the owner of the copy.
 */

export type Owner = { readonly uid: number; readonly gid: number }

export const PERMISSION_BITS = 0o777
export const MODE_BITS = 0o7777

/** The bits of a mode that a copy of the owner `to` may have. */
export function modeOfCopy(mode: number, from: Owner, to: Owner | undefined): number {
  if (to === undefined || from.uid !== to.uid) return mode & PERMISSION_BITS
  return from.gid === to.gid ? mode : mode & ~0o2000
}

/** As chmod takes it (`u+rwx,g+rx,g-w,…`) to leave alone the special bits that a directory has already. */
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
