/**
 * What Muster has left on hosts: each area says what it finds, whether it is in use or declared, and how to remove it. Removal is a
 * change like any other (change.ts), with a plan, locks and a journal. What hosts.yaml declares is removed by `down` only.
 */

import { defined } from '../../base/defined.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import type { LeftKind, LeftSearch } from '../../base/left.ts'
import { EACH_STAT } from '../../base/proc-stat.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import { type Area, type AreaFacts, areaOf, type Declared } from './area.ts'
import type { AnyFacts, Fact, FactSet, HostFacts, Known, KnownFacts } from './fact.ts'
import { blocked, nothing, type Operation, operationOf, type Step, steps, type Verdict } from './operation.ts'

export type Leftover = {
  /** Not printable yet. */
  readonly what: string
  readonly bytes?: number
  /** Last change, in seconds since the epoch by the host's clock. */
  readonly changedS?: number
  readonly state:
    | { readonly kind: 'left'; readonly steps: readonly Omit<Step, 'id'>[] }
    /** A process or a job uses it. */
    | { readonly kind: 'used'; readonly because: string }
    /** hosts.yaml declares it; because: what removes it. */
    | { readonly kind: 'declared'; readonly because: string }
    /** User data, or owned by another account. */
    | { readonly kind: 'kept'; readonly because: string }
    /** The host did not report it. */
    | { readonly kind: 'unknown'; readonly because: string }
}

export type LeftSpec<F> = {
  readonly name: string
  factsOf(declared: Declared, host: string, also: readonly string[]): FactSet<F>
  /** Pure. */
  itemsOf(facts: KnownFacts<F>, declared: Declared, host: string): readonly Leftover[]
}

/** A search for leftovers, without the type of its facts. */
export type LeftRoom = LeftSpec<AnyFacts>

/** Erases the type of the facts: each search gets only the answers to its own facts. */
export function defineLeft<F>(spec: LeftSpec<F>): LeftRoom {
  return spec as unknown as LeftRoom
}

export type HostLeftover = Leftover & { readonly area: string; readonly host: string }

export type LeftAreas = {
  readonly areas: readonly Area[]
  itemsOf(factsByArea: ReadonlyMap<string, AreaFacts<AnyFacts>>): readonly HostLeftover[]
}

/** `also`: more directories to search, as shell words. */
export function leftAreas(
  rooms: readonly LeftRoom[],
  declared: Declared,
  hosts: readonly string[],
  also: readonly string[],
): LeftAreas {
  const itemsOn = (room: LeftRoom, host: string, { facts }: HostFacts<AnyFacts>): readonly HostLeftover[] =>
    room.itemsOf(facts, declared, host).map((item) => ({ ...item, area: room.name, host }))
  return {
    areas: rooms.map((room) =>
      areaOf<null, AnyFacts>(
        {
          name: room.name,
          hostsOf: () => hosts,
          factsOf: (_, host) => room.factsOf(declared, host, also),
          plan: (_, __, { facts }) => [...facts].flatMap(([host, own]) => itemsOn(room, host, own).map(removalOf)),
        },
        null,
      ),
    ),
    itemsOf: (factsByArea) =>
      hosts.flatMap((host) =>
        rooms.flatMap((room) => {
          const own = factsByArea.get(room.name)?.facts.get(host)
          return own === undefined ? [] : itemsOn(room, host, own)
        }),
      ),
  }
}

function removalOf(item: HostLeftover, index: number): Operation {
  const { area, host, what } = item
  return { ...operationOf(area, host, `left-${index + 1}`, what, verdictOf(item)), isAlone: true }
}

function verdictOf({ state, host, bytes }: HostLeftover): Verdict {
  switch (state.kind) {
    case 'left': {
      const size = bytes === undefined ? '' : ` (${formatBytes(bytes)})`
      const all = state.steps.map((step, index) => ({
        ...step,
        id: String(index + 1),
        changes: step.changes.map((line, at) => (index + at === 0 ? `${line}${size}` : line)),
      }))
      return steps('differs', all)
    }
    case 'unknown':
      return blocked(host, 'unknown', state.because)
    default:
      return nothing(state.because)
  }
}

/** From the operations of a plan for `down`: what is in effect, or unfinished. */
export function leftOfOperations(
  operations: readonly Operation[],
  declaredBy: string | undefined,
  usedBy?: string,
): readonly Leftover[] {
  return operations.flatMap(({ title, verdict }): Leftover[] => {
    if (verdict.kind === 'nothing') return []
    if (verdict.kind === 'blocked') {
      const because = verdict.findings.map(({ cause }) => cause).join(', ')
      return [{ what: title, state: { kind: 'unknown', because } }]
    }
    if (declaredBy !== undefined) return [{ what: title, state: declaredWith(declaredBy) }]
    if (usedBy !== undefined) return [{ what: title, state: { kind: 'used', because: usedBy } }]
    return [{ what: title, state: { kind: 'left', steps: verdict.steps.map(({ id: _, ...step }) => step) } }]
  })
}

export function declaredWith(area: string): Leftover['state'] {
  return { kind: 'declared', because: `hosts.yaml declares it; to remove it: muster down ${area}` }
}

export function unknownOf(what: string, because: string): Leftover {
  return { what, state: { kind: 'unknown', because: `could not be determined: ${because}` } }
}

/**
 * How a host reports what is left on it: a line for each thing, `KIND =PATH COUNT UID MTIME KILOBYTES PROCESS =REASON`. Names of files
 * are hostile: all but plain characters are sent as octal escapes, which printf(1) turns back into the same bytes on the host.
 */

/** One thing, or many of one kind. `-`: not reported. */
export type LeftRecord = {
  readonly kind: string
  /** Still escaped. */
  readonly path: string
  readonly count: number
  readonly uid?: number
  /** When it last changed, in seconds since the epoch by the host's clock. */
  readonly changedS?: number
  readonly bytes?: number
  /** A process that uses it, or something below it. */
  readonly process?: number
  readonly reason?: string
}

export type LeftAnswer = {
  readonly records: readonly LeftRecord[]
  /** Of the login. */
  readonly uid: number
  /** The host's clock, in seconds since the epoch. */
  readonly nowS: number
  /** There are more, or the search was stopped. */
  readonly isCut: boolean
}

const MOST_RECORDS = 400
const MOST_NAMES = 2000
const DEPTH = 7
/** Limit of what other processes report about themselves. */
const MOST_WORDS = 4000

const ENCODE = `left_encode() {
  case $1 in
    *[!A-Za-z0-9/._~+@%=:,-]*) printf %s "$1" | od -A n -v -t o1 | tr -d '\\n' | sed 's/  */\\\\0/g';;
    *) printf %s "$1";;
  esac
}`

/**
 * `left_holder PATH`: a process that has it or something below it open, as its directory or program, or in its command line. The
 * search itself is excluded: the processes of its session, and those that started it, have its script in their arguments.
 */
export const LEFT_HOLDER = `left_asking() {
  cat /proc/[0-9]*/stat 2> /dev/null | LC_ALL=C awk -v self=$$ '
    ${EACH_STAT}
    { parent[pid] = stat[2]; session[pid] = stat[4] }
    END {
      for (pid in session) if (session[pid] == session[self]) print pid
      for (pid = parent[self]; pid > 1; pid = parent[pid]) print pid
    }' | tr '\\n' ' '
}
left_look() {
  [ -z "\${left_processes+x}" ] || return 0
  left_processes=$(
    ls -l /proc/[0-9]*/cwd /proc/[0-9]*/exe /proc/[0-9]*/root /proc/[0-9]*/fd 2> /dev/null | awk '
      /^\\/proc\\/[0-9]+\\/fd:$/ { split($0, part, "/"); pid = part[3]; next }
      { at = index($0, " -> "); if (at == 0) next
        own = pid; head = substr($0, 1, at - 1)
        if (match(head, /\\/proc\\/[0-9]+\\/(cwd|exe|root)$/)) { split(substr(head, RSTART), part, "/"); own = part[3] }
        to = substr($0, at + 4); if (to ~ /^\\/./) print own " " to }'
    grep -a -H '' /proc/[0-9]*/cmdline 2> /dev/null | cut -c 1-${MOST_WORDS} | tr '\\000' ' ' | sed -n 's|^/proc/\\([0-9]*\\)/cmdline:|\\1 |p'
  )
  left_askers=" $(left_asking)"
  left_processes=$(printf '%s\\n' "$left_processes" | awk -v askers="$left_askers" 'index(askers, " " $1 " ") == 0')
}
left_holder() {
  printf '%s\\n' "$left_processes" | LEFT=$1 awk '
    BEGIN { wanted = ENVIRON["LEFT"]; sub(/\\n.*/, "", wanted); size = length(wanted) }
    { rest = $0
      while ((at = index(rest, wanted)) > 0) {
        if (substr(rest, at + size, 1) !~ /[A-Za-z0-9_.-]/) { print $1; next }
        rest = substr(rest, at + size)
      } }' | while read -r left_pid; do
    # One that has ended meanwhile, such as a part of the search, uses nothing.
    if [ -d "/proc/$left_pid" ]; then echo "$left_pid"; break; fi
  done
}`

/** Functions for the scripts that search. */
function functions(also: readonly string[]): string {
  return `${ENCODE}
${LEFT_HOLDER}
left_line() {
  left_told=$((\${left_told:-0} + 1))
  if [ $left_told -gt ${MOST_RECORDS} ]; then echo cut; return; fi
  printf '%s =%s %s %s %s %s %s =%s\\n' "$1" "$(left_encode "$2")" "$3" "$4" "$5" "$6" "$7" "$(left_encode "$8")"
}
left_found() {
  left_look
  left_size=$(limited du -skx "$2"); left_size=\${left_size%%[!0-9]*}
  left_own=; left_real=$(readlink -f "$2")
  if [ -z "\${3-}" ]; then
    left_own=$(left_holder "$2")
    [ -n "$left_own" ] || [ "\${left_real:-$2}" = "$2" ] || left_own=$(left_holder "$left_real")
  fi
  left_stat=$(stat -c '%u %Y' "$2") || left_stat='- -'
  left_line "$1" "$2" 1 "\${left_stat% *}" "\${left_stat#* }" "\${left_size:--}" "\${left_own:--}" "\${3-}"
}
left_sum() { left_line "$1" "$2" "$3" "$(id -u)" "\${5:--}" "\${4:--}" - "\${6-}"; }
left_search() {
  [ -z "\${left_names+x}" ] || return 0
  left_names=$(
    {
      limited find "$HOME" "\${TMPDIR:-/tmp}" /tmp /var/tmp${also.map((path) => ` ${path}`).join('')} -xdev -maxdepth ${DEPTH} \\
        \\( -name '.muster-*' -o -name '*.muster-half' -o -name '*.muster-new' -o -name '*.muster-old' -o -name '*.muster-before' \\
        -o -name '*.muster-lock' \\) -exec sh -c "$left_program" sh {} +
      ! overdue $? || echo cut
    } | sort -u | head -n ${MOST_NAMES}
  )
  case $nl$left_names$nl in *"\${nl}cut$nl"*) echo cut;; esac
}
left_program=${shellQuote(`${ENCODE}
for each; do left_encode "$each"; echo; done`)}
left_each() {
  left_search
  while IFS= read -r left_word; do
    left_path=$(printf '%b.' "$left_word"); left_path=\${left_path%.}
    [ "$left_word" != cut ] || continue
    case \${left_path##*/} in $1) "$2" "$left_path";; esac
  done << NAMES
$left_names
NAMES
}`
}

/** The fact with the results of a script that calls these functions. `also`: more directories to search, as shell words. */
export function leftFact(find: string, also: readonly string[]): Fact<LeftAnswer> {
  return {
    before: functions(also),
    script: `echo "self $(id -u) $(date +%s)"
left_finds() {
${find}
}
left_finds
echo end`,
    parse: parseAnswer,
  }
}

const WORD = String.raw`(?:[A-Za-z0-9/._~+@%=:,-]|\\0[0-7]{3})*`
const LINE = new RegExp(
  String.raw`^([a-z-]+) =(${WORD}) (\d{1,9}) (\d{1,10}|-) (\d{1,11}|-) (\d{1,15}|-) (\d{1,10}|-) =(${WORD})$`,
)

function parseAnswer(text: string): LeftAnswer | undefined {
  const lines = text.split('\n')
  const [, uid, nowS] = /^self (\d{1,10}) (\d{1,11})$/.exec(lines[0] ?? '') ?? []
  if (uid === undefined || nowS === undefined || lines.at(-1) !== 'end') return undefined
  const found = lines.slice(1, -1).flatMap((line) => recordOf(line) ?? [])
  return {
    uid: Number(uid),
    nowS: Number(nowS),
    records: found.slice(0, MOST_RECORDS),
    isCut: lines.includes('cut') || found.length > MOST_RECORDS,
  }
}

function recordOf(line: string): LeftRecord | undefined {
  const [, kind, path, count, ...rest] = LINE.exec(line) ?? []
  if (kind === undefined || path === undefined) return undefined
  const [uid, changedS, kilobytes, process] = rest.map((word) => (word === '-' ? undefined : Number(word)))
  const reason = decodeWord(rest.at(-1) ?? '')
  return {
    kind,
    path,
    count: Number(count),
    ...defined({ uid, changedS, process, bytes: kilobytes && kilobytes * 1024, reason: reason || undefined }),
  }
}

/** For people, or as a path if it is UTF-8. */
export function decodeWord(word: string): string {
  const bytes = word.replace(/\\0([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8) & 0xff))
  return Buffer.from(bytes, 'latin1').toString()
}

/** Sets $p to the reported path. */
export function setPath(word: string): string {
  return `p=$(printf '%b.' '${word}'); p=\${p%.}`
}

/** Leftovers that are files: decides from the answer of a host what may be removed, and how. Pure. */

/** Something that changed this recently may belong to a command that is just starting. */
const BRIEF_S = 10

export function roomOfSearch(search: LeftSearch): LeftRoom {
  return defineLeft<{ found: LeftAnswer }>({
    name: search.name,
    factsOf: (_, __, also) => ({ found: leftFact(search.find, also) }),
    itemsOf: ({ found }) => leftoversOf(found, search.kinds),
  })
}

/** `stateOf`: the state of one thing, if an area knows it better. */
export function leftoversOf(
  found: Known<LeftAnswer>,
  kinds: LeftSearch['kinds'],
  stateOf: (record: LeftRecord, path: string) => Leftover['state'] | undefined = () => undefined,
): Leftover[] {
  if (found.kind === 'unknown') return [unknownOf('files', found.because)]
  const items = found.value.records.flatMap((record): Leftover[] => {
    const kind = kinds[record.kind]
    if (kind === undefined) return []
    const path = decodeWord(record.path)
    const { count, bytes, changedS } = record
    return [
      {
        what: `${kind.title}${count === 1 ? '' : ` (${count})`}: ${path}`,
        ...defined({ bytes, changedS }),
        state:
          heldState(record, kind, found.value) ?? stateOf(record, path) ?? removal(record, kind, path, found.value),
      },
    ]
  })
  return found.value.isCut
    ? [...items, unknownOf('more files', 'there are too many, or the search took too long')]
    : items
}

function heldState(record: LeftRecord, kind: LeftKind, { uid, nowS }: LeftAnswer): Leftover['state'] | undefined {
  const { changedS, process, reason } = record
  if (record.uid === undefined) return { kind: 'unknown', because: 'could not be determined: its owner' }
  if (record.uid !== uid && !(record.uid === 0 && kind.isOfRoot === true)) {
    const owner = record.uid === 0 ? 'root' : `another account (${record.uid})`
    return { kind: 'kept', because: `it belongs to ${owner}` }
  }
  if (kind.keep !== undefined) return { kind: 'kept', because: kind.keep }
  if (reason !== undefined) return { kind: 'used', because: reason }
  if (process !== undefined) return { kind: 'used', because: `process ${process} uses it` }
  if (kind.isBrief === true && changedS !== undefined && Math.abs(nowS - changedS) < BRIEF_S)
    return { kind: 'used', because: 'it has just changed' }
  return undefined
}

function removal(record: LeftRecord, kind: LeftKind, path: string, { uid }: LeftAnswer): Leftover['state'] {
  const asRoot = record.uid === 0 && uid !== 0
  const p = setPath(record.path)
  const there = `{ [ -e "$p" ] || [ -L "$p" ]; }`
  // It is checked again right before it is removed. Where hosts share it, another one may be first.
  const guard =
    kind.isSum === true
      ? ''
      : `${there} || exit 0
${LEFT_HOLDER}
left_look
held=$(left_holder "$p")
[ -z "$held" ] || { echo "process $held uses $p" >&2; exit 1; }
[ "$(stat -c %u "$p" 2>/dev/null)" = "$(id -u)" ] || { ${there} || exit 0; echo "$p belongs to another account" >&2; exit 1; }
`
  return {
    kind: 'left',
    steps: [
      {
        title: kind.action ?? `remove the ${kind.title}`,
        changes: [`- ${path}`],
        run: { script: `${p}\n${guard}${kind.remove ?? 'rm -rf "$p"'}`, asRoot },
        ...(kind.isSum === true ? {} : { check: { script: `${p}\n! ${there}`, asRoot, lack: 'it is still there' } }),
      },
    ],
  }
}
