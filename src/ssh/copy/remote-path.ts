/** Paths on hosts as users type them. */
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'

/** What is wrong with a path such as `m8:/tmp`: for scp and rsync, a colon before the first slash ends the name of a host. */
export function hostInPath(path: string): MusterError | undefined {
  const [prefix] = /^[^/]*:/.exec(path) ?? []
  if (prefix === undefined) return undefined
  const rest = path.slice(prefix.length) || '.'
  return new MusterError('usage', `${printable(path)} names a host, but the target already says which hosts`, {
    hint: `Write ${printable(rest)}, or ${printable(`./${path}`)} if the colon is part of a name.`,
  })
}
