/**
 * Proves that a directory is the same one on several hosts: each writes a file of a secret name with a secret text into it, and
 * reads those of the others. Each host is believed about itself alone: two hosts share it only if each read the other's text.
 */
import { posix } from 'node:path'
import { printable } from '../../base/printable.ts'
import { newProofName, PROOF_FILE } from '../../base/proof-file.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { complaint, type Finding } from '../kernel/finding.ts'
import { type OpsHosts, reasonOfResult } from '../kernel/host-port.ts'
import { groupsOf, type ProofResults, writeThenLook } from '../kernel/shared-home.ts'
import { formatOutcome } from '../run/outcome.ts'
import { trimmed } from './mounts.ts'
import { section } from './section.ts'
import { type Share, sourceOf } from './wanted.ts'

export type SharedDirectoryOptions = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  /** What hosts.yaml declares in `nfs`. */
  readonly shares: readonly Pick<Share, 'server' | 'serverAddress' | 'path' | 'point' | 'clients'>[]
  /** The script that runs another one where the path is meant: in a container. */
  wrap?(host: string, script: string): string
}

/** `isUnsure`: the host could not be asked, or did not answer in time. */
export type DirectoryFinding = Finding & { readonly isUnsure: boolean }

/** A finding as one sentence with its fix. Printable. */
export const directoryProblem = ({ host, cause, hint = '', isUnsure }: DirectoryFinding) => ({
  words: printable(`${host}: ${cause}. ${hint}`.trimEnd()),
  isUnsure,
})

/** As `shared-home`, whose limit is for facts: a server under load takes longer. */
const LIMIT_FACTOR = 2
const MOST_PATH = 1024

/** The absolute path without `..` and slashes at the end; undefined: it cannot be the path of a directory of results. */
export function directoryPath(text: string): string | undefined {
  if (!text.startsWith('/') || text.length > MOST_PATH || /[\x00-\x1f\x7f]/.test(text)) return undefined
  const path = posix.normalize(text).replace(/(?<!\/)\/+$/, '')
  return path === '' ? undefined : path
}

/** Never rejects. A finding for each host on which it is not the one that the others have; empty: it is one directory. */
export async function checkSharedDirectory(
  path: string,
  names: readonly string[],
  { hosts, signal, shares, wrap }: SharedDirectoryOptions,
): Promise<readonly DirectoryFinding[]> {
  const proofs = new Map(names.map((host) => [host, { name: newProofName(), text: newProofName() }]))
  const all = [...proofs.values()].map(({ name }) => name)
  const scripts = new Map(
    [...proofs].map(([host, { name, text }]) => [
      host,
      { write: writeScript(path, name, text), look: lookScript(path, all) },
    ]),
  )
  const options = { hosts, signal, limitFactor: LIMIT_FACTOR, ...(wrap === undefined ? {} : { wrap }) }
  const found = await writeThenLook(scripts, options)
  const views = new Map([...found].map(([host, results]) => [host, viewOf(results, proofs)]))
  return judge(path, views, shares)
}

/** A directory that is missing will be made in the one above it, so that one is proved then. */
const writeScript = (path: string, name: string, text: string): string => `p=${shellQuote(path)}; d=$p
if [ ! -d "$d" ]; then
  ! { [ -e "$p" ] || [ -L "$p" ]; } || { echo file; exit 3; }
  d=\${p%/*}
  [ -n "$d" ] && [ -d "$d" ] || { echo absent; exit 3; }
  echo above
fi
sweep_proofs "$d"
prove "$d" ${name} ${text} || { echo "denied $(id -un 2> /dev/null)"; exit 3; }`

const lookScript = (path: string, names: readonly string[]): string => `p=${shellQuote(path)}
for d in "$p" "\${p%/*}"; do
  for n in ${names.join(' ')}; do
    f=$d/${PROOF_FILE}$n
    [ -f "$f" ] && [ ! -L "$f" ] || continue
    echo "$n $(head -c 64 "$f" 2> /dev/null)"
  done
done
echo end`

type Proofs = ReadonlyMap<string, { readonly name: string; readonly text: string }>

/** `sees`: whose files are there; `reads`: whose text it could tell. `isAbove`: the directory itself is missing. */
export type DirectoryView =
  | {
      readonly kind: 'written'
      readonly isAbove: boolean
      readonly sees: ReadonlySet<string>
      readonly reads: ReadonlySet<string>
    }
  | { readonly kind: 'absent' | 'file' }
  | { readonly kind: 'denied'; readonly login: string }
  | { readonly kind: 'unsure'; readonly because: string }

function viewOf({ isWritten, wrote, looked }: ProofResults, proofs: Proofs): DirectoryView {
  const said = Buffer.from(wrote.stdout).toString().split('\n')
  const lines = Buffer.from(looked.stdout).toString().split('\n')
  if (!isWritten) {
    const { outcome } = wrote
    const last = said.findLast((line) => line !== '') ?? ''
    if (outcome.kind === 'exit' && outcome.code === 3) {
      if (last === 'absent' || last === 'file') return { kind: last }
      if (last.startsWith('denied')) return { kind: 'denied', login: /^denied ([\w.-]{1,32})$/.exec(last)?.[1] ?? '' }
    }
    const isLate = outcome.kind === 'timeout' || outcome.kind === 'cancelled'
    return { kind: 'unsure', because: isLate ? 'no answer in time' : reasonOfResult(wrote, formatOutcome) }
  }
  if (!lines.includes('end')) return { kind: 'unsure', because: reasonOfResult(looked, formatOutcome) }
  const told = new Set(lines)
  const names = new Set(lines.map((line) => line.split(' ', 1)[0]))
  const hostsWith = (isThere: (proof: { readonly name: string; readonly text: string }) => boolean) =>
    new Set([...proofs].flatMap(([host, proof]) => (isThere(proof) ? [host] : [])))
  return {
    kind: 'written',
    isAbove: said.includes('above'),
    sees: hostsWith(({ name }) => names.has(name)),
    reads: hostsWith(({ name, text }) => told.has(`${name} ${text}`)),
  }
}

/** Pure. */
export function judge(
  path: string,
  views: ReadonlyMap<string, DirectoryView>,
  shares: SharedDirectoryOptions['shares'],
): readonly DirectoryFinding[] {
  const written = new Map(
    [...views].flatMap(([host, view]) => (view.kind === 'written' ? [[host, view] as const] : [])),
  )
  const groups = groupsOf(new Map([...written].map(([host, { reads }]) => [host, reads])))
  const share = shareOf(path, shares)
  const size = (group: readonly string[]) => (share !== undefined && group.includes(share.server) ? 1e6 : group.length)
  const most = groups.toSorted((one, other) => size(other) - size(one))[0] ?? []
  const [first = ''] = most
  const problem = (host: string, id: string, cause: string, more: { isUnsure?: boolean; hint?: string } = {}) => ({
    ...complaint('blocker', id, cause, { hint: more.hint ?? fixOf(path, host, shares) }),
    host,
    isUnsure: more.isUnsure ?? false,
  })
  const findingOf = (host: string, view: DirectoryView): DirectoryFinding | undefined => {
    switch (view.kind) {
      case 'unsure': {
        const more = { isUnsure: true, hint: 'The check is repeated.' }
        return problem(host, 'directory-unknown', `cannot check ${path}: ${view.because}`, more)
      }
      case 'absent':
        return problem(host, 'directory-missing', `${path} does not exist, nor the directory above it`)
      case 'file':
        return problem(host, 'directory-missing', `${path} is not a directory`, { hint: 'Give another path.' })
      case 'denied': {
        const who = view.login === '' ? 'its login' : view.login
        const hint = `Let ${who} write there on this host.`
        return problem(host, 'directory-denied', `${who} cannot write to ${path}`, { hint })
      }
      case 'written': {
        if (most.includes(host)) return undefined
        const isSeen = view.sees.has(first) && written.get(first)?.sees.has(host) === true
        if (!isSeen) return problem(host, 'directory-differs', `${path} is not the directory that ${first} has`)
        const cause = view.reads.has(first)
          ? `${first} cannot read its files in ${path}`
          : `it cannot read the files of ${first} in ${path}`
        return problem(host, 'directory-unreadable', cause, { hint: 'Use the same user ID on both.' })
      }
    }
  }
  return [...views].flatMap(([host, view]) => findingOf(host, view) ?? [])
}

type DeclaredShare = SharedDirectoryOptions['shares'][number]

const isBelow = (path: string, top: string) => path === top || top === '/' || path.startsWith(`${top}/`)

/** The share of `nfs` that has this path on its clients. */
export function shareOf(path: string, shares: readonly DeclaredShare[]): DeclaredShare | undefined {
  return shares
    .filter(({ point }) => isBelow(path, point))
    .toSorted((one, other) => other.point.length - one.point.length)[0]
}

/** `m10:/data at /shared`: what `nfs` of hosts.yaml declares there; undefined: nothing. */
export function declaredShare(inventory: Inventory, path: string): string | undefined {
  const shares = (sectionOf(inventory, section) ?? []).map((spec) => ({
    ...spec,
    serverAddress: spec.server,
    point: trimmed(spec.mount),
  }))
  const share = shareOf(path, shares)
  return share && `${sourceOf(share)} at ${share.point}`
}

/** What to do on a host that does not have the directory of the others. */
function fixOf(path: string, host: string, shares: readonly DeclaredShare[]): string {
  const share = shareOf(path, shares)
  if (share === undefined) return `Declare it in nfs: of hosts.yaml, then run: muster up nfs`
  const text = `hosts.yaml declares ${sourceOf(share)} at ${share.point}`
  if (host === share.server || share.clients.includes(host)) return `${text}: run: muster up nfs`
  return `${text}, but not for ${host}: add it to the clients, then run: muster up nfs`
}
