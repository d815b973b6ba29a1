/**
 * The protocol with a host: a shell of POSIX sh reads functions from its stdin, then one command a round with orders for bundles,
 * and prints lines. Every order may be given twice: a bundle begins by creating the file `claim`, which only one process can, and
 * is identified by boot, process and start time. It runs in a session of its own and survives Muster. It reports its beginning
 * and end at once (`+KEY …`) as long as the shell that began it lives. `true >FILE` creates a file; a failing `: >FILE` would end
 * the shell.
 */
import { shellQuote } from '../../base/shell-quote.ts'
import { END_BUNDLE, END_FUNCTIONS, END_REST } from './host-end.ts'
import { type BundleLimits, END_LIMITED, formatLimit, LIMITED, TELL_MEMORY } from './host-limits.ts'
import { type BundleEnd, type BundleTimes, ENDED_SILENTLY, type SeenBundle } from './job.ts'

export type BundleOrder =
  | { readonly kind: 'start'; readonly key: string; readonly run: BundleRun }
  | { readonly kind: 'check'; readonly key: string }
  | { readonly kind: 'stop'; readonly key: string; readonly signal: 'TERM' | 'KILL' }

export type BundleRun = {
  readonly command: string
  readonly directory: string | undefined
  readonly environment: Readonly<Record<string, string>>
  readonly limits?: BundleLimits | undefined
}

export type HostAnswer = {
  /** Undefined: the host did not report them. */
  readonly facts: { readonly cores: number; readonly memoryBytes: number } | undefined
  readonly bundles: ReadonlyMap<string, SeenBundle>
  /** What the host says is wrong with itself. */
  readonly trouble: string | undefined
}

export type RoundResult =
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'trouble'; readonly reason: string }

/** Where bundles are on hosts, as a word for sh. */
export const JOBS_DIRECTORY = `"\${XDG_STATE_HOME:-$HOME/.local/state}/muster/jobs"`

/** What bundles report begins with it. */
export const NOTICE = '+'

/**
 * The functions of a shell, sent once. Each line that it and bundles print begins with the mark, so that what start-up files
 * print is not taken for an answer. The mark is sent by stdin alone, never as an argument or environment variable. Descriptor 3
 * is a pipe to a reader that passes on what bundles report; a bundle that still has it when the shell is gone keeps no channel
 * open and does not block. Its name contains `pipe`, which differs for each shell: hosts that share a home may use the same
 * process ids. For the same reason each host tries the disk with a file of its own.
 */
export const formatPrelude = (
  mark: string,
  pipe: string,
): string => `echo; unset mark; mark=${mark}; mask=$(umask); umask 077
say() { echo "$mark$1"; }
b=${JOBS_DIRECTORY}
e=$(mkdir -p "$b" 2>&1) && cd "$b" || { say "trouble $b cannot be used\${e:+: \${e##*: }}"; exit 0; }
command -v setsid >/dev/null || { say "trouble setsid is missing (util-linux)"; exit 0; }
boot=none; read -r boot </proc/sys/kernel/random/boot_id
full= scanned= room=.room.$boot
lib='${END_FUNCTIONS}'
eval "$lib"
${END_BUNDLE}facts() {
  while read -r n v u; do [ "$n" = MemTotal: ] && break; done </proc/meminfo
  say "host $(nproc) $v"
  { printf %131072s '' >$room && rm -f $room; } 2>/dev/null || unwritable
}
unwritable() {
  full=1
  e=$( { head -c 131072 /dev/zero >$room; } 2>&1 ); rm -f $room 2>/dev/null
  say "trouble $b cannot be written\${e:+: \${e##*: }}"
}
up() { v=; read -r v x </proc/uptime; say "up $v"; }
alive() {
  p=0; { read -r p o t v <"$1/id"; } 2>/dev/null || {
    for f in "$1/run.$boot".*; do [ -e "$f" ] && return 3; done
    return 2
  }
  [ "$o" = "$boot" ] || return 2
  { read -r s <"/proc/$p/stat"; } 2>/dev/null || return 1
  s=\${s##*) }; set -- $s
  [ "$1" != Z ] && [ "\${20}" = "$t" ]
}
ended() {
  [ -f "$1/exit" ] && { read -r c <"$1/exit" && say "$1 exit \${c% boot=$boot}" || coded "$1"; }
}
coded() {
  for f in "$1"/code.*; do [ -e "$f" ] && { say "$1 exit \${f##*.} unwritten"; return; }; done
  return 1
}
last() { ended "$1" || coded "$1" || say "$1 $2"; }
check() {
  ended "$1" && return
  [ -e "$1/claim" ] || { say "$1 none"; return; }
  alive "$1"
  case $? in
    0) [ -e "$1/unlimited" ] && say "$1 begun unlimited at=$v" || say "$1 begun at=$v";;
    2) last "$1" rebooted;;
    3) if [ -n "$(find "$1/claim" -maxdepth 0 -mmin +1)" ]; then last "$1" gone; else say "$1 begun"; fi;;
    *) last "$1" gone;;
  esac
}
start() {
  [ -e "$1/claim" ] && { check "$1"; return; }
  r=$1/run.$boot.$$.$round
  [ -z "$full" ] || { unable "$1"; return; }
  { printf %s "$lib" "$2" >"$r"; } 2>/dev/null || { unwritable; unable "$1"; return; }
  setsid sh "$r" "$1" "$mask" </dev/null >/dev/null 2>&1 &
}
unable() {
  (set -C; : >"$1/claim") 2>/dev/null || return
  true >"$1/code.unable"; true >"$1/exit"; say "$1 exit unable"
}
stop() {
  mkdir -p "$1"
  if (set -C; : >"$1/claim") 2>/dev/null; then echo barred >"$1/exit" || true >"$1/code.barred"
  elif [ ! -f "$1/exit" ] && alive "$1"; then end "$1" "$2"
  fi
  check "$1"
}
trap exit HUP INT TERM PIPE
f=.line.$$.${pipe}; rm -f $f $room 2>/dev/null
reader=
trap 'leave 2>/dev/null' EXIT
if mkfifo $f; then
  while IFS= read -r l; do say "$l"; done <$f &
  reader=$!
  exec 3>$f; rm -f $f
else exec 3>/dev/null
fi
leave() {
  [ -z "$reader" ] || { kill $reader; wait $reader; }
  # Over NFS a file that is open keeps its directory from being empty.
  exec 3>&-
  # Where nothing ran, or all of it was removed, nothing stays.
  cd / && rmdir "$b" "\${b%/*}"
}
`

export type Round = {
  /** Different for each round of a shell. */
  readonly number: number
  readonly orders: readonly BundleOrder[]
  readonly wantsFacts: boolean
  /** Another program to run, whose lines mean nothing here. */
  readonly besides: string
}

/** One compound command: half of it does nothing. What it starts is no child of the shell, which may live long. */
export function formatRound({ number, orders, wantsFacts, besides }: Round): string {
  const started = orders.flatMap(({ kind, key }) => (kind === 'start' ? [key] : []))
  const lines = [
    '(',
    // Another shell removes the directory when it ends and finds it empty. An NFS client asks its server again for what it opens.
    `{ true <"\${b%/*/*}"; true <"\${b%/*}"; } 2>/dev/null`,
    'cd "$b" 2>/dev/null || { mkdir -p "$b" && cd "$b"; } 2>/dev/null || unwritable',
    `round=${number}; up`,
    ...(wantsFacts ? ['facts'] : []),
    // One process makes all directories: processes are what makes starts slow.
    ...(started.length === 0 ? [] : [`mkdir -p ${started.join(' ')} 2>/dev/null || unwritable`]),
    ...orders.map(formatOrder),
    ...(besides === '' ? [] : [`( ${besides} )`]),
    `say ${shellQuote(endLine(number))}`,
    ')',
  ]
  return `${lines.join('\n')}\n`
}

export const endLine = (number: number): string => `end ${number}`

function formatOrder(order: BundleOrder): string {
  switch (order.kind) {
    case 'start':
      return `start ${order.key} ${shellQuote(formatRun(order.run))}`
    case 'check':
      return `check ${order.key}`
    case 'stop':
      return `stop ${order.key} ${order.signal}`
  }
}

/** The copied directory of a job (`--copy-dir`), beside those of bundles. Other paths are relative to the home directory. */
const COPIED = /^\.\.\/[0-9a-f]+-copied-[0-9a-f]+$/

/**
 * The process that creates `claim` runs it. On a full disk, where no line can be written, an empty file carries the exit code in
 * its name. Muster's files are private; the command has the umask of its user.
 */
function formatRun({ command, directory, environment, limits }: BundleRun): string {
  const variables = Object.entries(environment).map(([name, value]) => `export ${name}=${shellQuote(value)}\n`)
  const go = directory === undefined ? 'cd' : `${COPIED.test(directory) ? '' : 'cd && '}cd ${shellQuote(directory)}`
  return `k=$1 m=$2; cd "$k" || exit
set -C; : >claim || exit 0
set +C; u= g= me=; trap : TERM INT HUP PIPE
read -r s </proc/$$/stat; s=\${s##*) }; set -- $s
read -r o </proc/sys/kernel/random/boot_id; v=; read -r v x </proc/uptime
echo "$$ $o \${20} $v" >id || { true >code.unable; true >exit; echo "${NOTICE}$k exit unable" >&3; exit; }
${limits === undefined ? '' : formatLimit(limits)}echo "${NOTICE}$k begun$u at=$v" >&3
( ${limits === undefined ? '' : LIMITED}umask $m; ${variables.join('')}${go} && exec sh -c ${shellQuote(command)} ) >out 2>err </dev/null 3>&-
c=$?; f=; w=; read -r w x </proc/uptime
${END_REST}${limits === undefined ? '' : TELL_MEMORY}case $c in 129|137|143)
  read -r i </proc/1/comm
  [ "$i" = systemd ] && i=$(systemctl is-system-running 2>/dev/null)
  case $i in stopping|systemd-shutdow) c=shutdown;; esac
esac
echo "$c$f at=$v to=$w boot=$o" >exit || { true >code.$c; f=' unwritten'; }
echo "${NOTICE}$k exit $c$f at=$v to=$w" >&3
${limits === undefined ? '' : END_LIMITED}`
}

/** The host's uptime from the line `up SECONDS`. */
export function parseUp(line: string): number | undefined {
  return line.startsWith('up ') ? secondsOf(line.slice('up '.length)) : undefined
}

/** `toMs`: from the host's uptime to this machine's clock. Unknown lines are ignored. */
export function parseHostAnswer(text: string, toMs: (upS: number) => number | undefined = () => undefined): HostAnswer {
  const bundles = new Map<string, SeenBundle>()
  let facts: HostAnswer['facts']
  let trouble: string | undefined
  for (const line of text.split('\n')) {
    const [first = '', second = '', third = '', ...more] = line.split(' ')
    if (first === 'trouble') trouble = line.slice('trouble '.length)
    else if (first === 'host') facts = { cores: countOf(second), memoryBytes: countOf(third) * 1024 }
    else {
      const state = bundleState(second, third, more)
      if (state) bundles.set(first, { ...state, ...timesOf([third, ...more], toMs) })
    }
  }
  return { facts, bundles, trouble }
}

/** No machine has more digits. */
function countOf(word: string): number {
  return /^\d{1,12}$/.test(word) ? Number(word) : 0
}

/** Of an earlier boot only the duration is known. */
function timesOf(words: readonly string[], toMs: (upS: number) => number | undefined): BundleTimes {
  const tell = (name: string) => words.find((word) => word.startsWith(name))?.slice(name.length)
  const [beganS, endedS] = [secondsOf(tell('at=')), secondsOf(tell('to='))]
  const ranMs = beganS === undefined || endedS === undefined ? undefined : Math.round((endedS - beganS) * 1000)
  const beganMs = beganS === undefined || tell('boot=') !== undefined ? undefined : toMs(beganS)
  return { ...(beganMs === undefined ? {} : { beganMs }), ...(ranMs === undefined ? {} : { ranMs }) }
}

function secondsOf(text: string | undefined): number | undefined {
  return text !== undefined && /^\d{1,10}(\.\d{1,6})?$/.test(text) ? Number(text) : undefined
}

function bundleState(word: string, code: string, more: readonly string[]): SeenBundle | undefined {
  const ended = (end: BundleEnd): SeenBundle => ({ kind: 'ended', end })
  switch (word) {
    case 'none':
      return { kind: 'missing' }
    case 'begun':
      return { kind: 'begun', ...(code === 'unlimited' ? { isUnlimited: true } : {}) }
    case 'gone':
      return ended({ kind: 'gone', reason: ENDED_SILENTLY })
    case 'rebooted':
      return ended({ kind: 'gone', reason: 'the host rebooted' })
    case 'exit':
      if (code === 'shutdown') return ended({ kind: 'gone', reason: 'the host was shut down' })
      if (code === 'barred' || code === 'unable') return ended({ kind: code })
      if (!/^\d{1,3}$/.test(code)) return undefined
      return ended({
        kind: 'exit',
        code: Number(code),
        ...(more.includes('unwritten') ? { isUnwritten: true } : {}),
        ...(more.includes('memory') ? { isOutOfMemory: true } : {}),
      })
    default:
      return undefined
  }
}
