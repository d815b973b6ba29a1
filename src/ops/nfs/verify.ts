/**
 * Verifies that mounts answer; and for `check`, writes a file on the server and on each client and reads it on all others. Every
 * command on a mount has a time limit, so that a dead server delays nothing else.
 */

import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { formatDuration } from '../../base/time-text.ts'
import type { AreaFacts, HostExec } from '../kernel/area.ts'
import { knownValue, limitedFunctions, PROGRAM_LIMIT_S } from '../kernel/fact.ts'
import { type Finding, onHost } from '../kernel/finding.ts'
import { reasonOfResult } from '../kernel/host-port.ts'
import { formatOutcome } from '../run/outcome.ts'
import type { ExportEntry, Exports } from './exports.ts'
import { type MountPoint, type NfsFacts, pointAt } from './facts.ts'
import { isMountOf, type Mount, mountAt, versionOf } from './mounts.ts'
import type { NfsWanted, Share } from './wanted.ts'

const PROOF_BYTES = 4 * 1024 * 1024
const PROOF_LIMIT_S = 60
const PATIENT = limitedFunctions(PROOF_LIMIT_S / PROGRAM_LIMIT_S)
const NAME = /^\.muster-proof-[A-Za-z0-9]{6,}$/

export async function verifyNfs(
  { shares }: NfsWanted,
  areaFacts: AreaFacts<NfsFacts>,
  hostExec: HostExec,
  depth: 'status' | 'check',
): Promise<readonly Finding[]> {
  const found = [...areaFacts.facts.keys()].flatMap((host) => mountFindings(host, shares, areaFacts))
  if (depth === 'status') return found
  const silent = new Set(found.filter(({ gravity }) => gravity === 'blocker').map(({ host }) => host))
  const proofs = await Promise.all(
    shares.map(async (share) => {
      const directories = [
        { host: share.server, directory: share.path },
        ...share.clients.map((host) => ({ host, directory: share.point })),
      ].filter(({ host }) => areaFacts.facts.has(host) && !silent.has(host))
      return await prove(share, directories, hostExec)
    }),
  )
  return [...found, ...proofs.flat()]
}

/** Findings from the facts alone. */
function mountFindings(host: string, shares: readonly Share[], areaFacts: AreaFacts<NfsFacts>): Finding[] {
  const facts = areaFacts.facts.get(host)?.facts
  if (facts === undefined) return []
  const served = shares.filter(({ server }) => server === host)
  const mounted = shares.filter(({ clients }) => clients.includes(host))
  const mounts = mounted.length === 0 ? [] : (knownValue(facts.mounts) ?? [])
  const foreign = served.length === 0 ? undefined : knownValue(facts.foreignExports)
  return [
    ...served.flatMap((share) => dangersOfShare(host, share, pointAt(facts, share.path))),
    ...(foreign === undefined ? [] : dangersOfForeign(host, foreign)),
    ...mounted.flatMap((share): Finding[] => {
      const mount = mountAt(mounts, share.point)
      if (mount === undefined || !isMountOf(mount, share.serverAddress, share.path)) return []
      const point = pointAt(facts, share.point)
      if (point === undefined || point.kind === 'silent') {
        const reason = areaFacts.away.get(share.server)
        const cause = `${share.point} hangs: its server ${share.server} does not answer${reason === undefined ? '' : ` (${reason})`}`
        const hint = `Programs that use it wait until ${share.server} is back.`
        return [{ host, gravity: 'blocker', id: 'server-silent', cause, hint }]
      }
      return findingsOfLocks(host, share, mount)
    }),
  ]
}

/** `4194304 bytes (4.2 MB, 4.0 MiB) copied, 0.0412 s, 102 MB/s`; busybox writes `seconds`. */
const secondsOf = (line: string): string | undefined => /, ([\d.e-]{1,20}) s(?:ec|econds)?,/.exec(line)?.[1]

type TestDirectory = { readonly host: string; readonly directory: string }
type Written = TestDirectory & { readonly name: string; readonly bytesPerSecond: number; readonly latencyMs: number }

async function prove(share: Share, directories: readonly TestDirectory[], hostExec: HostExec): Promise<Finding[]> {
  if (directories.length < 2) return []
  const exec = async (host: string, script: string) =>
    await hostExec.exec(host, script, { asRoot: true, timeoutMs: (PROOF_LIMIT_S + 30) * 1000 })
  const findings: Finding[] = []
  const written: Written[] = []
  await Promise.all(
    directories.map(async (place) => {
      const result = await exec(place.host, writeScript(place.directory, place.host))
      const [first = '', second = ''] = Buffer.from(result.stdout).toString().split('\n', 2)
      const [name = ''] = first.split(' ', 1)
      const [whole, one] = [secondsOf(first), secondsOf(second)]
      if (whole !== undefined && one !== undefined && NAME.test(name)) {
        const bytesPerSecond = PROOF_BYTES / Math.max(Number(whole), 1e-6)
        written.push({ ...place, name, bytesPerSecond, latencyMs: Number(one) * 1000 })
        return
      }
      findings.push(unwritten(share, place, printable(reasonOfResult(result, formatOutcome))))
    }),
  )
  await Promise.all(
    directories.map(async (place) => {
      const others = written.filter(({ host }) => host !== place.host)
      if (others.length === 0) return
      const result = await exec(place.host, readScript(place.directory, others))
      const answers = Buffer.from(result.stdout).toString().split('\n')
      for (const { host: writer, name } of others) {
        if (answers.includes(`${name} ${writer}`)) continue
        const said = answers.find((line) => line.startsWith(`${name} `))?.slice(name.length + 1)
        const detail = printable(said ?? reasonOfResult(result, formatOutcome))
        const cause = `cannot read in ${place.directory} what ${writer} wrote`
        findings.push({ host: place.host, gravity: 'blocker', id: 'unread', cause, detail })
      }
    }),
  )
  const remove = ({ directory, name }: Written) => `${PATIENT}\nlimited rm -rf ${shellQuote(`${directory}/${name}`)}`
  await Promise.all(written.map(async (each) => await exec(each.host, remove(each))))
  const speeds = written.map(({ host, directory, bytesPerSecond, latencyMs }): Finding => {
    const detail = `${formatBytes(bytesPerSecond)}/s, ${formatDuration(latencyMs)} for a small file`
    return { host, gravity: 'note', id: 'speed', cause: `writes to ${directory}, and the others read it`, detail }
  })
  return [...findings, ...speeds]
}

/** Root may fail to write where the mount is read-only or the server uses root_squash. Neither contradicts hosts.yaml. */
function unwritten(share: Share, { host, directory }: TestDirectory, reason: string): Finding {
  if (/Read-only file system/i.test(reason)) {
    return { host, gravity: 'note', id: 'read-only', cause: `${directory} is read-only` }
  }
  if (!share.options.includes('no_root_squash') && /Permission denied/i.test(reason)) {
    const cause = `root cannot write to ${directory}: root_squash maps root to nobody there`
    const hint = 'Other users can write if its permissions allow it; mode: "1777" in hosts.yaml allows everyone.'
    return { host, gravity: 'note', id: 'squashed', cause, hint }
  }
  return { host, gravity: 'blocker', id: 'unwritten', cause: `cannot write to ${directory}`, detail: reason }
}

/**
 * Writes in a new directory with a random name. Prints that name and dd's messages for a large and a small file. Exported for tests.
 *
 * It runs as root, and other accounts may be allowed to rename that directory: each program enters it first, makes sure that no link
 * leads elsewhere, and makes only new files.
 */
export function writeScript(directory: string, host: string): string {
  return `LC_ALL=C; export LC_ALL
${PATIENT}
# What a run that was cut left behind.
limited find ${shellQuote(directory)} -maxdepth 1 -name '.muster-proof-*' -mmin +60 -exec rm -rf {} + 2> /dev/null
cd / && d=$(limited mktemp -d ${shellQuote(`${directory}/.muster-proof-XXXXXXXX`)}) || exit 1
inside() {
  limited sh -c 'cd -P "$1" && [ "$PWD" = "$(cd -P "$2" && pwd)/\${1##*/}" ] || { echo "another account has replaced $1" >&2; exit 1; }
umask 022; set -C; eval "$3"' sh "$d" ${shellQuote(directory)} "$1"
}
small=$(echo ${shellQuote(host)} | inside 'exec dd conv=fsync > ./host' 2>&1) || { printf '%s\\n' "$small" >&2; limited rm -rf "$d"; exit 1; }
large=$(inside 'exec dd if=/dev/zero bs=65536 count=${PROOF_BYTES / 65_536} conv=fsync > ./zeros' 2>&1) || { printf '%s\\n' "$large" >&2; limited rm -rf "$d"; exit 1; }
inside 'exec chmod 755 .'
printf '%s %s\\n' "\${d##*/}" "$(printf '%s\\n' "$large" | tail -n 1)"
printf 'small %s\\n' "$(printf '%s\\n' "$small" | tail -n 1)"`
}

/** Prints `NAME CONTENT` for each. */
function readScript(directory: string, written: readonly Written[]): string {
  const reads = written.map(({ name }) => {
    const file = shellQuote(`${directory}/${name}/host`)
    return `echo ${name} "$(limited head -c 300 ${file} 2>&1 | head -n 1)" &`
  })
  return `LC_ALL=C; export LC_ALL\n${PATIENT}\n${reads.join('\n')}\nwait`
}

/** Dangerous or useless options of exports and mounts, and what to write instead. Those that hosts.yaml declares are notes. Pure. */

type Danger = Pick<Finding, 'id' | 'cause' | 'hint'>

/** Of lines that are not Muster's. */
export function dangersOfForeign(host: string, { entries }: Exports): Finding[] {
  return entries.flatMap((entry) =>
    dangersOf(entry).map(({ cause, ...danger }): Finding => {
      return { host, gravity: 'risk', ...danger, cause: `${entry.file}:${entry.line}: ${cause}` }
    }),
  )
}

/** Dangers that hosts.yaml declares. */
export function dangersOfShare(host: string, share: Share, point: MountPoint | undefined): Finding[] {
  const found = share.exportTo.flatMap((client) =>
    dangersOf({ path: share.path, client, options: share.options, isStray: false }, share.clientAddresses),
  )
  const once = found.filter(({ id }, index) => found.findIndex((other) => other.id === id) === index)
  const notes = once.map(({ cause, ...danger }): Finding => {
    return { host, gravity: 'note', ...danger, cause: `as declared: ${cause}` }
  })
  return [...notes, ...modeOf(host, share, point)]
}

const SHOWN_ADDRESSES = 3

function namedClients(addresses: readonly string[]): string {
  const left = addresses.length - SHOWN_ADDRESSES
  const names = `${addresses.slice(0, SHOWN_ADDRESSES).join(', ')}${left > 0 ? ` and ${left} more` : ''}`
  return `Leave out export_to in hosts.yaml: then only the clients may mount it (${names}).`
}

/** `addresses`: of the clients that hosts.yaml declares; undefined: it is not declared there. */
function dangersOf(
  { path, client, options, isStray }: Pick<ExportEntry, 'path' | 'client' | 'options' | 'isStray'>,
  addresses?: readonly string[],
): Danger[] {
  const found: Danger[] = []
  if (isStray) {
    const cause = `the space before (${options.join(',')}) gives the client in front of it the defaults, and these options to the whole world`
    return [{ id: 'export-space', cause, hint: `Write ${path} CLIENT(${options.join(',')}) without a space.` }]
  }
  if (client === '*') {
    const hint =
      addresses === undefined
        ? `Name the clients in place of *: ${path} CLIENT(${options.join(',')}), with the address or the network of the clients.`
        : namedClients(addresses)
    found.push({ id: 'export-world', cause: `${path} is exported to every host that can reach the server`, hint })
  }
  if (options.includes('no_root_squash')) {
    const cause = `no_root_squash: root of ${client === '*' ? 'any machine' : 'every client'} is root in ${path}`
    const hint = 'Write root_squash, or all_squash,anonuid=UID,anongid=GID for one shared account.'
    found.push({ id: 'export-root', cause, hint })
  }
  if (options.includes('rw') && options.includes('async')) {
    const cause = `async: what clients wrote to ${path} is lost if the server crashes, although the server had confirmed the write`
    found.push({ id: 'export-async', cause, hint: 'Write sync.' })
  }
  return found
}

function modeOf(host: string, { path, mode }: Share, point: MountPoint | undefined): Finding[] {
  if (point?.kind !== 'directory') return []
  const bits = Number.parseInt(point.mode, 8)
  const isOpen = (bits & 0o002) !== 0 && (bits & 0o1000) === 0
  if (!isOpen) return []
  const isDeclared = mode !== undefined && Number.parseInt(mode, 8) === bits
  const cause = `${isDeclared ? 'as declared: ' : ''}${path} has mode ${point.mode}: every user can delete the files of all others`
  const hint = 'With mode 1777 everyone can write, but delete only their own files; in hosts.yaml: mode: "1777".'
  const gravity = isDeclared ? ('note' as const) : ('risk' as const)
  return [{ host, gravity, id: 'export-mode', cause, hint, fix: onHost(`chmod 1777 ${shellQuote(path)}`) }]
}

/** `nolock` does nothing with NFSv4, and with NFSv3 it is a danger. */
export function findingsOfLocks(host: string, { mountOptions, point }: Share, mount: Mount): Finding[] {
  if (!mountOptions.includes('nolock')) return []
  const version = versionOf(mount) ?? ''
  if (version.startsWith('4')) {
    const cause = `nolock does nothing at ${point}: NFS ${version} has its locks in the protocol, and they work across hosts`
    return [{ host, gravity: 'note', id: 'nolock', cause, hint: 'It may be left out of mount_options.' }]
  }
  const cause = `nolock at ${point}: with NFS ${version} a lock of one host is not seen by the others`
  const hint = 'Write mount_options: "vers=4.2" where files are locked (SQLite, caches).'
  return [{ host, gravity: 'risk', id: 'nolock', cause, hint }]
}
