/** Plans trust on each host of the mesh, from hosts.yaml and the facts. Pure. */

import { createHash, createHmac } from 'node:crypto'
import { printable } from '../../base/printable.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { AreaFacts, ChangeDirection, Declared } from '../kernel/area.ts'
import { blockOf, brokenBlock, withBlock, withoutBlock } from '../kernel/block.ts'
import { type Known, type KnownFacts, knownValue } from '../kernel/fact.ts'
import { bytesOf, type FileState, removeFile, writeFile } from '../kernel/files.ts'
import {
  blocked,
  ifKnown,
  nothing,
  type Operation,
  operationId,
  operationOf,
  type StdinPart,
  steps,
  unusableHost,
  type Verdict,
} from '../kernel/operation.ts'
import { keepersOf, sharedHomeSentence } from '../kernel/shared-home.ts'
import { type OwnKey, PUBLIC_KEY, type TrustFacts } from './facts.ts'
import { section } from './section.ts'

export type TrustWanted = {
  readonly members: readonly Member[]
  /** Hosts of the mesh that no other can log in to, with the reason. */
  readonly unusable: ReadonlyMap<string, string>
}

type Facts = KnownFacts<TrustFacts>
/** A line of a block: its text, or a placeholder for a key that does not exist yet. */
type Line = string | { readonly step: string; readonly comment: string }

const AREA = 'trust'
const BLOCK = 'trust'
/** The files by the names of their operations. */
const FILES = {
  'authorized-keys': '~/.ssh/authorized_keys',
  'known-hosts': '~/.ssh/known_hosts',
  config: '~/.ssh/config',
} as const
type FileName = keyof typeof FILES

export function trustWantedOf({ inventory, endpoints }: Declared): TrustWanted | undefined {
  const mesh = sectionOf(inventory, section)
  if (mesh === undefined) return undefined
  const members: Member[] = []
  const unusable = new Map<string, string>()
  for (const name of mesh) {
    const endpoint = endpoints.get(name)
    if (endpoint === undefined) continue
    const { address, port, user, transport } = endpoint
    if (transport === 'local') unusable.set(name, 'its transport is local, so other hosts cannot log in to it')
    else members.push({ name, address, port, user })
  }
  return { members, unusable }
}

export function planTrust(
  direction: ChangeDirection,
  wanted: TrustWanted,
  { facts, sharedHomes }: AreaFacts<TrustFacts>,
): Operation[] {
  const known = new Map([...facts].map(([host, { facts: own }]) => [host, own]))
  const isUsable = (host: string) => known.has(host) && !wanted.unusable.has(host)
  const keepers = keepersOf((sharedHomes ?? []).map(({ hosts, path }) => ({ hosts: hosts.filter(isUsable), path })))
  return [...known].flatMap(([host, own]) => {
    const reason = wanted.unusable.get(host)
    if (reason !== undefined && direction === 'up') return [unusableHost(AREA, host, reason)]
    const all = direction === 'up' ? planUp(host, own, wanted, known, keepers) : planDown(host, own)
    const shared = keepers.get(host)
    if (shared === undefined) return all
    const verdict: Verdict = { kind: 'nothing', because: sharedHomeSentence(shared), keeper: shared.keeper }
    return all.map((each) =>
      each.id === operationId(AREA, 'host-keys', host) ? each : { ...each, after: [], verdict },
    )
  })
}

function planUp(
  host: string,
  own: Facts,
  { members }: TrustWanted,
  all: ReadonlyMap<string, Facts>,
  keepers: ReturnType<typeof keepersOf>,
): Operation[] {
  // Hosts that share a home have one key.
  const holders = members.filter(({ name }) => !keepers.has(name))
  const makers = holders.filter(({ name }) => canMake(knownValue(all.get(name)?.key)))
  const authorized = operation(host, 'authorized-keys', 'authorized keys', own.authorizedKeys, (state) => {
    const kept = keptLines(state)
    const lines = holders.flatMap(({ name }) => authorizedLines(name, all.get(name), kept))
    return changeBlock(host, 'authorized-keys', state, lines, 'bottom')
  })
  return [
    operation(host, 'host-keys', 'host keys', own.hostKeys, (keys) =>
      nothing(`its server has ${keys.length === 1 ? 'one key' : `${keys.length} keys`}`),
    ),
    operation(host, 'key', 'SSH key', own.key, (key) => makeKey(host, key)),
    { ...authorized, after: makers.map(({ name }) => operationId(AREA, 'key', name)) },
    operation(host, 'known-hosts', 'known host keys', own.knownHosts, (state) => {
      const kept = keptLines(state)
      const isHashed = hasHashedNames(state.kind === 'file' ? (withoutBlock(state.text, BLOCK) ?? '') : '')
      const lines = members.flatMap((member) => {
        const keys = knownValue(all.get(member.name)?.hostKeys)
        return keys === undefined ? kept(member.name) : knownHostsLines(member, keys, isHashed)
      })
      return changeBlock(host, 'known-hosts', state, lines, 'bottom')
    }),
    operation(host, 'config', 'SSH configuration', own.config, (state) =>
      changeBlock(host, 'config', state, configLines(members), 'top'),
    ),
  ]
}

function operation<T>(
  host: string,
  name: string,
  title: string,
  fact: Known<T>,
  decide: (value: T) => Verdict,
): Operation {
  return operationOf(AREA, host, name, title, ifKnown(host, title, fact, decide))
}

/** The other hosts wait for a key that is going to be made, but not for one that cannot be made. */
const canMake = (key: OwnKey | undefined): boolean => key?.kind === 'none' && key.obstacle === undefined

function makeKey(host: string, key: OwnKey): Verdict {
  if (key.kind === 'key') return nothing('~/.ssh/id_muster exists')
  if (key.kind === 'unusable') {
    return blocked(host, 'key-unusable', `cannot use ~/.ssh/id_muster: ${key.because}`, 'Move it away.')
  }
  if (key.obstacle !== undefined)
    return blocked(
      host,
      'key-unmakable',
      `cannot make ~/.ssh/id_muster: ${key.obstacle}`,
      'Check its owner, mode and mount.',
    )
  // Created under another name, so that an interruption leaves no partial key behind.
  const script = `umask 077
f=$HOME/.ssh/id_muster
if [ ! -e "$f" ]; then
  mkdir -p -m 700 "$HOME/.ssh" || exit 1
  rm -f "$f.new" "$f.new.pub"
  ssh-keygen -q -t ed25519 -N '' -C ${commentOf(host)} -f "$f.new" < /dev/null || exit 1
  mv -f "$f.new.pub" "$f.pub" && mv -f "$f.new" "$f" || exit 1
fi
ssh-keygen -y -P '' -f "$f" | cut -d ' ' -f 1,2`
  return steps('missing', [
    {
      id: 'make',
      title: 'create a key; the private key never leaves the host',
      changes: ['+ ~/.ssh/id_muster', '+ ~/.ssh/id_muster.pub'],
      run: { script },
      check: {
        script: `ssh-keygen -y -P '' -f "$HOME/.ssh/id_muster" > /dev/null`,
        lack: 'ssh-keygen does not read ~/.ssh/id_muster',
      },
      undo: { title: 'remove the unfinished key', script: 'rm -f "$HOME"/.ssh/id_muster.new*' },
    },
  ])
}

function authorizedLines(name: string, facts: Facts | undefined, kept: (name: string) => readonly string[]): Line[] {
  const key = knownValue(facts?.key)
  if (key?.kind === 'key') return [`${key.publicKey} ${commentOf(name)}`]
  if (canMake(key)) return [{ step: `${operationId(AREA, 'key', name)}/make`, comment: commentOf(name) }]
  return [...kept(name)]
}

/** Lines of the block for a host that could not be asked: they are kept. */
function keptLines(state: FileState): (name: string) => string[] {
  const lines = state.kind === 'file' ? (blockOf(state.text, BLOCK) ?? []) : []
  return (name) => lines.filter((line) => line.endsWith(` ${commentOf(name)}`))
}

/** A placeholder for a key that does not exist yet, until its bytes are written. */
const PLACEHOLDER = '\u0000'

function changeBlock(
  host: string,
  name: FileName,
  state: FileState,
  lines: readonly Line[],
  place: 'top' | 'bottom',
): Verdict {
  const path = FILES[name]
  const obstacle = obstacleIn(host, path, state)
  if (obstacle !== undefined) return obstacle
  const text = state.kind === 'file' ? state.text : undefined
  const old = text === undefined ? [] : (blockOf(text, BLOCK) ?? [])
  const future = lines.map((line) => (typeof line === 'string' ? line : `${PLACEHOLDER}${line.step} ${line.comment}`))
  const whole = withBlock(text, BLOCK, future, place)
  if (whole === text) return nothing(`${path} has all lines of the mesh`)
  const run = writeFile({ path, was: state }, { content: partsOf(whole), mode: '600' })
  const title = `${text === undefined ? 'write' : 'change'} ${path}`
  return steps(old.length === 0 ? 'missing' : 'differs', [
    { id: 'write', title, changes: differences(old, lines), run },
  ])
}

/** The text with the output of other steps in place of the placeholders. */
function partsOf(text: string): StdinPart[] {
  return text.split(PLACEHOLDER).flatMap((part, index): StdinPart[] => {
    if (index === 0) return [bytesOf(part)]
    const at = part.indexOf(' ')
    return [{ output: part.slice(0, at), pattern: PUBLIC_KEY }, bytesOf(part.slice(at))]
  })
}

function differences(old: readonly string[], lines: readonly Line[]): string[] {
  const kept = new Set(old)
  const added = lines.flatMap((line) => {
    if (typeof line !== 'string') return [`+ the key that ${line.comment.slice(commentOf('').length)} creates`]
    return kept.has(line) ? [] : [`+ ${shortened(line)}`]
  })
  const wanted = new Set(lines.filter((line) => typeof line === 'string'))
  const removed = old.flatMap((line) => (wanted.has(line) ? [] : [`- ${shortened(line)}`]))
  return [...removed, ...added]
}

/** Abbreviates keys to their beginning and end. */
function shortened(line: string): string {
  return printable(line).replace(/ ([A-Za-z0-9+/]{12})[A-Za-z0-9+/]{24,}([A-Za-z0-9+/=]{8})(?= |$)/g, ' $1…$2')
}

/** Why its block cannot be changed. */
function obstacleIn(host: string, path: string, state: FileState): Verdict | undefined {
  if (state.kind === 'none') return undefined
  if (state.kind === 'other') return blocked(host, 'not-a-file', `${path} cannot be changed: ${state.because}`)
  const broken = brokenBlock(state.text, BLOCK)
  if (broken === undefined) return undefined
  const { lost, there, isFirstLost } = broken
  const cause = `the ${isFirstLost ? 'first' : 'last'} line of Muster's block in ${path} is missing`
  const [back, other] = isFirstLost ? ['above', 'below'] : ['below', 'above']
  const hint = `Put "${lost}" back ${back} Muster's lines, or remove them and "${there}" ${other} them.`
  return blocked(host, 'broken-block', cause, hint)
}

/** Does not need keys of the host's SSH server. */
export function planDown(host: string, own: Omit<Facts, 'hostKeys'>): Operation[] {
  const file = (name: FileName, title: string, fact: Known<FileState>) =>
    operation(host, name, title, fact, (state) => removeBlock(host, name, state))
  return [
    file('authorized-keys', 'authorized keys', own.authorizedKeys),
    file('known-hosts', 'known host keys', own.knownHosts),
    file('config', 'SSH configuration', own.config),
    operation(host, 'key', 'SSH key', own.key, removeKey),
  ]
}

function removeBlock(host: string, name: FileName, state: FileState): Verdict {
  const path = FILES[name]
  const obstacle = obstacleIn(host, path, state)
  if (obstacle !== undefined) return obstacle
  const old = state.kind === 'file' ? blockOf(state.text, BLOCK) : undefined
  if (state.kind !== 'file' || old === undefined) return nothing(`${path} has no lines from Muster`)
  const rest = withoutBlock(state.text, BLOCK)
  const change = { path, was: state }
  const run =
    rest === undefined ? removeFile(change) : writeFile(change, { content: [bytesOf(rest)], mode: '600', copy: 'drop' })
  const title = rest === undefined ? `remove ${path}, which Muster made` : `remove Muster's lines from ${path}`
  return steps('differs', [{ id: 'write', title, changes: differences(old, []), run }])
}

function removeKey(key: OwnKey): Verdict {
  const changes = ['- ~/.ssh/id_muster', '- ~/.ssh/id_muster.pub']
  const run = { script: 'rm -f "$HOME/.ssh/id_muster" "$HOME/.ssh/id_muster.pub"' }
  const step = { id: 'remove', title: 'remove the key', changes, run }
  return steps('differs', [key.kind !== 'none' && step], 'there is no key ~/.ssh/id_muster')
}

/** The lines that trust writes into the files of ~/.ssh. Pure. */

/** A host of the mesh as the others reach it. */
export type Member = { readonly name: string; readonly address: string; readonly port: number; readonly user: string }

/** The comment after a key, which distinguishes its line from those of other hosts. */
export function commentOf(name: string): string {
  return `muster-trust@${name}`
}

/** sshd(8), SSH_KNOWN_HOSTS FILE FORMAT: the names in plain text, or each hashed in a separate line. */
export function knownHostsLines(member: Member, keys: readonly string[], isHashed: boolean): string[] {
  const { name, address, port } = member
  const lookups = [...new Set([name, address].map((each) => each.toLowerCase()))].map((each) =>
    port === 22 ? each : `[${each}]:${port}`,
  )
  const fields = isHashed ? lookups.map(hashed) : [lookups.join(',')]
  return keys.flatMap((key) => fields.map((field) => `${field} ${key} ${commentOf(name)}`))
}

/** The salt depends on the name, so that the line is the same each time. */
function hashed(lookup: string): string {
  const salt = createHash('sha1').update(`muster ${lookup}`).digest()
  return `|1|${salt.toString('base64')}|${createHmac('sha1', salt).update(lookup).digest('base64')}`
}

export function hasHashedNames(knownHosts: string): boolean {
  return /^\|1\|/m.test(knownHosts)
}

/**
 * ssh_config(5): the first value wins, so the block is at the top; after `Match all`, the following lines apply to every host again.
 * Host keys that ssh would learn by itself stay out of known_hosts, because nothing would remove them.
 */
export function configLines(members: readonly Member[]): string[] {
  const namesOf = ({ name, address }: Member) => [...new Set([name, address])].join(' ')
  const ways = members.flatMap((member) => [
    `Host ${namesOf(member)}`,
    `  HostName ${member.address}`,
    `  Port ${member.port}`,
    `  User ${member.user}`,
  ])
  const all = `Host ${members.map(namesOf).join(' ')}`
  return [...ways, all, '  IdentityFile ~/.ssh/id_muster', '  IdentitiesOnly yes', '  UpdateHostKeys no', 'Match all']
}
