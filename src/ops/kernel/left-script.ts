/**
 * How a host tells what is left on it: a line for each thing, `KIND =PATH COUNT UID MTIME KILOBYTES PROCESS =REASON`. Names of files
 * are hostile: all but plain characters travel as octal escapes, which printf(1) turns back into the same bytes on the host.
 */

import { defined } from '../../base/defined.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Fact } from './fact.ts'

/** One thing, or many of one kind. `-` was not told. */
export type LeftRecord = {
  readonly kind: string
  /** As it travels. */
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
  /** What the host's clock says, in seconds since the epoch. */
  readonly nowS: number
  /** There are more, or the search was given up. */
  readonly isCut: boolean
}

const MOST_RECORDS = 400
const MOST_NAMES = 2000
const DEPTH = 7
/** Of what other processes say about themselves. */
const MOST_WORDS = 4000

const ENCODE = `left_encode() {
  case $1 in
    *[!A-Za-z0-9/._~+@%=:,-]*) printf %s "$1" | od -A n -v -t o1 | tr -d '\\n' | sed 's/  */\\\\0/g';;
    *) printf %s "$1";;
  esac
}`

/**
 * `left_holder PATH`: a process that has it or something below it open, as its directory or program, or in its command line. What
 * asks is none of them: the processes of its session, and those that started it, have its script among their words.
 */
export const LEFT_HOLDER = `left_asking() {
  cat /proc/[0-9]*/stat 2> /dev/null | awk -v self=$$ '
    { pid = $1; rest = $0; sub(/^.*\\) /, "", rest); if (split(rest, word, " ") < 4) next
      parent[pid] = word[2]; session[pid] = word[4] }
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
        if (substr(rest, at + size, 1) !~ /[A-Za-z0-9_.-]/) { print $1; exit }
        rest = substr(rest, at + size)
      } }'
}`

/** What finds things calls these. */
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
left_sum() { left_line "$1" "$2" "$3" - "\${5:--}" "\${4:--}" - "\${6-}"; }
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

/** What a script that calls these functions finds. `also`: words of the shell, more directories to search. */
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

/** For people, or as a path where it is UTF-8. */
export function decodeWord(word: string): string {
  const bytes = word.replace(/\\0([0-7]{3})/g, (_, octal) => String.fromCharCode(Number.parseInt(octal, 8) & 0xff))
  return Buffer.from(bytes, 'latin1').toString()
}

/** Sets $p to the path as it was told. */
export function setPath(word: string): string {
  return `p=$(printf '%b.' '${word}'); p=\${p%.}`
}
