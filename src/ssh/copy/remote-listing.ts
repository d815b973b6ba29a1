/** Parses the listing of the remote script (its function N). A name outside of the source is an error: a host may be hostile. */
import type { BytePath } from './byte-path.ts'
import { type Facts, MODE_BITS, type Owner } from './source.ts'

export type RemoteEntry = Facts & {
  readonly owner: Owner
  readonly path: BytePath
  /** Relative to the source; empty: the source itself. */
  readonly below: BytePath
  readonly kind: 'directory' | 'link' | 'file' | 'other'
  readonly sizeBytes: number
  readonly isSparse: boolean
}

export type RemoteListing = {
  readonly entries: readonly RemoteEntry[]
  /** Names without facts: the files are gone, or must not be read. */
  readonly unknown: readonly BytePath[]
}

const FACTS =
  /(?<mode>[0-9a-f]+):(?<size>\d+):(?<time>-?\d+)(?:[.,](?<fraction>\d{1,9}))?:(?<blocks>\d+):(?<uid>\d+):(?<gid>\d+):/iy
/** By the upper bits of st_mode (inode(7)): S_IFDIR, S_IFREG, S_IFLNK. */
const KINDS: Readonly<Record<number, RemoteEntry['kind']>> = { 4: 'directory', 8: 'file', 10: 'link' }

/** @throws Error if it is not a valid listing */
export function parseListing(text: string): RemoteListing {
  const entries: RemoteEntry[] = []
  const unknown: BytePath[] = []
  let root: BytePath | undefined
  const parts = text.split('\0')
  if (parts.pop() !== '') throw new Error('the listing is incomplete')
  for (let at = 0; at < parts.length; ) {
    const names: BytePath[] = []
    for (let name = parts[at++]; name !== ''; name = parts[at++]) {
      if (name === undefined) throw new Error('the listing is incomplete')
      names.push(name)
    }
    const facts = parts[at++]
    if (facts === undefined) throw new Error('the listing is incomplete')
    let offset = 0
    for (const name of names) {
      root ??= name
      FACTS.lastIndex = offset
      const match = FACTS.exec(facts)
      if (match?.groups === undefined || !facts.startsWith(`${name}\n`, FACTS.lastIndex)) {
        unknown.push(name)
        continue
      }
      offset = FACTS.lastIndex + name.length + 1
      entries.push(entryOf(name, belowOf(root, name), match.groups))
    }
  }
  return { entries, unknown }
}

function entryOf(path: BytePath, below: BytePath, groups: Readonly<Record<string, string | undefined>>): RemoteEntry {
  const mode = Number.parseInt(groups.mode ?? '', 16)
  const sizeBytes = Number(groups.size)
  const fraction = BigInt((groups.fraction ?? '').padEnd(9, '0'))
  return {
    path,
    below,
    kind: KINDS[mode >> 12] ?? 'other',
    mode: mode & MODE_BITS,
    owner: { uid: Number(groups.uid), gid: Number(groups.gid) },
    mtimeNs: BigInt(groups.time ?? 0) * 1_000_000_000n + fraction,
    sizeBytes,
    isSparse: Number(groups.blocks) * 512 < sizeBytes,
  }
}

function belowOf(root: BytePath, name: BytePath): BytePath {
  if (name === root) return ''
  const prefix = root.endsWith('/') ? root : `${root}/`
  const below = name.slice(prefix.length)
  const isInside = name.startsWith(prefix) && below.split('/').every((part) => !['', '.', '..'].includes(part))
  if (!isInside) throw new Error('the host listed a name outside of the source')
  return below
}
