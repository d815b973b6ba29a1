/**
 * Finds what NFS left on hosts after hosts.yaml changed: Muster's exports file, its mounts (units or blocks in fstab), packages, and
 * files of an interrupted check or measurement. They are removed as `down` would; a mount in use stays.
 */

import type { LeftKind } from '../../base/left.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type Fact, type FactSet, type KnownFacts, known, knownValue } from '../kernel/fact.ts'
import { type FileState, MADE_BY_MUSTER } from '../kernel/files.ts'
import {
  defineLeft,
  type LeftAnswer,
  type Leftover,
  leftFact,
  leftOfOperations,
  leftoversOf,
  unknownOf,
} from '../kernel/left.ts'
import type { Operation } from '../kernel/operation.ts'
import { packagesFact, removalVerdict } from '../kernel/packages.ts'
import { MEASURED_FILES, REMOVE_MEASURED } from '../net/nfs/measure-nfs.ts'
import {
  AREA,
  clientFacts,
  exportsOperation,
  type HostFactsOfNfs,
  mountOperation,
  type NfsClientFacts,
  type NfsFacts,
  type NfsServerFacts,
  packagesOperation,
  SERVER_PACKAGES,
  serverFacts,
} from './facts.ts'
import { isNfs } from './mounts.ts'
import { declaredPoints, planUnmount } from './plan-client.ts'
import { planUnexport } from './plan-server.ts'
import { type NfsWanted, type Share, wantedNfs } from './wanted.ts'

type Unit = { readonly point: string; readonly state: FileState; readonly process?: number }

type Facts = Pick<NfsFacts, 'packages'> &
  NfsServerFacts &
  NfsClientFacts & { readonly units: readonly Unit[]; readonly found: LeftAnswer }

/** Every unit of Muster's: its sum, where it mounts, whether Muster made the directory, and who uses it. */
const unitsFact: Fact<readonly Unit[]> = {
  script: `for file in /etc/systemd/system/*.mount; do
  [ -f "$file" ] && [ ! -L "$file" ] || continue
  IFS= read -r first < "$file"
  [ "$first" = ${shellQuote(MADE_BY_MUSTER)} ] || continue
  echo "unit $(cksum < "$file")"
  tell "$file" ' '; echo
done
echo end`,
  parse(text) {
    if (!text.endsWith('end')) return undefined
    return text
      .split(/^unit /m)
      .slice(1)
      .flatMap((part): Unit[] => {
        const [sum = '', ...lines] = part.split('\n')
        const own = lines.flatMap((line) => (line.startsWith(' ') ? [line.slice(1)] : []))
        const point = own
          .find((line) => line.startsWith('Where='))
          ?.slice('Where='.length)
          .replaceAll('%%', '%')
        const [, crc, size] = /^(\d+) (\d+)$/.exec(sum.trim()) ?? []
        if (point === undefined || !point.startsWith('/') || crc === undefined) return []
        return [{ point, state: { kind: 'file', mode: '644', sum: `${crc}-${size}`, text: `${own.join('\n')}\n` } }]
      })
  },
}

const KINDS: Readonly<Record<string, LeftKind>> = {
  proof: { title: 'files of a check', isBrief: true },
  measured: {
    title: 'files of a measurement',
    // Another host may have removed it already; listing it makes the NFS client ask the server again.
    remove: `${REMOVE_MEASURED}\nremove "$p" || { ls "$p" > /dev/null 2>&1; [ ! -e "$p" ]; }`,
    isBrief: true,
  },
  mixed: { title: 'files of a measurement', keep: 'it also holds files that Muster did not write' },
  back: { title: 'unfinished file', isOfRoot: true, isBrief: true },
}

export const left = defineLeft<Facts>({
  name: AREA,
  factsOf(declared, host, also) {
    const wanted = wantedNfs(declared)
    return {
      packages: packagesFact(SERVER_PACKAGES, AREA),
      ...serverFacts(),
      ...clientFacts([]),
      units: unitsFact,
      found: leftFact(findScript(wanted, host), also),
    } as FactSet<Facts>
  },
  itemsOf(facts, declared, host) {
    const shares = wantedNfs(declared)?.shares ?? []
    const isServer = shares.some(({ server }) => server === host)
    const isClient = shares.some(({ clients }) => clients.includes(host))
    const unexport = planUnexport(host, facts as unknown as HostFactsOfNfs)
    return [
      ...mountsOf(host, facts, shares),
      ...leftOf(exportsOperation(host, unexport), isServer),
      ...packagesOf(host, facts, isServer || isClient),
      ...leftoversOf(facts.found, KINDS),
    ]
  },
})

const MEASURED = "'.muster-nfs-????????'"

/** A measurement can be in any directory, so all NFS mounts are searched, beside what `left_each` finds. */
function findScript(wanted: NfsWanted | undefined, host: string): string {
  const places = (wanted?.shares ?? []).flatMap(({ server, clients, path, point }) => [
    ...(server === host ? [path] : []),
    ...(clients.includes(host) ? [point] : []),
  ])
  const own = places.flatMap((path) => [
    `left_in ${shellQuote(path)} '.muster-proof-????????*'`,
    `left_in ${shellQuote(path)} ${MEASURED}`,
  ])
  return `left_in() { limited find "$1" -maxdepth 1 -name "$2" -user "$(id -u)"; }
left_measured() {
  case \${1##*/.muster-nfs-} in *[!A-Za-z0-9]*) return;; esac
  [ -d "$1" ] && [ ! -L "$1" ] || return
  if limited ls -A "$1" | grep -qvxE '${MEASURED_FILES}'; then left_found mixed "$1"
  elif [ -n "$(find "$1" -prune -mmin -3)" ]; then left_found measured "$1" 'it changed less than 3 minutes ago: a measurement may be running'
  else left_found measured "$1"; fi
}
left_mounts() {
  while read -r source point type rest; do
    case $type in nfs | nfs4) left_in "$(printf '%b' "$(printf '%s\\n' "$point" | sed 's/\\\\\\([0-7]\\{3\\}\\)/\\\\0\\1/g')")" ${MEASURED};; esac
  done < /proc/mounts
}
left_each ${MEASURED} left_measured
{ ${[...own, 'left_mounts'].join('; ')}; } 2> /dev/null | sort -u | head -n 100 | while read -r each; do
  case $each in
    */.muster-nfs-*) case $nl$left_names$nl in *"$nl$each$nl"*) ;; *) left_measured "$each";; esac;;
    */.muster-proof-*[!A-Za-z0-9]*) ;;
    *) left_found proof "$each";;
  esac
done
[ ! -e /etc/exports.d/muster-nfs.exports.back ] || left_found back /etc/exports.d/muster-nfs.exports.back`
}

function mountsOf(host: string, facts: KnownFacts<Facts>, shares: readonly Share[]): readonly Leftover[] {
  const units = knownValue(facts.units)
  const fstab = knownValue(facts.fstab)
  if (units === undefined || fstab === undefined) return [unknownOf('mounts', 'the host does not say what it mounts')]
  const points = [...new Set([...units.map(({ point }) => point), ...declaredPoints(fstab)])]
  const own = {
    ...facts,
    ...Object.fromEntries(units.map(({ point, state }) => [`unit ${point}`, known(state)])),
    // Nothing is unmounted by force: the user decides what to do about a dead server.
    localPoints: known(
      new Map(points.map((point) => [point, { kind: 'directory', isEmpty: true, mode: '-', filesystem: '-' }])),
    ),
    remotePoints: known(new Map()),
  } as unknown as HostFactsOfNfs
  return points.flatMap((point) => {
    const declared = shares.some((share) => share.point === point && share.clients.includes(host))
    const hasUnit = units.some((unit) => unit.point === point)
    const stateOf = {
      ...own,
      ...(hasUnit ? {} : { [`unit ${point}`]: known({ kind: 'none' }), hasSystemd: known(false) }),
    }
    const verdict = planUnmount(host, stateOf, { point })
    return leftOf(mountOperation(host, { point }, verdict), declared)
  })
}

function packagesOf(
  host: string,
  { packages, mounts, foreignExports }: KnownFacts<Facts>,
  isDeclared: boolean,
): readonly Leftover[] {
  const own = knownValue(packages)
  // Hosts with another package manager, or none, have nothing of Muster's.
  if (own === undefined) return []
  const others = (knownValue(foreignExports)?.entries.length ?? 0) > 0 || (knownValue(mounts) ?? []).some(isNfs)
  const usedBy = others ? 'the host exports or mounts something' : undefined
  return leftOf(packagesOperation(host, removalVerdict(AREA, own)), isDeclared, usedBy)
}

function leftOf(operation: Operation, isDeclared: boolean, usedBy?: string): readonly Leftover[] {
  return leftOfOperations([operation], isDeclared ? AREA : undefined, usedBy)
}
