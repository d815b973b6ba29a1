/**
 * Ranks of a bundle: a launcher that starts several processes on a host starts each by a small program, which gives it an output
 * file of its own and tells its end. Where a bundle is one rank, its own output and end are those of the rank.
 */

import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import { shellQuote } from '../../base/shell-quote.ts'

/** The clock of a host, from its uptime in seconds to milliseconds of this machine's clock. */
export type UpClock = {
  toMs(upS: number): number | undefined
  /** By how much that may be wrong. */
  readonly errorMs: number | undefined
}

/** How one rank ended, as its host told. */
export type RankEnd = {
  readonly rank: number
  /** How often a launcher (torchrun --elastic) had started the ranks again. */
  readonly restart: number
  readonly code: number
  /** In milliseconds of this machine's clock. */
  readonly endedMs?: number
  readonly errorMs?: number
  /** Of one that failed: the line that says why, as far as it can be known; at most 300 characters. */
  readonly text?: string
}

/** What stands before a rank's command. */
export const AS_RANK = `sh -c 'exec sh "$MUSTER_DIRECTORY/rank" "$@"' rank `

/** Words in which sh expands nothing. */
const PLAIN = /^[\w@%+=:,./ -]*$/
/** First words that sh alone understands: its own commands, and variables for one command. */
const OF_SHELL =
  /^ *(?:[A-Za-z_]\w*=|(?:\.|:|alias|case|cd|command|eval|exec|exit|export|for|hash|if|read|readonly|return|set|shift|time|times|trap|type|ulimit|umask|unset|until|wait|while)(?: |$))/

/**
 * One program that does what `command`, a line for sh, says: the command itself where sh would only divide it into words. `line`:
 * what is run in its place, which has the command in it.
 */
export const asProgram = (command: string, line = command): string =>
  PLAIN.test(command) && !OF_SHELL.test(command) ? line : `sh -c ${shellQuote(line)}`

/**
 * The line by which a launcher starts a rank; `command` is a line for sh, which each rank runs as a whole, with variables of its own.
 */
export const asRank = (command: string): string => `${AS_RANK}${asProgram(command)}`

/** Characters of the line that a failed rank told. */
const MOST_TEXT = 300
const MOST_RANK = 100_000
const TAIL_LINES = 60

/**
 * A function for sh, `why FILE CODE`: the line of a file of errors that says most likely why a program ended so. Of one that was
 * killed, the last line says nothing.
 */
export const WHY_FUNCTION = `why() {
  tail -n ${TAIL_LINES} "$1" | tr -cd '\\n -~' | cut -c 1-${MOST_TEXT} | awk -v c="$2" '
    { sub(/^\\[rank[0-9]+\\]:? /, "") }
    /^[-= ]*$/ || /^terminate called/ || /ChildFailedError/ || /^ *(error_file|traceback) *: (<N|To)/ { next }
    { last = $0 }
    sub(/^ *what\\(\\): */, "") { why = $0 }
    /^[A-Za-z_][A-Za-z0-9_.]*(Error|Exception|Interrupt|Exit|Failure)(:|$)/ { why = $0 }
    END { print why == "" && (c <= 128 || c == 134) ? last : why }'
}
`

/**
 * The program `rank`, for POSIX sh. Rank 0 writes to the bundle's own `out` and `err`, where metrics and `job logs` read it; the
 * others write to `rank.N`. It keeps the rank as a child, so that it can tell how it ended; signals are passed on, and the rank does
 * not outlive it (setpriv of util-linux).
 */
export const RANK_PROGRAM = `${WHY_FUNCTION}r=\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-\${HOROVOD_RANK:-\${RANK:-0}}}}
n=\${OMPI_COMM_WORLD_SIZE:-\${PMI_SIZE:-\${HOROVOD_SIZE:-\${WORLD_SIZE:-1}}}}
l=\${OMPI_COMM_WORLD_LOCAL_RANK:-\${MPI_LOCALRANKID:-\${HOROVOD_LOCAL_RANK:-\${LOCAL_RANK:-0}}}}
d=$MUSTER_DIRECTORY t=\${TORCHELASTIC_RESTART_COUNT:-0}
case $r$t in ""|*[!0-9]*) exec "$@";; esac
export RANK="$r" WORLD_SIZE="$n" LOCAL_RANK="$l" MUSTER_RANK="$r" MUSTER_WORLD_SIZE="$n" PYTHONUNBUFFERED="\${PYTHONUNBUFFERED-1}"
setpriv --pdeathsig KILL true 2>/dev/null && set -- setpriv --pdeathsig KILL "$@"
p=; trap 'kill -TERM $p' TERM; trap 'kill -INT $p' INT; trap 'kill -HUP $p' HUP
if [ "$r" = 0 ]; then e=$d/err; "$@" >>"$d/out" 2>>"$d/err" &
else e=$d/rank.$r; (umask 077; true >>"$e"); "$@" >>"$e" 2>&1 &
fi
p=$!; echo "$r $t $p" >>"$d/ranks"
while wait $p; c=$?; [ $c -gt 128 ] && kill -0 $p; do :; done 2>/dev/null
read -r u x </proc/uptime
m=; [ $c = 0 ] || m=$(why "$e" $c)
{ printf '%s\\n' "rank $r $t $c $u $m" >&9; } 9<>"$d/say"
exit $c`

/** Ranks that a bundle names as lost. */
const MOST_LOST = 256

/**
 * For sh, once a bundle has heard everything: `lost RANK…`, those whose program was killed before it could tell their end; and what
 * mpirun says of a rank anywhere, `noticed RANK SIGNAL`.
 */
export const TELL_LOST = `[ ! -f ranks ] || { [ ! -f said ] || cat said; cat ranks; } | head -c 262144 | awk '
    $1 == "rank" { told[$2 " " $3] = 1 }
    /^[0-9]+ [0-9]+ [0-9]+$/ { last[$1] = $2 }
    END { for (r in last) if (!((r " " last[r]) in told) && n++ < ${MOST_LOST}) l = l " " r; if (l != "") print "lost" l }'
  [ $c = 0 ] || tail -n ${TAIL_LINES} err | sed -n 's/.*process rank \\([0-9]\\{1,6\\}\\) with PID [0-9]* on node [^ ]* exited on signal \\([0-9]\\{1,2\\}\\) .*/noticed \\1 \\2/p' | tail -n 1
`

/** A rank that began and told no end. `signal`: what ended it, as mpirun says. */
export type LostRank = { readonly rank: number; readonly signal?: number }

/** Of the words after `lost`. */
export const parseLost = (words: string | undefined): readonly number[] =>
  /^\d{1,6}( \d{1,6})*$/.test(words ?? '') ? [...new Set(`${words}`.split(' ').map(Number))] : []

/** Of the words after `noticed`. */
export function parseNoticed(words: string | undefined): LostRank | undefined {
  const [, rank, signal] = /^(\d{1,6}) (\d{1,2})$/.exec(words ?? '') ?? []
  return rank === undefined ? undefined : { rank: Number(rank), signal: Number(signal) }
}

/**
 * Starts ranks as processes of their own; when one fails, the others of its bundle are stopped. `command`: words for sh. `rank` and
 * `total`: numbers, or words of sh. The text has no braces, so that a row of hosts.yaml can hold it.
 */
export function severalRanks(
  ranks: readonly { readonly rank: number | string; readonly local: number; readonly command: string }[],
  total: number | string,
): string {
  const starts = ranks.map(
    ({ rank, local, command }) =>
      `( RANK=${rank} LOCAL_RANK=${local} WORLD_SIZE=${total} sh "$MUSTER_DIRECTORY/rank" ${command} || fail $? ) &`,
  )
  return `f=$MUSTER_DIRECTORY/failed
fail() ( (set -C; echo "$1" >"$f") 2>/dev/null; kill -TERM $$ )
trap 'trap "" TERM; kill -TERM 0; sleep 1; read -r c 2>/dev/null <"$f" || c=143; exit $c' TERM
${starts.join('\n')}
wait; read -r c 2>/dev/null <"$f" || c=0; exit $c`
}

/** What follows the word `rank` in a line that the program told. Undefined: it is not of its form. */
export function parseRankEnd(words: readonly string[], clock: UpClock): RankEnd | undefined {
  const [rank = '', restart = '', code = '', up = '', ...text] = words
  if (![rank, restart, code].every((word) => /^\d{1,6}$/.test(word)) || Number(rank) > MOST_RANK || Number(code) > 255)
    return undefined
  const endedMs = /^\d{1,10}(\.\d{1,6})?$/.test(up) ? clock.toMs(Number(up)) : undefined
  const line = printable(text.join(' ').slice(0, MOST_TEXT)).trim()
  return {
    rank: Number(rank),
    restart: Number(restart),
    code: Number(code),
    ...(endedMs === undefined ? {} : { endedMs, ...defined({ errorMs: clock.errorMs }) }),
    ...(line === '' ? {} : { text: line }),
  }
}
