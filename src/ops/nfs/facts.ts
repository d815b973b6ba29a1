/** What NFS asks a host. Only mount points may hang, so they are read in parallel to everything else. */
import { shellQuote } from '../../base/shell-quote.ts'
import { type Fact, type FactSet, type Known, type KnownFacts, knownValue } from '../kernel/fact.ts'
import { type FileState, fileFact } from '../kernel/files.ts'
import { blocked, type Operation, operationId, operationOf, type Verdict } from '../kernel/operation.ts'
import { type PackageNames, type Packages, packagesFact } from '../kernel/packages.ts'
import { type SystemService, type SystemServiceState, serviceFact } from '../kernel/services.ts'
import { type ActiveExport, type Exports, parseActiveExports, parseExports } from './exports.ts'
import { type Mount, parseMounts, unitName } from './mounts.ts'
import type { NfsWanted } from './wanted.ts'

export type MountPoint =
  | {
      readonly kind: 'directory'
      /** A mount point that is known to be empty. */
      readonly isEmpty: boolean
      /** Of exported directories; `-` for others. */
      readonly mode: string
      readonly filesystem: string
    }
  | { readonly kind: 'absent' }
  | { readonly kind: 'other' }
  /** Its server reports a stale handle. */
  | { readonly kind: 'stale' }
  /** It does not answer. */
  | { readonly kind: 'silent' }

type Points = ReadonlyMap<string, MountPoint>

export type NfsServerFacts = {
  readonly service: SystemServiceState
  readonly ownExports: FileState
  /** Of the other files. */
  readonly foreignExports: Exports
  readonly active: readonly ActiveExport[]
}

export type NfsClientFacts = {
  readonly mounts: readonly Mount[]
  readonly fstab: FileState
  /** Mount units instead of lines in fstab. */
  readonly hasSystemd: boolean
} & {
  /** The unit file of a mount point. */
  readonly [unit: `unit ${string}`]: FileState
}

/** Servers have the facts of exports, clients those of mounts. */
export type NfsFacts = {
  readonly packages: Packages
  /** By directory; each is in one of the two, or did not answer. */
  readonly localPoints: Points
  readonly remotePoints: Points
} & NfsServerFacts &
  NfsClientFacts

export const EXPORTS_FILE = '/etc/exports.d/muster-nfs.exports'

export const SERVICE: SystemService = {
  systemd: 'nfs-server',
  openrc: 'nfs',
  sysv: 'nfs-kernel-server',
  byHand: {
    // Only root may read the first file; the second one counts the threads of all network namespaces.
    isRunning: `if [ -e /proc/fs/nfsd/threads ] && [ ! -r /proc/fs/nfsd/threads ]; then grep -q '^th [1-9]' /proc/net/rpc/nfsd
else read -r threads < /proc/fs/nfsd/threads && [ "$threads" -gt 0 ]; fi`,
    start: `modprobe nfsd 2> /dev/null
grep -q ' nfsd ' /proc/mounts || mount -t nfsd nfsd /proc/fs/nfsd || exit 1
mkdir -p /run/rpcbind
pidof rpcbind > /dev/null || rpcbind -w || exit 1
pidof rpc.statd > /dev/null || rpc.statd || :
rpc.nfsd 8 && { pidof rpc.mountd > /dev/null || rpc.mountd; }`,
    stop: `rpc.nfsd 0
for process in $(pidof rpc.mountd); do kill "$process"; done`,
  },
}

export const SERVER_PACKAGES: PackageNames = {
  apt: ['nfs-kernel-server', 'nfs-common'],
  dnf: ['nfs-utils'],
  zypper: ['nfs-kernel-server', 'nfs-client'],
  pacman: ['nfs-utils'],
  apk: ['nfs-utils'],
}
const CLIENT_PACKAGES: PackageNames = { ...SERVER_PACKAGES, apt: ['nfs-common'], zypper: ['nfs-client'] }

export function packagesOf({ shares }: NfsWanted, host: string): PackageNames {
  return shares.some(({ server }) => server === host) ? SERVER_PACKAGES : CLIENT_PACKAGES
}

export function unitPath(point: string): string {
  return `/etc/systemd/system/${unitName(point)}`
}

const foreignExportsFact: Fact<Exports> = {
  script: `for file in /etc/exports /etc/exports.d/*.exports; do
  [ "$file" != ${EXPORTS_FILE} ] && [ -f "$file" ] || continue
  echo "file $file"
  # The last line may have no end.
  tell "$file" ' '; echo
done
echo end`,
  parse(text) {
    if (!text.endsWith('end')) return undefined
    const parts = text.split(/^file /m).slice(1)
    const parsed = parts.map((part) => {
      const [file = '', ...lines] = part.split('\n')
      return parseExports(lines.flatMap((line) => (line.startsWith(' ') ? [line.slice(1)] : [])).join('\n'), file)
    })
    return {
      entries: parsed.flatMap(({ entries }) => entries),
      problems: parsed.flatMap(({ problems }) => problems),
    }
  },
}

/** The exports of the kernel: the same as \`exportfs -s\`, which needs root. */
const activeFact: Fact<readonly ActiveExport[]> = {
  script: 'if [ -e /var/lib/nfs/etab ]; then tell /var/lib/nfs/etab; echo; fi; echo end',
  parse: (text) => (text.endsWith('end') ? parseActiveExports(text.slice(0, -3)) : undefined),
}

/**
 * $mounted: /proc/mounts; $far: directories where something is mounted that may not answer, a line each. `is_far PATH`: it is
 * there, or below. `at_far PATH`: it is such a directory itself.
 */
const READ_MOUNTS = `mounted=; far=$nl
while read -r source at type rest; do
  mounted="$mounted$source $at $type $rest$nl"
  case $type in nfs | nfs4 | autofs | fuse* | cifs | smb3 | 9p | ceph | afs) ;; *) continue;; esac
  case $at in *\\\\*) at=$(printf %b "$at");; esac
  far="$far$at$nl"
done < /proc/mounts
at_far() { case $far in *"$nl$1$nl"*) ;; *) return 1;; esac; }
is_far() {
  is_below=1; set -f; IFS=$nl
  for at in $far; do case $1/ in "$at"/*) is_below=0;; esac; done
  set +f; unset IFS
  return $is_below
}
is_filled() {
  set -- "$1"/* "$1"/.[!.]* "$1"/..?*
  for each; do
    if [ -e "$each" ] || [ -L "$each" ]; then return 0; fi
  done
  return 1
}
kind() {
  type=$(stat -f -c %T "$2" 2>&1); status=$?
  case $type in
    *[Ss]tale*) echo "$1 stale"; return 1;;
    *'No such file'*) echo "$1 absent"; return 1;;
  esac
  if [ $status -ne 0 ] || [ ! -d "$2" ]; then echo "$1 other"; return 1; fi
}
look() {
  entries=- mode=- type=-
  case $3 in *exported*) kind "$1" "$2" || return; mode=$(stat -c %a "$2");; esac
  case $3 in
    *point*)
      if is_far "$2" || [ ! -d "$2" ]; then kind "$1" "$2" || return; fi
      if at_far "$2"; then :; elif is_filled "$2"; then entries=1; else entries=0; fi;;
  esac
  echo "$1 directory $entries $mode $type"
}`

const mountsFact: Fact<readonly Mount[]> = {
  before: READ_MOUNTS,
  script: 'printf %s "$mounted"',
  parse: (text) => (text === '' ? undefined : parseMounts(text)),
}

/** What a directory is for a host: `point`, `exported`, or both. */
type Uses = ReadonlyMap<string, string>

const checkPaths = (uses: Uses) =>
  [...uses].map(([path, use], index) => `look ${index} ${shellQuote(path)} ${shellQuote(use)}`)

/** Directories of the host itself. */
function localPointsFact(uses: Uses): Fact<Points> {
  const checks = checkPaths(uses)
  const script = [...uses.keys()].map((path, index) => `is_far ${shellQuote(path)} || ${checks[index]}`)
  return {
    before: READ_MOUNTS,
    script: [...script, 'echo end'].join('\n'),
    parse: (text) => (text.endsWith('end') ? parsePoints(text, uses) : undefined),
  }
}

/** Directories on a mount, each checked by its own process, which may hang; an answer is one short line. */
function remotePointsFact(uses: Uses): Fact<Points> {
  const checks = checkPaths(uses)
  const parts = [...uses.keys()].map((path, index) => ({
    when: `is_far ${shellQuote(path)}`,
    script: checks[index] ?? '',
  }))
  return { before: READ_MOUNTS, script: ':', parts, parse: (text) => parsePoints(text, uses) }
}

function parsePoints(text: string, uses: Uses): Points {
  const paths = [...uses.keys()]
  const points = text.split('\n').flatMap((line): [string, MountPoint][] => {
    const [index, kind, entries, mode = '', filesystem = ''] = line.trim().split(' ')
    const path = paths[Number(index)]
    if (path === undefined) return []
    if (kind === 'directory') return [[path, { kind, isEmpty: entries === '0', mode, filesystem }]]
    if (kind === 'absent' || kind === 'other' || kind === 'stale' || kind === 'silent') return [[path, { kind }]]
    return []
  })
  return new Map(points)
}

/** What is at a directory; undefined: unknown. A directory on a mount that did not answer in time is silent. */
export function pointAt(
  { localPoints, remotePoints }: { readonly localPoints: Known<Points>; readonly remotePoints: Known<Points> },
  path: string,
): MountPoint | undefined {
  if (localPoints.kind === 'unknown') return undefined
  return localPoints.value.get(path) ?? knownValue(remotePoints)?.get(path) ?? { kind: 'silent' }
}

/** Asked of servers only. */
export function serverFacts(): FactSet<NfsServerFacts> {
  return {
    service: serviceFact(SERVICE),
    ownExports: fileFact(EXPORTS_FILE),
    foreignExports: foreignExportsFact,
    active: activeFact,
  }
}

/** Asked of clients only. */
export function clientFacts(points: readonly string[]): FactSet<NfsClientFacts> {
  const units = points.map((point): [`unit ${string}`, Fact<FileState>] => [`unit ${point}`, fileFact(unitPath(point))])
  return {
    mounts: mountsFact,
    fstab: fileFact('/etc/fstab'),
    hasSystemd: {
      script: '[ -d /run/systemd/system ] && command -v systemctl > /dev/null; echo $?',
      parse: (text) => (/^\d+$/.test(text) ? text === '0' : undefined),
    },
    ...Object.fromEntries(units),
  }
}

export function nfsFacts(wanted: NfsWanted, host: string): FactSet<NfsFacts> {
  const { shares } = wanted
  const points = shares.flatMap(({ clients, point }) => (clients.includes(host) ? [point] : []))
  const exported = shares.flatMap(({ server, path }) => (server === host ? [path] : []))
  const uses = new Map<string, string>()
  for (const path of points) uses.set(path, 'point')
  for (const path of exported) uses.set(path, uses.has(path) ? 'point exported' : 'exported')
  return {
    packages: packagesFact(packagesOf(wanted, host), 'nfs'),
    ...(exported.length === 0 ? {} : serverFacts()),
    ...(points.length === 0 ? {} : clientFacts(points)),
    localPoints: localPointsFact(uses),
    remotePoints: remotePointsFact(uses),
  } as FactSet<NfsFacts>
}

export type HostFactsOfNfs = KnownFacts<NfsFacts>

export const AREA = 'nfs'

export const exportsId = (server: string): string => operationId(AREA, 'exports', server)
export const serviceId = (server: string): string => operationId(AREA, 'server', server)
export const mountId = (host: string, point: string): string => operationId(AREA, `mount ${point}`, host)

export const packagesOperation = (host: string, verdict: Verdict): Operation =>
  operationOf(AREA, host, 'packages', 'NFS packages', verdict)
export const exportsOperation = (host: string, verdict: Verdict, after?: readonly string[]): Operation =>
  operationOf(AREA, host, 'exports', 'exports', verdict, after)
export const mountOperation = (
  host: string,
  { point }: { readonly point: string },
  verdict: Verdict,
  after?: readonly string[],
): Operation => operationOf(AREA, host, `mount ${point}`, `mount at ${point}`, verdict, after)

const TITLES: Readonly<Record<string, string>> = {
  mounts: 'the mounts',
  fstab: '/etc/fstab',
  hasSystemd: 'whether systemd runs',
  ownExports: 'the exports of Muster',
  foreignExports: 'the other exports',
  active: 'the active exports',
  localPoints: 'the exported directories',
  service: 'the NFS server',
}

/** The values of these facts, or the verdict that one is unknown. */
export function allKnown<K extends keyof NfsFacts>(
  host: string,
  own: HostFactsOfNfs,
  names: readonly K[],
): { readonly [N in K]: NfsFacts[N] } | Verdict {
  for (const name of names) {
    const fact = own[name]
    if (fact.kind === 'unknown') {
      const cause = `cannot determine ${TITLES[String(name)] ?? name.replace('unit', 'the unit of')}: ${fact.because}`
      return blocked(host, 'unknown', cause)
    }
  }
  return Object.fromEntries(names.map((name) => [name, knownValue(own[name])])) as { readonly [N in K]: NfsFacts[N] }
}
