/**
 * The protocol with a host: a shell of POSIX sh reads functions from its stdin, then one command a round with orders for bundles,
 * and prints lines. Every order may be given twice: a bundle begins by creating the file `claim`, which only one process can, and
 * is identified by boot, process and start time. It survives Muster, and reports its start and end (`+KEY …`) while the shell that
 * started it lives. `true >FILE` creates a file; a failing `: >FILE` would end the shell.
 */

import { OTHER_ACCELERATORS } from '../../base/accelerators.ts'
import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { printable } from '../../base/printable.ts'
import { EACH_STAT, READ_STAT } from '../../base/proc-stat.ts'
import { shellQuote } from '../../base/shell-quote.ts'
import type { Said } from '../launch/launcher.ts'
import { parseRankEnd, RANK_PROGRAM, type RankEnd, TELL_LOST, type UpClock, WHY_FUNCTION } from '../launch/rank.ts'
import { CHECKPOINT, formatCheckpoint } from './checkpoint.ts'
import { type BundleEnd, type BundleTimes, ENDED_SILENTLY, REBOOTED, type SeenBundle } from './job.ts'
import { parseLeft } from './left-running.ts'
import { HELPER_FUNCTIONS, WITHOUT_HELPER } from './start-helper.ts'

export type BundleOrder =
  | { readonly kind: 'start'; readonly key: string; readonly run: BundleRun }
  | { readonly kind: 'check'; readonly key: string }
  /** Runs a program of a launcher, which tells facts (`KEY said NAME VALUE`), unless it runs or ran for this shell. */
  | { readonly kind: 'ask'; readonly key: string; readonly name: string; readonly program: string }
  | { readonly kind: 'stop'; readonly key: string; readonly signal: 'TERM' | 'KILL' }

export type BundleRun = {
  readonly command: string
  readonly directory: string | undefined
  readonly environment: Readonly<Record<string, string>>
  readonly limits?: BundleLimits | undefined
  /**
   * It may tell facts: a line `NAME VALUE` in the file MUSTER_SAY; it may keep files in MUSTER_DIRECTORY. Everything that it started
   * ends with it, and its end says what is left.
   */
  readonly isLaunched?: boolean
}

/** What a bundle of a launcher told: facts that its next steps follow from, and ends of its ranks. */
export type BundleNews = { readonly facts: Said; readonly ranks: readonly RankEnd[] }

export type CapacityFacts = {
  readonly cores: number
  readonly memoryBytes: number
  /** At least 1; undefined: not known. */
  readonly gpus?: number
}

export type HostAnswer = {
  /** Undefined: the host did not report them. */
  readonly facts: CapacityFacts | undefined
  readonly bundles: ReadonlyMap<string, SeenBundle>
  /** What bundles of launchers told, by key. */
  readonly said: ReadonlyMap<string, BundleNews>
  /** What the host says is wrong with itself. */
  readonly trouble: string | undefined
}

export type RoundResult =
  | { readonly kind: 'answer'; readonly text: string }
  | { readonly kind: 'trouble'; readonly reason: string }

/** Bytes of facts that a bundle may tell. */
const MOST_TOLD = 65_536
/** Lines of it in one answer. */
const MOST_TOLD_AT_ONCE = 256
/** Characters of one fact. */
const MOST_FACT = 4096

/** What bundles report begins with it. */
export const NOTICE = '+'

/** A variable of every process of a bundle: its key, which names queue, job, attempt and rank. */
export const MARK = 'MUSTER_BUNDLE'

/** A host that is busy imports a library for a while. */
const QUESTION_S = 60

/**
 * The functions of a shell, sent once by stdin. Each line that it and bundles print begins with the mark, so that nothing
 * else is taken for an answer. Descriptor 3 is a pipe to a reader that passes on what bundles report, so that a bundle
 * keeps no channel open and does not block. Hosts that share a home may use the same process ids, so names contain `pipe`
 * or the boot.
 */
export const formatPrelude = (
  mark: string,
  pipe: string,
): string => `echo; unset mark; mark=${mark}; mask=$(umask); umask 077
say() { printf '%s\\n' "$mark$1"; }
b=${JOBS_DIRECTORY}
e=$(mkdir -p "$b" 2>&1) && cd "$b" || { say "trouble $b cannot be used\${e:+: \${e##*: }}"; exit 0; }
command -v setsid >/dev/null || { say "trouble setsid is missing (util-linux)"; exit 0; }
boot=none; read -r boot </proc/sys/kernel/random/boot_id
full= scanned= room=.room.$boot line=$$.${pipe}
lib='${END_FUNCTIONS}' rest='${REST}' finish='${FINISH}' last='${LAST}' plain=${shellQuote(formatBody({ limits: undefined, isLaunched: false }))}
eval "$lib"
${END_BUNDLE}${HELPER_FUNCTIONS}${COUNT_GPUS}facts() {
  while read -r n v u; do [ "$n" = MemTotal: ] && break; done </proc/meminfo
  n=$(count_gpus); say "host $(nproc) $v\${n:+ $n}"
  { printf %131072s '' >$room && rm -f $room; } 2>/dev/null || unwritable
}
unwritable() {
  full=1
  e=$( { head -c 131072 /dev/zero >$room; } 2>&1 ); rm -f $room 2>/dev/null
  say "trouble $b cannot be written\${e:+: \${e##*: }}"
}
up() { v=; read -r v x </proc/uptime; say "up $v"; }
identified() { { [ -f "$1/id" ] && read -r p o t v <"$1/id"; } 2>/dev/null; }
alive() {
  p=0; identified "$1" || {
    for f in "$1/run.$boot".*; do [ -e "$f" ] && return 3; done
    # Meanwhile that file may have been renamed to id.
    identified "$1" || return 2
  }
  [ "$o" = "$boot" ] || return 2
  read_stat "/proc/$p/stat" || return 1
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
unanswered() {
  e=$(tail -n 1 "$a.err" | tr -cd ' -~' | cut -c 1-200)
  [ $1 != 124 ] || e="no answer within ${QUESTION_S} s"
  printf 'refuse the preflight failed: %s\\n' "\${e:-exit $1}"
}
ask() {
  mkdir -p "$1"; a=$1/asked.$2
  [ -e "$1/claim" ] || [ "$(cat "$a" 2>/dev/null)" = $$ ] && return
  echo $$ >"$a" || return
  {
    { printf '%s\\n' "$3" | timeout ${QUESTION_S} sh 2>"$a.err" || unanswered $?; } |
      while IFS= read -r l; do [ \${#l} -gt ${MOST_FACT} ] || printf '%s\\n' "${NOTICE}$1 said $l" >&3; done
  } </dev/null >/dev/null 2>&1 ${WITHOUT_HELPER} &
}
heard() {
  n=0; [ ! -f "$1/heard.$line" ] || read -r n <"$1/heard.$line"
  case $n in ""|*[!0-9]*) n=0;; esac
  head -c ${MOST_TOLD} "$1/said" | tail -n +$((n + 1)) | head -n ${MOST_TOLD_AT_ONCE} | {
    m=$n; while IFS= read -r l; do say "$1 said $l"; m=$((m + 1)); done
    [ $m = $n ] || echo $m >"$1/heard.$line"
  }
}
check() {
  [ ! -f "$1/said" ] || heard "$1"
  ended "$1" && return
  [ -e "$1/claim" ] || { say "$1 none"; return; }
  alive "$1"
  case $? in
    0) [ -e "$1/unlimited" ] && say "$1 begun unlimited at=$v" || say "$1 begun at=$v";;
    2) last "$1" rebooted;;
    3) if [ -n "$(find "$1/claim" -maxdepth 0 -mmin +1)" ]; then last "$1" gone; else say "$1 begun"; fi;;
    *) gone "$1";;
  esac
}
gone() {
  [ -e "$1/launched" ] || { last "$1" gone; return; }
  swept_away "$1" || { say "$1 said failed gone"; say "$1 begun"; return; }
  last "$1" "gone\${left:+ left=$left}"
}
make() { mkdir -p "$@" 2>/dev/null || unwritable; }
start() {
  [ -e "$1/claim" ] && { check "$1"; return; }
  [ -z "$full" ] || { unable "$1"; return; }
  helped && { hand_over "$@"; return; }
  start_here "$@"
}
start_here() {
  [ -d "$1" ] || make "$1"
  r=run.$boot.$$.$round
  { printf %s "$2" "\${3:-$plain}" "$lib" "$rest" >"$1/$r"; } 2>/dev/null || { unwritable; unable "$1"; return; }
  setsid sh "$1/$r" "$1" "$mask" </dev/null >/dev/null 2>&1 ${WITHOUT_HELPER} &
}
unable() {
  mkdir -p "$1"; (set -C; : >"$1/claim") 2>/dev/null || return
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
f=.line.$line; rm -f $f $room 2>/dev/null
reader=
trap 'leave 2>/dev/null' EXIT
if mkfifo $f $f.starts $f.answers; then
  while IFS= read -r l; do say "$l"; done <$f &
  reader=$!
  exec 3>$f; hire $f.starts $f.answers 2>/dev/null; rm -f $f $f.*
else exec 3>/dev/null
fi
leave() {
  [ -z "$reader" ] || { kill $reader; wait $reader; }
  # Over NFS a file that is open keeps its directory from being empty.
  exec 3>&-; dismiss
  # Where nothing ran, or all of it was removed, nothing stays.
  cd / && rmdir "$b" "\${b%/*}"
}
`

/**
 * Prints how many GPUs NVIDIA's driver lists. Prints nothing if it lists none, if there are accelerators of another maker, or if a GPU
 * is divided (MIG): hosts.yaml may then declare another number. Hosts of the demo and of tests share /proc and /dev with this machine,
 * so they look below MUSTER_HARDWARE instead.
 */
const COUNT_GPUS = `count_gpus() {
  cd "\${MUSTER_HARDWARE:-/}" || return
  for f in proc/driver/nvidia/capabilities/gpu*/mig/gi* ${OTHER_ACCELERATORS.map((name) => `dev/${name}`).join(' ')}; do
    [ ! -e "$f" ] || return
  done
  set -- proc/driver/nvidia/gpus/*
  [ ! -e "$1" ] || echo $#
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

/** One compound command: half of it does nothing. */
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
    ...(started.length === 0 ? [] : [`helped || make ${started.join(' ')}`]),
    ...orders.map(formatOrder),
    ...(started.length === 0 ? [] : ['settle']),
    ...(besides === '' ? [] : [`( ${besides} )`]),
    `say ${shellQuote(endLine(number))}`,
    ')',
  ]
  return `${lines.join('\n')}\n`
}

export const endLine = (number: number): string => `end ${number}`

function formatOrder(order: BundleOrder): string {
  if (order.kind === 'start') return `start ${order.key} ${formatRun(order.key, order.run)}`
  if (order.kind === 'ask') return `ask ${order.key} ${shellQuote(order.name)} ${shellQuote(order.program)}`
  return `${order.kind} ${order.key}${order.kind === 'stop' ? ` ${order.signal}` : ''}`
}

/** The copied directory of a job (`--copy-dir`), beside those of bundles. Other paths are relative to the home directory. */
const COPIED = /^\.\.\/[0-9a-f]+-copied-[0-9a-f]+$/

/** For a question, which begins beside the directories of bundles. */
export function enterDirectory(directory: string | undefined): string {
  if (directory === undefined) return 'cd || exit\n'
  const words = shellQuote(`refuse the directory ${directory} is not there`)
  const go = COPIED.test(directory)
    ? `cd ${shellQuote(directory.slice('../'.length))}`
    : `cd && cd ${shellQuote(directory)}`
  return `{ ${go}; } 2>/dev/null || { echo ${words}; exit; }\n`
}

/**
 * Two programs, each as a word for sh: one that defines `go`, which becomes the command, and one that calls it (empty: `plain`).
 * The helper reads the first one of a plain bundle without a shell: only the variables and the last three words are quoted in it.
 */
function formatRun(key: string, run: BundleRun): string {
  const { command, directory, environment, limits, isLaunched = false } = run
  const checkpoint = formatCheckpoint(environment[CHECKPOINT])
  const variables = [...Object.entries(environment), [MARK, key]].map(([name, value]) =>
    quoteAlways(`${name}=${value}`),
  )
  const place = [directory !== undefined && COPIED.test(directory) ? 'here' : 'home', directory ?? '']
  const begin = ['begin', ...[...place, command].map(quoteAlways)].join(' ')
  const go = `go() { export ${variables.join(' ')}; ${checkpoint}${begin}; }\n`
  const isPlain = !isLaunched && limits === undefined && checkpoint === ''
  return `${shellQuote(go)} ${isPlain ? "''" : shellQuote(formatBody({ limits, isLaunched }))}`
}

const quoteAlways = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

/**
 * The process that creates `claim` runs the command. On a full disk an empty file carries the exit code in its name. Muster's files
 * are private; the command has the umask of its user.
 */
function formatBody({ limits, isLaunched }: Pick<BundleRun, 'limits'> & { readonly isLaunched: boolean }): string {
  const isGrouped = isLaunched || limits !== undefined
  return `begin() { { [ "$1" = here ] || cd; } && { [ -z "$2" ] || cd "$2"; } && exec sh -c "$3"; }
k=$1 m=$2; cd "$k" || exit
set -C; : >claim || exit 0
set +C; u= g= me= listener= left= launched=${isLaunched ? 1 : ''} limited=${limits === undefined ? '' : 1}; trap : TERM INT HUP PIPE
read -r s </proc/$$/stat; s=\${s##*) }; set -- $s
read -r o </proc/sys/kernel/random/boot_id; v=; read -r v x </proc/uptime
echo "$$ $o \${20} $v" >id || { true >code.unable; true >exit; echo "${NOTICE}$k exit unable" >&3; exit; }
${isGrouped ? GROUP : ''}${limits === undefined ? '' : formatLimit(limits)}echo "${NOTICE}$k begun$u at=$v" >&3
${isLaunched ? SAY : ''}( ${isGrouped ? ENTER_GROUP : ''}umask $m; go ) >>out 2>>err </dev/null 3>&-${isLaunched ? ' 9>&-' : ''}
c=$?; w=; read -r w x </proc/uptime
${isLaunched ? TELL_FAILED : ''}${isGrouped ? formatFinish(isLaunched ? SAID : '', KILL_GROUP, REMOVE_GROUP) : `${FINISH}for f in term.*; do [ -e "$f" ] || finish; done\n`}`
}

/** Tells how the bundle ended, as the last thing it does. */
function formatFinish(said: string, kill: string, remove: string): string {
  return `finish() {
f=${said}
${kill}case $c in 129|137|143)
  read -r i </proc/1/comm
  [ "$i" = systemd ] && i=$(systemctl is-system-running 2>/dev/null)
  case $i in stopping|systemd-shutdow) c=shutdown;; esac
esac
left=\${left:+ left=$left}
echo "$c$f at=$v to=$w$left boot=$o" >exit || { true >code.$c; f=" unwritten"; }
echo "${NOTICE}$k exit $c$f at=$v to=$w$left" >&3
${remove}exit
}
`
}

/** The host's uptime from the line `up SECONDS`. */
export function parseUp(line: string): number | undefined {
  return line.startsWith('up ') ? secondsOf(line.slice('up '.length)) : undefined
}

/** Unknown lines are ignored. */
export function parseHostAnswer(text: string, clock: UpClock = UNKNOWN_CLOCK): HostAnswer {
  const bundles = new Map<string, SeenBundle>()
  const said = new Map<string, { facts: Record<string, string>; ranks: RankEnd[] }>()
  let facts: HostAnswer['facts']
  let trouble: string | undefined
  for (const line of text.split('\n')) {
    const [first = '', second = '', third = '', ...more] = line.split(' ')
    if (first === 'trouble') trouble = line.slice('trouble '.length)
    else if (first === 'host') {
      const gpus = gpuCountOf(more[0] ?? '')
      facts = { cores: countOf(second, 5), memoryBytes: countOf(third, 12) * 1024, ...defined({ gpus }) }
    } else if (second === 'said') {
      const own = getOrMake(said, first, () => ({ facts: {}, ranks: [] }))
      const end = third === 'rank' ? parseRankEnd(more, clock) : undefined
      if (end !== undefined) own.ranks.push(end)
      // The first one counts; a name is one of Muster's own, or of an agent's host.
      else if (/^[\w.:-]{1,300}$/.test(third) && !Object.hasOwn(own.facts, third))
        own.facts[third] = printable(more.join(' '))
    } else {
      const state = bundleState(second, third, more)
      if (state === undefined) continue
      const words = [third, ...more]
      const left = state.kind === 'ended' ? parseLeft(words) : undefined
      bundles.set(first, { ...state, ...timesOf(words, clock), ...defined({ left }) })
    }
  }
  return { facts, bundles, said, trouble }
}

const UNKNOWN_CLOCK: UpClock = { toMs: () => undefined, errorMs: undefined }

/** 0 for anything but a number of so many digits at most: no machine has more. */
function countOf(word: string, digits: number): number {
  return /^\d+$/.test(word) && word.length <= digits ? Number(word) : 0
}

/** Undefined for anything but a plausible number: then the declared number counts. */
function gpuCountOf(word: string): number | undefined {
  return /^[1-9]\d{0,2}$/.test(word) ? Number(word) : undefined
}

/** Of an earlier boot only the duration is known. */
function timesOf(words: readonly string[], clock: UpClock): BundleTimes {
  const tell = (name: string) => words.find((word) => word.startsWith(name))?.slice(name.length)
  const [beganS, endedS] = [secondsOf(tell('at=')), secondsOf(tell('to='))]
  const ranMs = beganS === undefined || endedS === undefined ? undefined : Math.round((endedS - beganS) * 1000)
  const beganMs = beganS === undefined || tell('boot=') !== undefined ? undefined : clock.toMs(beganS)
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
      return ended({ kind: 'gone', reason: REBOOTED })
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

export type BundleLimits = { readonly memoryBytes: number; readonly cpuMilli: number }

/** `cpu.weight` of one core; the kernel takes 1 to 10,000. */
const CORE_WEIGHT = 100
const MOST_WEIGHT = 10_000

/**
 * A cgroup (version 2) for a bundle that is launched or has a memory limit: sets `g` to its directory, or to nothing where there can
 * be none. The command runs in the group `main` below it, because a group without processes of its own can delegate its controllers,
 * as container engines do. Another bundle may just remove the directory of all groups, as it is empty.
 */
const GROUP = `group() {
  while read -r x y t z; do [ "$t" = cgroup2 ] && break; done </proc/mounts
  [ "$t" = cgroup2 ] && [ -w "$y/cgroup.procs" ] || return
  g=$y/muster/$k; mkdir -p "$g/main" || mkdir -p "$g/main" || return
  echo "$g" >cgroup || { rmdir "$g/main" "$g"; return 1; }
}
group 2>/dev/null || g=
`

/** Limits the group `g`, or sets `u` to ` unlimited`; a group without limits is of use to launched bundles alone. */
function formatLimit({ memoryBytes, cpuMilli }: BundleLimits): string {
  const weight = Math.min(MOST_WEIGHT, Math.max(1, Math.round((cpuMilli * CORE_WEIGHT) / 1000)))
  return `limit() {
  [ -n "$g" ] && read -r x <"$y/cgroup.controllers" || return
  case " $x " in *" memory "*) ;; *) return 1;; esac
  for x in "$y" "$y/muster"; do echo +memory >"$x/cgroup.subtree_control"; echo +cpu >"$x/cgroup.subtree_control"; done
  echo ${memoryBytes} >"$g/memory.max" || return
  echo 1 >"$g/memory.oom.group"; echo 0 >"$g/memory.swap.max"; echo ${weight} >"$g/cpu.weight"; :
}
limit 2>/dev/null || {
  u=' unlimited'; true >unlimited
  [ -n "$launched" ] || [ -z "$g" ] || { rmdir "$g/main" "$g"; rm -f cgroup; g=; }
} 2>/dev/null
`
}

/**
 * Facts that the command tells go to the file `said`, for those who ask later, and to whoever listens now, if anybody still does. The
 * listener has the bundle's mark, as it would otherwise outlive a bundle whose first process is killed. In some shells `echo` turns a
 * backslash and an n into a new line, which could pass for a report of another bundle.
 */
const SAY = `true >launched; mkfifo say; [ ! -p say ] || exec 9<>say
${MARK}=$k sh -c 'trap "" TERM INT HUP PIPE; n=0; while IFS= read -r l && [ "$l" != . ]; do
n=$((n + \${#l} + 64)); [ $n -gt ${MOST_TOLD} ] || { printf "%s\\n" "$l" >>said; printf "%s\\n" "${NOTICE}$1 said $l" >&3; }
done 2>/dev/null' listener "$k" <&9 9>&- & listener=$!
printf '%s\\n' ${shellQuote(RANK_PROGRAM)} >rank
export MUSTER_DIRECTORY="$PWD" MUSTER_SAY="$PWD/say"
`

/** The others are stopped at once, while it ends what the command left. */
const TELL_FAILED = `[ $c = 0 ] || { echo "failed $c" >>said; echo "${NOTICE}$k said failed $c" >&3; }
`

/** What was told before the command ended is passed on before its end. */
const SAID = `
${WHY_FUNCTION}{ [ $c = 0 ] || printf 'why %s\\n' "$(why err $c)"; echo .; } >&9; exec 9>&-; wait $listener; rm -f say
{ ${TELL_LOST}} 2>/dev/null | while IFS= read -r l; do echo "$l" >>said; echo "${NOTICE}$k said $l" >&3; done`

/** What comes after it is inside. */
const ENTER_GROUP = `[ -z "$g" ] || { echo 0 >"$g/main/cgroup.procs"; } 2>/dev/null || [ -z "$limited" ] || true >unlimited
`

/** After the command, whose exit code is `c`: kills what it left running and tells whether memory ran out. */
const KILL_GROUP = `[ -z "$g" ] || {
  [ $c = 0 ] || while read -r x y; do [ "$x" = oom_kill ] && [ "$y" != 0 ] && f=' memory'; done <"$g/memory.events"
  echo 1 >"$g/cgroup.kill"
} 2>/dev/null
`

/** At the very end: removes the directories once the last process in them is gone. */
const REMOVE_GROUP = `[ -z "$g" ] || for x in 1 2 3 4 5 6 7 8 9; do
  ungroup; [ -d "$g" ] || break; sleep 0.2
done
`

/** Processes that a host names of those that are left. */
const MOST_NAMED = 8
/** In hundredths of a second after TERM: a little less than the 10 s of the order; the first process is killed last. */
const KILL_AFTER = 990
const KILL_FIRST_AFTER = 1500
/** The same for what a launched bundle left running when it ended by itself. */
const KILL_LEFT_AFTER = 500

/** Of each environment: a process can make its own as large as its memory. */
const MOST_ENVIRONMENT = 131_072

/**
 * How a bundle is stopped: each process gets TERM once and KILL 10 s later. A bundle is its session or process group, its descendants, the
 * processes of the first TERM that still live, its cgroup, and the user's processes whose environment holds its mark; `k` is its key,
 * `p` its first process or empty, `g` its cgroup or empty. One reading of all environments finds whose mark is where; as a process
 * can write anything there, each that nothing else has found is then read alone. `blind`: they could not be read.
 *
 * The name of the file `term.TIME` holds the time of TERM, so that it fits on a full disk; the job may create such files itself, so
 * an impossible time is ignored (`marked`). `q`: the process group that got TERM as a whole. The text contains no apostrophe.
 * Only numbers are evaluated, as processes may have any name.
 */
const END_FUNCTIONS = `${READ_STAT}state() {
  case $1 in ""|*[!0-9]*) return 1;; esac
  read_stat "/proc/$1/stat"
  set -- \${s##*) }
  parent=$2 group=$3 session=$4 born=\${20}
  case $1 in ""|Z|X) return 1;; esac
  case $parent,$session,$born in ,*|*,,*|*,|*[!0-9,]*) return 1;; esac
}
now() { read -r x y </proc/uptime; up=$((\${x%.*} * 100 + 1\${x#*.} - 100)); }
marked() {
  at=\${1##*term.}
  case $at in ""|0?*|*[!0-9]*) return 1;; esac
  [ -e "$1" ] && [ "$at" -le "$up" ]
}
scan() {
  own= blind=
  eval "$(cat /proc/[0-9]*/stat 2>/dev/null | LC_ALL=C awk "
    function add(group) { of[group] = of[group] \\" \\" pid }
    ${EACH_STAT.replace(/[$"]/g, '\\$&')}
    stat[1] !~ /[ZX]/ && pid stat[2] stat[3] stat[4] ~ /^[0-9]+\\$/ {
      kids[stat[2]] = kids[stat[2]] \\" \\" pid; add(stat[4]); if (stat[3] != stat[4]) add(stat[3])
    }
    END {
      for (n in kids) print \\"kids_\\" n \\"=\\\\\\"\\" kids[n] \\"\\\\\\"\\"
      for (n in of) print \\"of_\\" n \\"=\\\\\\"\\" of[n] \\"\\\\\\"\\"
    }")"
  for f in /proc/[0-9]*; do [ -O "$f" ] && own="$own \${f#/proc/}/environ"; done
  marks=$(export LC_ALL=C; cd /proc && echo $own | xargs head -v -c ${MOST_ENVIRONMENT} | tr "\\000" "\\n" | awk "
    /^==> [0-9]+.environ <==\\$/ { n = substr(\\$0, 5) + 0; next }
    n && length(\\$0) < 120 && /^${MARK}=[0-9a-z-]+\\$/ { print substr(\\$0, ${MARK.length + 2}) \\":\\" n }
    END { if (n) print \\"read\\" }")
  case $marks in *read) ;; *) blind=1;; esac
}
follow() {
  while set -- $more && [ $# -gt 0 ]; do
    more=
    for n; do
      case "$r " in *" $n "*) continue;; esac
      state "$n" || continue
      [ "$n" = "$p" ] || [ "$n" = "$me" ] || [ "$n" = "$listener" ] || r="$r $n"
      eval "more=\\"\\$more \\$kids_$n\\""
    done
  done
}
members() {
  r=; more=
  for f in "$1"/term.*; do
    [ -f "$f" ] && { while read -r n x; do state "$n" && [ "$born" = "$x" ] && more="$more $n"; done <"$f"; } 2>/dev/null
  done
  [ -z "$g" ] || more="$more $(find "$g" -name cgroup.procs -exec cat {} + 2>/dev/null)"
  [ -z "$p" ] || eval "more=\\"$p \\$of_$p \\$more\\""
  follow
  for x in $marks; do
    case $x in "$k":*) n=\${x#*:};; *) continue;; esac
    case "$r " in *" $n "*) continue;; esac
    head -c ${MOST_ENVIRONMENT} "/proc/$n/environ" 2>/dev/null | grep -q -z -x -F "${MARK}=$k" && more="$more $n"
  done
  follow
}
listed() { for n in $r; do state "$n" && echo "$n $born"; done; }
tell() {
  told=; [ -f "$1/told" ] || { [ -e "$1/told" ] && return; true >"$1/told"; }
  while read -r n; do told="$told $n"; done <"$1/told"
  for n in $r; do
    state "$n" && [ "$group" != "$q" ] || continue
    case "$r " in *" $parent "*) continue;; esac
    case "$told " in *" $n:$born "*) ;; *) echo "$n:$born" >>"$1/told" && kill -TERM "$n";; esac
  done
} 2>/dev/null
name_left() {
  set -- $r; left=$# i=0
  [ -n "$1$blind" ] || return
  [ -n "$1" ] || left=
  for n; do
    i=$((i + 1)); [ $i -le ${MOST_NAMED} ] || break
    x=; { read -r x <"/proc/$n/comm"; } 2>/dev/null
    x=$(printf %s "$x" | LC_ALL=C tr -c "A-Za-z0-9._+-" _)
    left=$left,$n:\${x:-_}
  done
}
ungroup() {
  [ -z "$g" ] || { find "$g" -depth -type d -exec rmdir {} \\; ; rmdir "\${g%/*}"; } 2>/dev/null
}
rest() {
  now; since=$up late=${KILL_AFTER} q=$p
  for f in ./term.* ""; do marked "$f" && break; done || at=
  [ -n "$at$launched" ] || return
  true >resting
  while :; do
    # An order that came at the same moment may kill the reader.
    r=$(trap "" TERM; read -r me x </proc/self/stat; scan; members .; [ -z "$at" ] || tell .; echo \${blind:-0} $r) || r=again
    now
    [ $((up - since)) -lt ${KILL_FIRST_AFTER} ] || break
    if [ "$r" = again ]; then sleep 0.2 || sleep 1; continue; fi
    [ -n "\${r#[01]}" ] || break
    [ -n "$at" ] || {
      at=$up late=${KILL_LEFT_AFTER} q= r=\${r#[01]}
      listed >"term.$up"; continue
    }
    [ $((up - at)) -lt $late ] || { [ -z "$g" ] || echo 1 >"$g/cgroup.kill"; kill -KILL \${r#[01]}; }
    sleep 0.2 || sleep 1
  done
  case $r in [1a]*) blind=1;; *) blind=;; esac
  r=\${r#again} r=\${r#[01]}
  [ -z "$launched" ] || name_left
} 2>/dev/null
`

/** What follows these functions in the program of a bundle. One that nobody stops does not read as far. */
const REST = `p=$$; rest; finish
`

/**
 * For the host's shell; all processes are read once a round. `end KEY SIGNAL`, with `p` from `alive`: a bundle that got no signal
 * yet gets TERM, even when a late order says KILL. Where no mark can be made, the order alone decides. Once the command has ended,
 * the bundle's first process does the rest itself. As the job may have written to its directory, only its own cgroup is touched.
 * `swept_away KEY`: ends what a launched bundle has left behind whose first process was killed; its number may be another process's
 * by now.
 */
const END_BUNDLE = `me= listener=
end() {
  case $p in *[!0-9]*) return;; esac
  k=$1 q=$p late=${KILL_AFTER}
  g=; { [ -f "$1/cgroup" ] && read -r g <"$1/cgroup"; } 2>/dev/null
  case $g in *..*) g=;; */muster/"$1") ;; *) g=;; esac
  now
  for f in "$1"/term.* ""; do marked "$f" && break; done || at=
  if [ -z "$p" ]; then late=${KILL_LEFT_AFTER}
  elif [ -e "$1/resting" ]; then
    [ "$2" = TERM ] || [ $((up - \${at:-$up})) -lt ${2 * KILL_FIRST_AFTER} ] || kill -KILL "-$p"
    return
  fi
  [ -n "$scanned" ] || { scan; scanned=1; }
  if [ -z "$at" ] && { { true >"$1/term.$up"; } 2>/dev/null || [ "$2" = TERM ]; }; then
    # It has ended meanwhile, and its first process may run another bundle by now.
    [ -z "$p" ] || [ ! -f "$1/exit" ] || return
    members "$1"
    listed >"$1/term.$up"
    tell "$1"
    [ -z "$p" ] || kill -TERM "-$p"
  elif [ "$2" = KILL ] && [ $((up - \${at:-0})) -ge $late ]; then
    [ -z "$g" ] || echo 1 >"$g/cgroup.kill"
    members "$1"
    [ -z "$r" ] || kill -KILL $r
    [ -z "$p" ] || [ $((up - \${at:-0})) -lt ${KILL_FIRST_AFTER} ] || kill -KILL "-$p"
  else
    members "$1"
    [ -n "$p" ] && [ -e "$1/resting" ] || tell "$1"
  fi
} 2>/dev/null
swept_away() {
  p=; end "$1" KILL
  [ -z "$r" ] || {
    [ $((up - \${at:-$up})) -ge ${KILL_FIRST_AFTER} ] || return
    # Some of them may have got KILL only now.
    sleep 0.2 || sleep 1
    r=$(listed | while read -r n x; do echo $n; done)
  }
  name_left; ungroup; return 0
}
`

const FINISH = formatFinish('', '', '')

/** For the helper, with the functions above: what is left to do for a bundle whose command has ended by a signal or was stopped. */
const LAST = `k=$1 p=$$ c=$2 v=$3 w=$4 o=$5 g= me= listener= left= launched=; trap : TERM INT HUP PIPE
rest; finish
`
