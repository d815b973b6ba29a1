/**
 * Packages through apt, dnf, zypper, pacman and apk: queries, installs, and removes what was installed for an area
 * and nothing else (`/var/lib/muster/packages-AREA` lists it, written before the first installation). If the package manager
 * is in use, Muster reports that and waits for a limited time.
 */
import { defined } from '../../base/defined.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from './fact.ts'
import { type Action, type Check, type Step, steps, type Verdict } from './operation.ts'

export type PackageManager = 'apt' | 'dnf' | 'zypper' | 'pacman' | 'apk'

/** The name of the package with each manager; none: it is part of the system there, or does not exist. */
export type PackageNames = Readonly<Record<PackageManager, readonly string[]>>

export type Packages = {
  readonly manager: PackageManager
  /** The wanted packages that are installed, with their versions. */
  readonly installed: ReadonlyMap<string, string>
  /** What Muster installed for the area. */
  readonly own: readonly string[]
}

const MANAGERS: readonly PackageManager[] = ['apt', 'dnf', 'zypper', 'pacman', 'apk']
const PROGRAMS: Readonly<Record<PackageManager, string>> = {
  apt: 'apt-get',
  dnf: 'dnf',
  zypper: 'zypper',
  pacman: 'pacman',
  apk: 'apk',
}
/** Seconds to wait for another run. */
const LOCK_WAIT_S = 120
const INSTALL_TIMEOUT_MS = 15 * 60_000

const recordOf = (area: string): string => `/var/lib/muster/packages-${area}`

/** Prints `installed NAME VERSION` for those of the arguments that are installed, and other lines for others. */
const QUERIES: Readonly<Record<PackageManager, string>> = {
  apt: `dpkg-query -W -f '\${db:Status-Status} \${Package} \${Version}\\n' "$@"`,
  dnf: `rpm -q --qf 'installed %{NAME} %{VERSION}-%{RELEASE}\\n' "$@"`,
  zypper: `rpm -q --qf 'installed %{NAME} %{VERSION}-%{RELEASE}\\n' "$@"`,
  pacman: `pacman -Q "$@" | sed 's/^/installed /'`,
  apk: `for name; do sed -n "/^P:$name\\$/,/^\\$/s/^V:/installed $name /p" /lib/apk/db/installed; done`,
}

export function packagesFact(names: PackageNames, area: string): Fact<Packages> {
  const cases = MANAGERS.map((manager) => {
    const words = names[manager].map(shellQuote).join(' ')
    const query = words === '' ? '' : `set -- ${words}; ${QUERIES[manager]}`
    return `elif command -v ${PROGRAMS[manager]} > /dev/null; then echo ${manager}; ${query}`
  })
  const record = recordOf(area)
  return {
    script: `if false; then :\n${cases.join('\n')}\nelse return 1\nfi\n[ ! -f ${record} ] || tell ${record} 'own '`,
    parse(text) {
      const [first, ...lines] = text.split('\n')
      const manager = MANAGERS.find((each) => each === first)
      if (manager === undefined) return undefined
      const words = lines.map((line) => line.trim().split(/\s+/))
      const own = words.flatMap(([key, name]) => (key === 'own' && name !== undefined ? [name] : []))
      const wanted = new Set(names[manager])
      const installed = words.flatMap(([state, name = '', version = '']) =>
        wanted.has(name) && state === 'installed' ? [[name, version] as const] : [],
      )
      return { manager, installed: new Map(installed), own: [...new Set(own)] }
    },
  }
}

export function missingPackages(names: PackageNames, { manager, installed }: Packages): readonly string[] {
  return names[manager].filter((name) => !installed.has(name))
}

/** The message of each while another run holds its lock. */
const LOCKED = [
  'Could not get lock',
  'Unable to acquire the dpkg frontend lock',
  'Unable to lock the administration directory',
  'is locked by another process',
  'Failed to obtain the transaction lock',
  // dnf 4, of its metadata and of RPM's database.
  'already locked by',
  'System management is locked',
  'unable to lock database',
  'Unable to lock database',
].join('|')

/** Runs its arguments, again while the package manager is in use; shows their output. Exits if that does not end in time. */
const PATIENTLY = `patiently() {
  waited=0
  while :; do
    said=$("$@" 2>&1 < /dev/null); status=$?
    [ $status -ne 0 ] || { printf '%s\\n' "$said" | tail -n 20; return 0; }
    printf '%s\\n' "$said" | grep -q -E '${LOCKED}' || { printf '%s\\n' "$said" | tail -n 20 >&2; return $status; }
    if [ $waited -ge ${LOCK_WAIT_S} ]; then
      echo "another process still uses the package manager after ${LOCK_WAIT_S} s" >&2
      printf '%s\\n' "$said" | grep -E '${LOCKED}' | head -n 1 >&2
      exit 1
    fi
    [ $waited -ne 0 ] || echo "waiting: another process uses the package manager"
    sleep 2; waited=$((waited + 2))
  done
}
export LC_ALL=C DEBIAN_FRONTEND=noninteractive
`

const APT = 'apt-get -q -y -o DPkg::Lock::Timeout=0'
const INSTALLS: Readonly<Record<PackageManager, string>> = {
  // Packages that an earlier run left half configured come first; the lists may be old or missing.
  apt: `[ -z "$(dpkg --audit)" ] || patiently dpkg --configure -a || exit 1
patiently ${APT} --no-install-recommends install "$@" || {
  echo 'trying again with fresh lists'
  patiently ${APT} update && patiently ${APT} --no-install-recommends install "$@"
}`,
  dnf: 'patiently dnf -y --setopt=exit_on_lock=True install "$@"',
  zypper: 'patiently zypper --non-interactive install --no-recommends "$@"',
  pacman: 'patiently pacman --noconfirm --needed -S "$@" || patiently pacman --noconfirm --needed -Sy "$@"',
  apk: 'patiently apk add "$@" || patiently apk add --update-cache "$@"',
}
const REMOVALS: Readonly<Record<PackageManager, string>> = {
  apt: `patiently ${APT} purge "$@"`,
  dnf: 'patiently dnf -y --setopt=exit_on_lock=True remove "$@"',
  zypper: 'patiently zypper --non-interactive remove --clean-deps "$@"',
  pacman: 'patiently pacman --noconfirm -Rns "$@"',
  apk: 'patiently apk del "$@"',
}

/** Installs missing packages; `check` belongs to the step. */
export function installVerdict(
  area: string,
  manager: PackageManager,
  missing: readonly string[],
  check?: Check,
): Verdict {
  const step: Step = {
    id: 'install',
    title: `install ${missing.join(' and ')} with ${manager}`,
    changes: missing.map((name) => `+ package ${name}`),
    run: installPackages(manager, missing, area),
    ...defined({ check }),
  }
  return steps('missing', [step])
}

/** Removes what Muster installed for the area; `because`: the reason if it installed nothing. */
export function removalVerdict(area: string, { manager, own }: Packages, because = ''): Verdict {
  const step: Step = {
    id: 'remove',
    title: 'remove the packages that Muster installed',
    changes: own.map((name) => `- package ${name}`),
    run: removePackages(manager, own, area),
  }
  return steps('differs', [own.length > 0 && step], because)
}

/** Installs missing packages, and records them as the area's. */
export function installPackages(manager: PackageManager, names: readonly string[], area: string): Action {
  // apt says in advance which dependencies it installs; the others remove unneeded ones by themselves.
  const all =
    manager === 'apt'
      ? `{ printf '%s\\n' "$@"; ${APT} -s --no-install-recommends install "$@" | sed -n 's/^Inst \\([^ ]*\\).*/\\1/p'; }`
      : `printf '%s\\n' "$@"`
  return {
    script: `${PATIENTLY}set -- ${names.map(shellQuote).join(' ')}
r=${recordOf(area)}
mkdir -p "\${r%/*}" || exit 1
{ cat "$r" 2> /dev/null; ${all}; } | sort -u > "$r.new" && mv -f "$r.new" "$r" || exit 1
${INSTALLS[manager]}`,
    asRoot: true,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}

/** Removes what Muster installed for the area, if it is still there. */
export function removePackages(manager: PackageManager, own: readonly string[], area: string): Action {
  const there = manager === 'apt' || manager === 'pacman' || manager === 'apk' ? QUERIES[manager] : QUERIES.dnf
  return {
    script: `${PATIENTLY}set -- ${own.map(shellQuote).join(' ')}
r=${recordOf(area)}
set -- $( { ${there}; } 2> /dev/null | sed -n 's/^installed \\([^ ]*\\).*/\\1/p')
if [ $# -gt 0 ]; then
${REMOVALS[manager]} || exit 1
fi
rm -f "$r"; rmdir "\${r%/*}" 2> /dev/null || :`,
    asRoot: true,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}
