/** What NFS asks of a host. Only the mount points may hang, and they are asked beside everything else. */
import { type Fact, type FactSet, type Known, knownValue } from '../kernel/fact.ts'
import { type FileState, fileFact } from '../kernel/files.ts'
import { quote } from '../kernel/finding.ts'
import { type PackageNames, type Packages, packagesFact } from '../kernel/packages.ts'
import { type Service, type ServiceState, serviceFact } from '../kernel/services.ts'
import { type ActiveExport, type Exports, parseActiveExports, parseExports } from './exports.ts'
import { type Mount, parseMounts, unitName } from './mounts.ts'
import type { NfsWanted } from './wanted.ts'

export type Point =
  | { readonly kind: 'directory'; readonly isEmpty: boolean; readonly mode: string; readonly filesystem: string }
  | { readonly kind: 'absent' }
  | { readonly kind: 'other' }
  /** Its server says that it is not what it was. */
  | { readonly kind: 'stale' }
  /** Nobody answers. */
  | { readonly kind: 'silent' }

type Points = ReadonlyMap<string, Point>

export type NfsFacts = {
  readonly packages: Packages
  readonly service: ServiceState
  readonly ownExports: FileState
  /** Of the other files. */
  readonly foreignExports: Exports
  readonly active: readonly ActiveExport[]
  readonly mounts: readonly Mount[]
  readonly fstab: FileState
  /** Mount units instead of lines in fstab. */
  readonly hasSystemd: boolean
  /** Both by directory; each directory is in one of them. */
  readonly localPoints: Points
  readonly remotePoints: Points
} & {
  /** The unit file of a mount point. */
  readonly [unit: `unit ${string}`]: FileState
}

export const EXPORTS_FILE = '/etc/exports.d/muster-nfs.exports'

export const SERVICE: Service = {
  systemd: 'nfs-server',
  openrc: 'nfs',
  sysv: 'nfs-kernel-server',
  byHand: {
    isRunning: '[ "$(cat /proc/fs/nfsd/threads)" -gt 0 ]',
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

const SERVER_PACKAGES: PackageNames = {
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
  head -c 65536 "$file" | sed 's/^/ /'
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

/** What exportfs has told the kernel: the same as \`exportfs -s\`, which needs root. */
const activeFact: Fact<readonly ActiveExport[]> = {
  script: 'if [ -e /var/lib/nfs/etab ]; then cat /var/lib/nfs/etab; fi; echo end',
  parse: (text) => (text.endsWith('end') ? parseActiveExports(text.slice(0, -3)) : undefined),
}

const mountsFact: Fact<readonly Mount[]> = {
  script: 'cat /proc/mounts',
  parse: (text) => (text === '' ? undefined : parseMounts(text)),
}

/** The type of the file system is asked first: of all that is asked, only that is never answered from what a client remembers. */
const LOOK = `look() {
  type=$(limited stat -f -c %T "$2" 2>&1); status=$?
  if overdue $status; then echo "$1 silent"; return; fi
  case $type in
    *[Ss]tale*) echo "$1 stale"; return;;
    *'No such file'*) echo "$1 absent"; return;;
  esac
  if [ $status -ne 0 ] || [ ! -d "$2" ]; then echo "$1 other"; return; fi
  echo "$1 directory $(ls -A "$2" | head -n 1 | wc -l) $(stat -c %a "$2") $type"
}
remote() {
  while read -r _ at type _; do
    case $type in nfs | nfs4 | autofs) ;; *) continue;; esac
    case $1/ in "$(printf %b "$at")"/*) return 0;; esac
  done < /proc/mounts
  return 1
}`

/** Directories of the host itself. */
function localPointsFact(paths: readonly string[]): Fact<Points> {
  const looks = paths.map((path, index) => `remote ${quote(path)} || look ${index} ${quote(path)}`)
  return { script: [LOOK, ...looks, 'echo end'].join('\n'), parse: (text) => parsePoints(text, paths) }
}

/** Those on a mount: each is looked at by a process of its own that may be left behind; an answer is one short line. */
function remotePointsFact(paths: readonly string[]): Fact<Points> {
  const looks = paths.map((path, index) => `! remote ${quote(path)} || look ${index} ${quote(path)} &`)
  return {
    script: [LOOK, ...looks, 'wait', 'echo end'].join('\n'),
    mayHang: true,
    parse: (text) => parsePoints(text, paths),
  }
}

function parsePoints(text: string, paths: readonly string[]): Points | undefined {
  if (!text.endsWith('end')) return undefined
  const points = text.split('\n').flatMap((line): [string, Point][] => {
    const [index, kind, entries, mode = '', filesystem = ''] = line.trim().split(' ')
    const path = paths[Number(index)]
    if (path === undefined) return []
    if (kind === 'directory') return [[path, { kind, isEmpty: entries === '0', mode, filesystem }]]
    if (kind === 'absent' || kind === 'other' || kind === 'stale' || kind === 'silent') return [[path, { kind }]]
    return []
  })
  return new Map(points)
}

/** What is at a directory; undefined: nobody could tell. What is on a mount and did not answer in time is silent. */
export function pointAt(
  { localPoints, remotePoints }: { readonly localPoints: Known<Points>; readonly remotePoints: Known<Points> },
  path: string,
): Point | undefined {
  if (localPoints.kind === 'unknown') return undefined
  return localPoints.value.get(path) ?? knownValue(remotePoints)?.get(path) ?? { kind: 'silent' }
}

export function nfsFacts(wanted: NfsWanted, host: string): FactSet<NfsFacts> {
  const { shares } = wanted
  const points = shares.flatMap(({ clients, point }) => (clients.includes(host) ? [point] : []))
  const exported = shares.flatMap(({ server, path }) => (server === host ? [path] : []))
  const units = Object.fromEntries(
    points.map((point): [`unit ${string}`, Fact<FileState>] => [`unit ${point}`, fileFact(unitPath(point))]),
  )
  const paths = [...new Set([...points, ...exported])]
  return {
    packages: packagesFact(packagesOf(wanted, host), 'nfs'),
    service: serviceFact(SERVICE),
    ownExports: fileFact(EXPORTS_FILE),
    foreignExports: foreignExportsFact,
    active: activeFact,
    mounts: mountsFact,
    fstab: fileFact('/etc/fstab'),
    hasSystemd: {
      script: '[ -d /run/systemd/system ] && command -v systemctl > /dev/null; echo $?',
      parse: (text) => (/^\d+$/.test(text) ? text === '0' : undefined),
    },
    localPoints: localPointsFact(paths),
    remotePoints: remotePointsFact(paths),
    ...units,
  } as FactSet<NfsFacts>
}
