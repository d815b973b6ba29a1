/** Globs of host names: `*` any run of characters, `?` one. Linear in practice, because only the last star is tried again. */
export function matchesGlob(glob: string, name: string): boolean {
  let g = 0
  let n = 0
  let star = -1
  let resume = 0
  while (n < name.length) {
    if (glob[g] === '*') {
      star = g
      resume = n
      g += 1
    } else if (glob[g] === '?' || glob[g] === name[n]) {
      g += 1
      n += 1
    } else if (star >= 0) {
      g = star + 1
      resume += 1
      n = resume
    } else return false
  }
  while (glob[g] === '*') g += 1
  return g === glob.length
}
