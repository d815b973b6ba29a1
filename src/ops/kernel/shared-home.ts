/**
 * Home directories that hosts share (NFS, or one machine under two names). What stands in such a home is changed through one of
 * its hosts. Hosts whose home has the same inode number are asked for a proof: each writes a file with a name of its own that
 * nobody can guess, and tells which files of the others it sees. Two hosts share a home only when each sees the other's file,
 * so a host that lies can pass for one that shares with no honest host that sees no file of it.
 */
import { randomBytes } from 'node:crypto'
import type { Fact } from './fact.ts'
import type { OpsHosts } from './host-port.ts'

/** The first of the hosts changes what stands in the home. `path`: where the home is on it, not printable yet. */
export type SharedHome = { readonly hosts: readonly string[]; readonly path: string }

export type Home = { readonly inode: string; readonly path: string }

export type ProofOptions = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  readonly limitFactor?: number
  /** Letters and digits that nobody guesses, other ones each time. */
  readonly newNonce?: () => string
}

/** Of the file that is there for a moment. */
export const PROOF_FILE = '.muster-home-'
const TIMEOUT_MS = 10_000
const NONCE_BYTES = 12
/** Left by a host that was cut off. */
const STALE_MINUTES = 60

export const homeFact: Fact<Home> = {
  script: 'limited ls -di "$HOME/."',
  parse(text) {
    const [, inode, path] = /^\s*(\d{1,20}) (\/[^\n]{0,4000})$/.exec(text) ?? []
    return inode === undefined || path === undefined ? undefined : { inode, path: path.replace(/\/+\.?$/, '') || '/' }
  },
}

/** Where hosts may share a home they are asked; elsewhere nothing is. Never rejects: what is not proved is not shared. */
export async function findSharedHomes(
  homes: ReadonlyMap<string, Home>,
  { newNonce = () => randomBytes(NONCE_BYTES).toString('hex'), ...options }: ProofOptions,
): Promise<readonly SharedHome[]> {
  const alike = [...Map.groupBy(homes, ([, { inode }]) => inode).values()].filter(({ length }) => length > 1)
  const found = await Promise.all(
    alike.map(async (group) => {
      const nonces = new Map(group.map(([host]) => [host, newNonce()]))
      const seen = await whoSeesWhom(nonces, options)
      return groupsOf(seen).map((hosts) => ({ hosts, path: homes.get(hosts[0] ?? '')?.path ?? '' }))
    }),
  )
  return found.flat()
}

/** The hosts whose files each host sees. All files are there before anybody looks, and until everybody has looked. */
async function whoSeesWhom(
  nonces: ReadonlyMap<string, string>,
  options: Omit<ProofOptions, 'newNonce'>,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const looked = Promise.withResolvers<void>()
  const writers = [...nonces].map(([host, nonce]) => write(host, nonce, looked.promise, options))
  const { hosts, signal, limitFactor = 1 } = options
  const timeoutMs = TIMEOUT_MS * limitFactor
  await Promise.all(writers.map(({ isThere }) => isThere))
  const script = `for n in ${[...nonces.values()].join(' ')}; do [ ! -e "$HOME/${PROOF_FILE}$n" ] || echo $n; done`
  const seen = await Promise.all(
    [...nonces.keys()].map(async (host) => {
      const { stdout } = await hosts.exec(host, script, { timeoutMs, signal, isBrief: true })
      const lines = new Set(Buffer.from(stdout).toString().split('\n'))
      return [host, new Set([...nonces].flatMap(([other, nonce]) => (lines.has(nonce) ? [other] : [])))] as const
    }),
  )
  looked.resolve()
  await Promise.all(writers.map(({ ended }) => ended))
  return new Map(seen)
}

/** The file is removed in any case, as the shell that made it waits and then ends. */
function write(
  host: string,
  nonce: string,
  turn: Promise<void>,
  { hosts, signal, limitFactor = 1 }: Omit<ProofOptions, 'newNonce'>,
): { readonly isThere: Promise<void>; readonly ended: Promise<unknown> } {
  const isThere = Promise.withResolvers<void>()
  let said = ''
  const script = `f=$HOME/${PROOF_FILE}${nonce}
trap 'rm -f "$f"' EXIT
trap 'exit 1' HUP INT TERM
find "$HOME" -maxdepth 1 -type f -name '${PROOF_FILE}*' -mmin +${STALE_MINUTES} -exec rm -f {} + 2> /dev/null
umask 077
(set -C; : > "$f") 2> /dev/null || exit 1
echo written
read -r muster_turn || :`
  const ended = hosts.exec(host, script, {
    timeoutMs: TIMEOUT_MS * limitFactor,
    // The limit above counts from the turn on, which a host that hangs would keep from coming.
    signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS * limitFactor)]),
    turn,
    onOutput: (stream, text) => {
      if (stream === 'stdout' && said.length < 100) said += text
      if (said.includes('written\n')) isThere.resolve()
    },
  })
  void ended.then(() => isThere.resolve())
  return { isThere: isThere.promise, ended }
}

/** Each host in the first group in which all see it, and it all. */
function groupsOf(seen: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const groups: string[][] = []
  for (const host of seen.keys()) {
    const isMutual = (other: string) => seen.get(host)?.has(other) === true && seen.get(other)?.has(host) === true
    const group = groups.find((members) => members.every(isMutual))
    if (group === undefined) groups.push([host])
    else group.push(host)
  }
  return groups.filter(({ length }) => length > 1)
}

/** The host that changes the home of each of the others, and where that is. */
export function keepersOf(
  homes: readonly SharedHome[] | undefined,
): ReadonlyMap<string, { readonly keeper: string; readonly path: string }> {
  return new Map(
    (homes ?? []).flatMap(({ hosts: [keeper = '', ...others], path }) =>
      others.map((host) => [host, { keeper, path }] as const),
    ),
  )
}

/** The sentence for what is done through another host. */
export function sharedHomeSentence({ keeper, path }: { readonly keeper: string; readonly path: string }): string {
  return `it shares ${path} with ${keeper}, and what is there is changed through ${keeper}`
}
