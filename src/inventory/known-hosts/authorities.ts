/** Which hosts are known by a certificate authority (`@cert-authority`): the built-in transport cannot check certificates. */
import { readFileSync, statSync } from 'node:fs'
import { printable } from '../../base/printable.ts'
import { lookupNameOf, type Named, secondLookupNameOf } from './lookup-name.ts'
import { KnownHosts, parseKnownHosts } from './parse.ts'

/** The lines of a file that name authorities; none where it cannot be read, which the check of the host key will say. */
export type ReadAuthorities = (path: string) => KnownHosts

const MARKER = '@cert-authority'
/** Far above any known_hosts; what is larger is no such file. */
const MAX_BYTES = 64 * 1024 * 1024

export const readAuthorities: ReadAuthorities = (path) => {
  const text = textOf(path)
  if (!text.includes(MARKER)) return new KnownHosts([])
  return new KnownHosts(parseKnownHosts(text, path).filter(({ marker }) => marker === 'cert-authority'))
}

/** Where an authority is named for this host, as a clause, or undefined. */
export function knownByAuthority(named: Named, files: readonly string[], read: ReadAuthorities): string | undefined {
  const names = [lookupNameOf(named), secondLookupNameOf(named)].filter((name) => name !== undefined)
  for (const file of files) {
    const authorities = read(file)
    const entry = names.flatMap((name) => authorities.naming(name))[0]
    if (entry !== undefined) return `its host key is signed (${MARKER} in ${printable(file)}:${entry.line})`
  }
  return undefined
}

function textOf(path: string): string {
  try {
    const found = statSync(path)
    return found.isFile() && found.size <= MAX_BYTES ? readFileSync(path, 'latin1') : ''
  } catch {
    return ''
  }
}
