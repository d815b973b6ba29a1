/**
 * Home directories that hosts share (NFS, or one machine under two names). The content of such a home is changed through one of
 * its hosts. Hosts whose home has the same inode number are asked for a proof: each writes a file with a name that
 * cannot be guessed, and reports which files of the others it sees. Two hosts share a home only if each sees the other's file,
 * so a lying host cannot pretend to share with an honest host that does not see its file.
 */
import { newProofName, PROOF_FUNCTIONS } from '../../base/proof-file.ts'
import type { Fact } from './fact.ts'
import type { OpsHosts, ScriptResult } from './host-port.ts'

/** The first of the hosts changes the content. `path`: where the home is on it, not printable yet. */
export type SharedHome = { readonly hosts: readonly string[]; readonly path: string }

export type Home = { readonly inode: string; readonly path: string }

export type ProofOptions = {
  readonly hosts: OpsHosts
  readonly signal: AbortSignal
  readonly limitFactor?: number
  /** Another directory than the home, as a word for sh. */
  readonly place?: string
  /** Letters and digits that cannot be guessed, new each time. */
  readonly newName?: () => string
}

const TIMEOUT_MS = 10_000
/** The file is removed with the shell, which waits for its turn to end. */
const PROOF_SCRIPT = `${PROOF_FUNCTIONS.join('\n')}
trap unprove EXIT
trap 'exit 1' HUP INT TERM
`

export const homeFact: Fact<Home> = {
  script: 'limited ls -di "$HOME/."',
  parse(text) {
    const [, inode, path] = /^\s*(\d{1,20}) (\/[^\n]{0,4000})$/.exec(text) ?? []
    return inode === undefined || path === undefined
      ? undefined
      : { inode, path: path.replace(/(?<!\/)\/+\.?$/, '') || '/' }
  },
}

/** Asks only hosts that may share a home. Never rejects: what is not proved is not shared. */
export async function findSharedHomes(
  homes: ReadonlyMap<string, Home>,
  { newName = newProofName, ...options }: ProofOptions,
): Promise<readonly SharedHome[]> {
  const alike = [...Map.groupBy(homes, ([, { inode }]) => inode).values()].filter(({ length }) => length > 1)
  const found = await Promise.all(
    alike.map(async (group) => {
      const names = new Map(group.map(([host]) => [host, newName()]))
      const seen = await whoSeesWhom(names, options)
      return groupsOf(seen)
        .filter(({ length }) => length > 1)
        .map((hosts) => ({ hosts, path: homes.get(hosts[0] ?? '')?.path ?? '' }))
    }),
  )
  return found.flat()
}

/** The hosts whose files each host sees. */
async function whoSeesWhom(
  names: ReadonlyMap<string, string>,
  { place = '"$HOME"', ...options }: Omit<ProofOptions, 'newName'>,
): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const scripts = new Map(
    [...names].map(([host, name]) => {
      const write = `sweep_proofs ${place}\nprove ${place} ${name} || exit 1`
      return [host, { write, look: `proofs ${place} ${[...names.values()].join(' ')}` }] as const
    }),
  )
  const found = await writeThenLook(scripts, options)
  return new Map(
    [...found].map(([host, { looked }]) => {
      const lines = new Set(Buffer.from(looked.stdout).toString().split('\n'))
      return [host, new Set([...names].flatMap(([other, name]) => (lines.has(name) ? [other] : [])))] as const
    }),
  )
}

export type ProofScripts = { readonly write: string; readonly look: string }

export type ProofResults = { readonly isWritten: boolean; readonly wrote: ScriptResult; readonly looked: ScriptResult }

/**
 * Runs `write` on each host, then `look`, and ends the shells of `write`. All files exist from before the first check until after
 * the last one. Both may use PROOF_FUNCTIONS. `wrap`: the script that runs another one where the directory is.
 */
export async function writeThenLook(
  scripts: ReadonlyMap<string, ProofScripts>,
  {
    hosts,
    signal,
    limitFactor = 1,
    wrap = (_, script) => script,
  }: Omit<ProofOptions, 'newName' | 'place'> & { wrap?(host: string, script: string): string },
): Promise<ReadonlyMap<string, ProofResults>> {
  const limitMs = TIMEOUT_MS * limitFactor
  const looked = Promise.withResolvers<void>()
  const write = async (host: string, script: string) => {
    const isThere = Promise.withResolvers<true>()
    let isWritten = false
    let said = ''
    const cut = new AbortController()
    // Of its own, so that a host that hangs does not end the others' before all have looked.
    AbortSignal.timeout(limitMs).addEventListener('abort', () => isWritten || cut.abort())
    const ended = hosts.exec(host, wrap(host, `${PROOF_SCRIPT}${script}\necho written\nread -r muster_turn || :`), {
      timeoutMs: limitMs,
      // The limit above counts from the turn, which a hanging host would delay for ever.
      signal: AbortSignal.any([signal, cut.signal, AbortSignal.timeout(3 * limitMs)]),
      turn: looked.promise,
      onOutput: (stream, text) => {
        if (stream === 'stdout' && said.length < 200) said += text
        if (said.includes('written\n')) isThere.resolve(true)
      },
    })
    isWritten = await Promise.race([isThere.promise, ended.then(() => false)])
    return { host, ended, isWritten }
  }
  const written = await Promise.all([...scripts].map(([host, script]) => write(host, script.write)))
  const seen = await Promise.all(
    [...scripts].map(async ([host, { look }]) => {
      const script = wrap(host, `${PROOF_SCRIPT}${look}`)
      return [host, await hosts.exec(host, script, { timeoutMs: limitMs, signal, isBrief: true })] as const
    }),
  )
  looked.resolve()
  const results = new Map(seen)
  return new Map(
    await Promise.all(
      written.map(async ({ host, ended, isWritten }) => {
        return [host, { isWritten, wrote: await ended, looked: results.get(host) as ScriptResult }] as const
      }),
    ),
  )
}

/** Puts each host into the first group in which it sees all others, and all see it. */
export function groupsOf(seen: ReadonlyMap<string, ReadonlySet<string>>): string[][] {
  const groups: string[][] = []
  for (const host of seen.keys()) {
    const isMutual = (other: string) => seen.get(host)?.has(other) === true && seen.get(other)?.has(host) === true
    const group = groups.find((members) => members.every(isMutual))
    if (group === undefined) groups.push([host])
    else group.push(host)
  }
  return groups
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

/** The sentence for a change through another host. */
export function sharedHomeSentence({ keeper, path }: { readonly keeper: string; readonly path: string }): string {
  return `it shares ${path} with ${keeper}, which makes the changes there`
}
