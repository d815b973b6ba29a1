/**
 * Packages through apt, dnf, zypper, pacman and apk: queries, installs, and removes what was installed for an area
 * and nothing else (`/var/lib/muster/packages-AREA` lists it). Packages that were there before, and packages that others need, are never
 * removed. What an installation is about to add is on a note first (`packages-AREA.begun`), and on the list once the package manager
 * has ended and it is installed. A note that remains is of an installation that was stopped: somebody else may have installed its
 * packages since, so they are never removed. If the package manager is in use, Muster says so and waits for a limited time.
 */
import { defined } from '../../base/defined.ts'
import { isInstalledName, isPackageVersion, type PackageChoice } from '../../base/package-choice.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from './fact.ts'
import { type Finding, onHost } from './finding.ts'
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
  /** Where an installation was stopped: what it may have installed, and is there now. */
  readonly unclear?: readonly string[]
}

/** What the repositories of a host offer. */
export type PackageOffers = {
  /** Whether the host has read the lists of its repositories at all. */
  readonly hasLists: boolean
  /** The versions of each known package; the first one is what the package manager would install. */
  readonly versions: ReadonlyMap<string, readonly string[]>
}

/** What installing the missing packages would do, as the package manager says; only apt says it without root. */
export type InstallPreview = {
  /** With the wanted ones. */
  readonly added: ReadonlyMap<string, string>
  /** `libc6 2.36-8 → 2.36-9`, or `removes NAME`: packages that are there. Those that Muster installed for the area are left out. */
  readonly changed: readonly string[]
}

export type InstallOptions = {
  /** Records that these were asked for by name, and refuses to change any package that is there, except those that Muster installed for the area. */
  readonly isStrict?: boolean
  /** Reads the lists of the repositories first. */
  readonly isRefreshed?: boolean
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
const noteOf = (area: string): string => `${recordOf(area)}.begun`
const wordsOf = (words: readonly string[]): string => words.map(shellQuote).join(' ')

/** What apt says it would do, without a lock. */
const SIMULATION = 'apt-get -q -s --no-install-recommends'
const MOST_LINES = 2000

/** `0:` is the epoch of a package without one. */
const RPM = `rpm -q --qf 'installed %{NAME} %|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\\n' "$@" | sed 's/ 0:/ /'`

/** Prints `installed NAME VERSION` for those of the arguments that are installed, and other lines for others. */
const QUERIES: Readonly<Record<PackageManager, string>> = {
  apt: `dpkg-query -W -f '\${db:Status-Status} \${Package} \${Version}\\n' "$@"`,
  dnf: RPM,
  zypper: RPM,
  pacman: `pacman -Q "$@" | sed 's/^/installed /'`,
  apk: `for name; do sed -n "/^P:$name\\$/,/^\\$/s/^V:/installed $name /p" /lib/apk/db/installed; done`,
}

/** Runs the script of the host's package manager; fails where it has none. */
function byManager(scriptOf: (manager: PackageManager) => string): string {
  const cases = MANAGERS.map(
    (manager) => `elif command -v ${PROGRAMS[manager]} > /dev/null; then echo ${manager}; ${scriptOf(manager)}`,
  )
  return `if false; then :\n${cases.join('\n')}\nelse return 1\nfi`
}

export function packagesFact(names: PackageNames, area: string): Fact<Packages> {
  const record = recordOf(area)
  const note = noteOf(area)
  const query = (manager: PackageManager) =>
    `${names[manager].length === 0 ? '' : `set -- ${wordsOf(names[manager])}; ${QUERIES[manager]}\n`}if [ -f ${note} ]; then tell ${note} 'begun '; set -- $(cat ${note}); { ${QUERIES[manager]}; } | sed 's/^installed /there /'; fi`
  return {
    script: `${byManager(query)}\n[ ! -f ${record} ] || tell ${record} 'own '`,
    parse(text) {
      const [first, ...lines] = text.split('\n')
      const manager = MANAGERS.find((each) => each === first)
      if (manager === undefined) return undefined
      const words = lines.map((line) => line.trim().split(/\s+/))
      const namesOf = (word: string) => [
        ...new Set(
          words.flatMap(([key, name]) => (key === word && name !== undefined && isInstalledName(name) ? [name] : [])),
        ),
      ]
      const own = namesOf('own')
      const begun = namesOf('begun')
      const there = new Set(namesOf('there'))
      const unclear = begun.filter((name) => !own.includes(name) && there.has(name.replace(/:.*$/, '')))
      const wanted = new Set(names[manager])
      const installed = words.flatMap(([state, name = '', version = '']) =>
        wanted.has(name) && state === 'installed' ? [[name, version] as const] : [],
      )
      return { manager, installed: new Map(installed), own, ...(begun.length === 0 ? {} : { unclear }) }
    },
  }
}

/** dnf reads its metadata slowly, and more than once. */
const CACHED_DNF = 'limited dnf -q -C repoquery'

/** Only apt and dnf are asked; others offer nothing. */
export function packageOffersFact(names: readonly string[]): Fact<PackageOffers> {
  const words = wordsOf(names)
  const asked: Partial<Record<PackageManager, string>> = {
    apt: `set -- /var/lib/apt/lists/*_Packages*; [ ! -e "$1" ] || echo lists
limited apt-cache policy ${words}`,
    // Without a cache, dnf finds nothing and reports no error.
    dnf: `offered=$(${CACHED_DNF} --latest-limit=1 --qf 'first %{name} %{evr}\\n' ${words})
if [ -n "$offered" ]; then echo lists; printf '%s\\n' "$offered"; ${CACHED_DNF} --qf 'other %{name} %{evr}\\n' ${words}
else [ -z "$(${CACHED_DNF} | head -n 1)" ] || echo lists
fi`,
  }
  return {
    script: byManager((manager) => asked[manager] ?? ':'),
    parse(text) {
      const [manager, ...lines] = text.split('\n').slice(0, MOST_LINES)
      const wanted = new Set(names)
      const versions = manager === 'apt' ? versionsOfPolicy(lines, wanted) : versionsOfRepoquery(lines, wanted)
      return { hasLists: lines.includes('lists'), versions }
    },
  }
}

/** apt-cache(8): policy. A version is offered if a line below it names a repository, not only dpkg's own list. */
function versionsOfPolicy(
  lines: readonly string[],
  wanted: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const versions = new Map<string, string[]>()
  let own: string[] = []
  let candidate: string | undefined
  let version: string | undefined
  for (const line of lines) {
    const name = /^(\S+):$/.exec(line)?.[1]
    if (name !== undefined) {
      own = []
      candidate = undefined
      version = undefined
      if (wanted.has(name)) versions.set(name, own)
      continue
    }
    candidate = /^ {2}Candidate: (\S+)$/.exec(line)?.[1] ?? candidate
    version = /^ (?:\*\*\*| {3}) (\S+)(?: -?\d+)?$/.exec(line)?.[1] ?? version
    const source = /^ {8} *-?\d+ (\S+)/.exec(line)?.[1]
    if (source === undefined || version === undefined || source === '/var/lib/dpkg/status') continue
    if (!isPackageVersion(version) || own.includes(version)) continue
    if (version === candidate) own.unshift(version)
    else own.push(version)
  }
  return new Map([...versions].filter(([, each]) => each.length > 0))
}

function versionsOfRepoquery(
  lines: readonly string[],
  wanted: ReadonlySet<string>,
): ReadonlyMap<string, readonly string[]> {
  const found = lines.flatMap((line) => {
    const [kind, name = '', version = ''] = line.trim().split(' ')
    const isOffer = (kind === 'first' || kind === 'other') && wanted.has(name) && isPackageVersion(version)
    return isOffer ? [{ name, version: version.replace(/^0:/, '') }] : []
  })
  const byName = Map.groupBy(found, ({ name }) => name)
  return new Map([...byName].map(([name, each]) => [name, [...new Set(each.map(({ version }) => version))]]))
}

/** `Inst NAME [OLD] (NEW …)` and `Remv NAME [OLD]`: lines of apt's simulation, of which some have a sign of the architecture. */
const WOULD = /^(Inst|Remv) (\S+)(?: \[(\S+)\])?(?: \((\S+))?/

export function installPreviewFact(choices: readonly PackageChoice[], area: string): Fact<InstallPreview> {
  const record = recordOf(area)
  const names = choices.map(({ name }) => name)
  return {
    script: `if ! command -v apt-get > /dev/null; then echo end; return; fi
there=" $(dpkg-query -W -f '\${db:Status-Status}:\${Package} ' ${wordsOf(names)}) "
set --
for word in ${wordsOf(choices.map((choice) => wordOf('apt', choice)))}; do
  case $there in *" installed:\${word%%=*} "*) ;; *) set -- "$@" "$word";; esac
done
if [ $# -gt 0 ]; then
  limited ${SIMULATION} install "$@" | grep -E '^(Inst|Remv) ' | head -n ${MOST_LINES}
fi
[ ! -f ${record} ] || tell ${record} 'own '
echo end`,
    parse(text) {
      const lines = text.split('\n')
      if (lines.at(-1) !== 'end') return undefined
      const own = new Set(lines.flatMap((line) => (line.startsWith('own ') ? [line.slice('own '.length)] : [])))
      const would = lines.flatMap((line) => {
        const [, verb, name, from, to] = WOULD.exec(line) ?? []
        return name === undefined || own.has(name) ? [] : [{ verb, name, from, to }]
      })
      return {
        added: new Map(
          would.flatMap(({ verb, name, from, to = '' }) => (verb === 'Inst' && from === undefined ? [[name, to]] : [])),
        ),
        changed: would.flatMap(({ verb, name, from, to = '' }) =>
          verb === 'Remv' ? [`removes ${name}`] : from === undefined ? [] : [`${name} ${from} → ${to}`],
        ),
      }
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

/**
 * `patiently` runs its arguments, again while the package manager is in use, and shows their output; it ends the script if that
 * does not end in time. It calls `settle` before that, and `waited_for_others` before each new attempt. No package may ask a question.
 */
const PATIENTLY = `patiently() {
  waited=0
  while :; do
    said=$("$@" 2>&1 < /dev/null); status=$?
    [ $status -ne 0 ] || { printf '%s\\n' "$said" | tail -n 20; return 0; }
    held=$(printf '%s\\n' "$said" | grep -E '${LOCKED}' | head -n 1)
    [ -n "$held" ] || { printf '%s\\n' "$said" | tail -n 20 >&2; return $status; }
    if [ $waited -ge ${LOCK_WAIT_S} ]; then
      echo "another process still uses the package manager after ${LOCK_WAIT_S} s" >&2
      printf '%s\\n' "$held" >&2
      settle
      exit 1
    fi
    [ $waited -ne 0 ] || echo "waiting: another process uses the package manager: $held"
    sleep 2; waited=$((waited + 2)); waited_for_others
  done
}
settle() { :; }
waited_for_others() { :; }
umask 022
export LC_ALL=C DEBIAN_FRONTEND=noninteractive NEEDRESTART_SUSPEND=1 APT_LISTCHANGES_FRONTEND=none APT_LISTBUGS_FRONTEND=none
`

const APT = 'apt-get -q -y -o DPkg::Lock::Timeout=0'
const KEEP_CONFIGURATION = '-o Dpkg::Options::=--force-confdef -o Dpkg::Options::=--force-confold'
const APT_INSTALL = `${APT} ${KEEP_CONFIGURATION} --no-remove --no-install-recommends$downgrade`
const DNF = 'dnf -y --setopt=exit_on_lock=True'
const INSTALLS: Readonly<Record<PackageManager, string>> = {
  // Packages that an earlier run left half configured come first; the lists may be old or missing.
  apt: `{ [ -z "$(dpkg --audit)" ] || patiently dpkg --configure -a; } && {
  patiently ${APT_INSTALL} install "$@" || {
    echo 'trying again with fresh lists'
    patiently ${APT} update && guard "$@" && patiently ${APT_INSTALL} install "$@"
  }
}`,
  dnf: `patiently ${DNF} install "$@"`,
  zypper: 'patiently zypper --non-interactive install --no-recommends "$@"',
  pacman: 'patiently pacman --noconfirm --needed -S "$@" || patiently pacman --noconfirm --needed -Sy "$@"',
  apk: 'patiently apk add "$@" || patiently apk add --update-cache "$@"',
}
/** Removes the arguments. */
const REMOVALS: Readonly<Record<PackageManager, string>> = {
  apt: `patiently ${APT} purge "$@"`,
  dnf: `patiently ${DNF} remove "$@"`,
  zypper: 'patiently zypper --non-interactive remove --clean-deps "$@"',
  pacman: 'patiently pacman --noconfirm -Rns "$@"',
  apk: 'patiently apk del "$@"',
}
/** Reads the lists of repositories, and fails if one of the wanted packages is not in them. */
const REFRESHES: Partial<Record<PackageManager, string>> = {
  // A name that apt does not know could be a pattern to it.
  apt: `patiently ${APT} update || exit 1
for name in $names; do
  apt-cache policy "$name" | grep -q '^  Candidate: [^(]' || { echo "apt does not know the package $name" >&2; exit 1; }
done`,
  dnf: `patiently ${DNF} makecache || exit 1`,
}

/** Prints the packages that installing the arguments would change or remove. */
const CHANGES: Partial<Record<PackageManager, string>> = {
  apt: `${SIMULATION} install "$@" 2> /dev/null | sed -n -e 's/^Inst \\([^ ]*\\) \\[.*/\\1/p' -e 's/^Remv \\([^ ]*\\).*/\\1/p'`,
  // Sections of a table, in which only the lines of packages begin with a single space.
  dnf: `dnf --setopt=exit_on_lock=True --assumeno install "$@" 2> /dev/null |
    sed -n -E '/^(Upgrading|Downgrading|Removing|Reinstalling)/,/^$/s/^ ([^ ]+) +.*/\\1/p'`,
}

/** `is_installed NAME`; `present` and `absent` print those of their arguments that are installed or not, with one query for most. */
const installedFunctions = (
  manager: PackageManager,
) => `is_installed() { { ${QUERIES[manager]}; } 2> /dev/null | grep -q '^installed '; }
present() {
  [ $# -gt 0 ] || return 0
  found=" $( { ${QUERIES[manager]}; } 2> /dev/null | sed -n 's/^installed \\([^ ]*\\).*/\\1/p' | tr '\\n' ' ')"
  for each; do
    case $each in
      *:*) ! is_installed "$each" || printf '%s\\n' "$each";;
      *) case $found in *" $each "*) printf '%s\\n' "$each";; esac;;
    esac
  done
}
absent() {
  found=" $(present "$@" | tr '\\n' ' ')"
  for each; do case $found in *" $each "*) ;; *) printf '%s\\n' "$each";; esac; done
}`

/**
 * `record` writes the record again. It keeps packages that are installed, of those in the record and of the arguments. It drops the
 * others, because somebody else may install them later. `tidy` removes the directory if it is empty.
 */
const RECORD = `tidy() { rmdir "\${r%/*}" 2> /dev/null || :; }
record() {
  [ -d "\${r%/*}" ] || return 0
  present $(cat "$r" 2> /dev/null) "$@" | sort -u > "$r.new" || return 1
  if [ -s "$r.new" ]; then mv -f "$r.new" "$r"; else rm -f "$r" "$r.new" "$r.asked"; fi
}`

/** Runs the command before the script ends at a signal, as it does when Muster is stopped. */
const atSignal = (command: string): string => `trap 'trap "" HUP INT TERM; ${command}; exit 143' HUP INT TERM`

/** The word that means exactly this version to the package manager. */
function wordOf(manager: PackageManager, { name, version }: PackageChoice): string {
  if (version === undefined) return name
  return manager === 'dnf' || manager === 'zypper' ? `${name}-${version}` : `${name}=${version}`
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
    run: installPackages(
      manager,
      missing.map((name) => ({ name })),
      area,
    ),
    ...defined({ check }),
  }
  return steps('missing', [step])
}

/** Removes what Muster installed for the area; `because`: the reason if it installed nothing. */
export function removalVerdict(area: string, { manager, own, unclear }: Packages, because = ''): Verdict {
  const step: Step = {
    id: 'remove',
    title:
      own.length > 0
        ? 'remove the packages that Muster installed, except those that other packages need'
        : 'delete the note of an installation that was stopped halfway',
    changes: [
      ...own.map((name) => `- package ${name}`),
      ...(unclear === undefined ? [] : [`- ${noteOf(area)}`]),
      ...(unclear ?? []).map((name) => `~ package ${name} stays: ${UNCLEAR}`),
    ],
    run: removePackages(manager, own, area),
  }
  return steps('differs', [(own.length > 0 || unclear !== undefined) && step], because)
}

const UNCLEAR = 'Muster does not know whether it installed this'

/** What `down` will leave, for `status` and `up`. */
export function unclearFindings(area: string, host: string, { manager, unclear = [] }: Packages): readonly Finding[] {
  if (unclear.length === 0) return []
  const remove = {
    apt: 'apt-get purge',
    dnf: 'dnf remove',
    zypper: 'zypper remove',
    pacman: 'pacman -Rs',
    apk: 'apk del',
  }
  const names = unclear.join(' ')
  const cause = `an installation was stopped halfway. Muster does not know whether it installed ${names}, so down keeps this`
  const hint = `To remove it: sudo ${remove[manager]} ${names}. To keep it, delete Muster's note`
  return [{ host, gravity: 'note', id: 'unclear-packages', cause, hint, fix: onHost(`sudo rm ${noteOf(area)}`) }]
}

/** Exit code 0: these packages are installed, in these versions. */
export function installedCheck(manager: PackageManager, choices: readonly PackageChoice[]): Check {
  const tests = choices.map(({ name, version }) => {
    const pattern = version === undefined ? ` ${name} ` : ` ${name} ${version} `
    return `case $there in *${shellQuote(pattern)}*) ;; *) echo ${shellQuote(`not installed:${pattern}`)} >&2; exit 1;; esac`
  })
  return {
    lack: 'not all is installed',
    script: `set -- ${wordsOf(choices.map(({ name }) => name))}
there=$( { ${QUERIES[manager]}; } 2> /dev/null | sed -n 's/^installed \\(.*\\)/ \\1 /p')
${tests.join('\n')}`,
  }
}

/** Those of the wanted packages that are the area's were asked for by name. */
const CLAIM_ASKED = `
  [ -f "$r" ] || return 0
  { cat "$r.asked" 2> /dev/null; for name in $names; do ! grep -q -x -F -e "$name" "$r" || printf '%s\\n' "$name"; done; } |
    sort -u > "$r.new" && mv -f "$r.new" "$r.asked"`

/** Installs missing packages, and records those that were added as the area's. */
export function installPackages(
  manager: PackageManager,
  choices: readonly PackageChoice[],
  area: string,
  { isStrict = false, isRefreshed = false }: InstallOptions = {},
): Action {
  // apt says in advance which dependencies it adds; the others remove unneeded ones by themselves.
  const added = manager === 'apt' ? `\n  ${SIMULATION} install "$@" | sed -n 's/^Inst \\([^ ]*\\) (.*/\\1/p'` : ''
  const changes = isStrict ? CHANGES[manager] : undefined
  const refusal =
    changes === undefined
      ? ':'
      : `changed=$( { ${changes}; } | while read -r each; do grep -q -s -x -F -e "$each" "$r" || printf ' %s' "$each"; done)
  [ -z "$changed" ] || { echo "refused: this would change or remove packages that are there:$changed" >&2; settle; exit 1; }`
  return {
    script: `${PATIENTLY}${installedFunctions(manager)}
${RECORD}
guard() {
  ${refusal}
}
r=${recordOf(area)}
downgrade=${isStrict ? "' --allow-downgrades'" : ''}
names=${shellQuote(choices.map(({ name }) => name).join(' '))}
${isRefreshed ? (REFRESHES[manager] ?? '') : ''}
set -- ${wordsOf(choices.map((choice) => wordOf(manager, choice)))}
guard "$@"
begun=$( {
  absent $names${added}
} | sort -u)
unclear=$(present $(cat "$r.begun" 2> /dev/null) | if [ -f "$r" ]; then grep -v -x -F -f "$r"; else cat; fi)
note() {
  if [ $# -eq 0 ]; then rm -f "$r.begun"; else printf '%s\\n' "$@" > "$r.new" && mv -f "$r.new" "$r.begun"; fi
}
claim() {
  record $begun || return 1${isStrict ? CLAIM_ASKED : ''}
}
settle() { claim && note $unclear && tidy; }
waited_for_others() { begun=$(absent $begun); }
mkdir -p "\${r%/*}" && note $begun $unclear || exit 1
${atSignal('claim && note $(absent $begun) $unclear')}
{
${INSTALLS[manager]}
}
status=$?
settle || [ $status -ne 0 ] || status=1
exit $status`,
    asRoot: true,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}

/** Prints what would be removed with the arguments and is not one of `$own`, or what needs them. */
const LOSSES: Partial<Record<PackageManager, string>> = {
  apt: `apt-get -q -s purge "$@" 2> /dev/null | while read -r verb each rest; do
    case $verb in Purg | Remv) case $own in *" $each "*) ;; *) printf '%s ' "$each";; esac;; esac
  done`,
  dnf: `rpm -e --test "$@" 2>&1 | sed -n 's/.*(installed) //p' | tr '\\n' ' '`,
  zypper: `rpm -e --test "$@" 2>&1 | sed -n 's/.*(installed) //p' | tr '\\n' ' '`,
}

/** Keeps of the arguments what other packages need. */
const KEEP_NEEDED = `if [ $# -gt 0 ] && [ -n "$(losses "$@")" ]; then
  free=
  for each; do
    lost=$(losses "$each")
    if [ -n "$lost" ]; then echo "$each stays: needed by $lost"; else free="$free $each"; fi
  done
  set -- $free
fi
`

/** `removal` removes its arguments; if one of them remains, the script ends, and what is still there stays on the record. */
const removalFunctions = (
  manager: PackageManager,
  own: readonly string[],
  area: string,
) => `${PATIENTLY}${installedFunctions(manager)}
${RECORD}
settle() { record; }
gone() {
  left=$(present "$@" | tr '\\n' ' ')
  [ -z "$left" ] || { echo "${PROGRAMS[manager]} reported success, but these are still installed: $left" >&2; return 1; }
}
removal() { ${REMOVALS[manager]} && gone "$@" || { record; exit 1; }; }
losses() { ${LOSSES[manager] ?? ':'}; }
own=${shellQuote(` ${own.join(' ')} `)}
r=${recordOf(area)}
${atSignal('record')}`

/** The packages that Muster installed for the area because they were asked for by name, not because others need them. */
export function askedPackagesFact(area: string): Fact<readonly string[]> {
  const asked = `${recordOf(area)}.asked`
  return {
    script: `[ ! -f ${asked} ] || tell ${asked} ''; echo end`,
    parse(text) {
      const names = text.split('\n').slice(0, MOST_LINES)
      return names.pop() === 'end' ? names.filter(isInstalledName) : undefined
    },
  }
}

/** Removes packages that were asked for once, with what only they needed; those that others need stay, and are no longer asked for. */
export function removeUndeclared(manager: PackageManager, names: readonly string[], area: string): Action {
  const unneeded = `set -- $(apt-get -q -s autoremove | sed -n 's/^Remv \\([^ ]*\\).*/\\1/p' | grep -x -F -f "$r")
if [ $# -gt 0 ]; then
  removal "$@"
fi
`
  return {
    script: `${removalFunctions(manager, names, area)}
set --
for each in $own; do ! is_installed "$each" || set -- "$@" "$each"; done
${KEEP_NEEDED}if [ $# -gt 0 ]; then
  removal "$@"
fi
${manager === 'apt' ? unneeded : ''}for each in $own; do
  ${manager === 'apt' ? '! is_installed "$each" || patiently apt-mark -q auto "$each"' : ':'}
  grep -v -x -F -e "$each" "$r.asked" > "$r.new"; mv -f "$r.new" "$r.asked" || exit 1
done
record && tidy`,
    asRoot: true,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}

/** Removes what Muster installed for the area, if it is still there and no other package needs it. */
export function removePackages(manager: PackageManager, own: readonly string[], area: string): Action {
  return {
    script: `${removalFunctions(manager, own, area)}
set --
for each in $own; do ! is_installed "$each" || set -- "$@" "$each"; done
${manager === 'apt' ? KEEP_NEEDED : ''}if [ $# -gt 0 ]; then
  lost=$(losses "$@")
  [ -z "$lost" ] || { echo "refused: packages that Muster did not install need these: $lost" >&2; exit 1; }
  removal "$@"
fi
rm -f "$r" "$r.asked" "$r.begun"; tidy`,
    asRoot: true,
    timeoutMs: INSTALL_TIMEOUT_MS,
  }
}
