/**
 * Facts about a host, read without changing it. One command reads all facts of a host; a fact that cannot be read is
 * unknown, with the reason.
 */

import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { READ_STAT } from '../../base/proc-stat.ts'
import { formatOutcome, isSuccess, type RunOutcome } from '../run/outcome.ts'
import { MOST_STDERR_BYTES, MOST_STDOUT_BYTES, type OpsHosts, reasonOfResult, type ScriptResult } from './host-port.ts'

export type Fact<T> = {
  /**
   * The body of a POSIX shell function that changes nothing. `limited COMMAND` runs a program that may hang with a time limit;
   * `overdue STATUS` is true if the limit ended it, and then the function returns that status. `tell FILE PREFIX` prints a file,
   * each line after the prefix. stderr is discarded.
   */
  readonly script: string
  /** Sets variables for it (and for others with the same setup): runs once before all facts, and must not hang. */
  readonly before?: string
  /** The output without trailing line breaks. Undefined: it cannot be parsed, and the fact is unknown. Pure. */
  parse(text: string, bytes: Buffer): T | undefined
  /**
   * It uses something that may never answer (a mount of a dead server). Such facts run in parallel and beside the others, and
   * are unknown after 3 s; 2000 bytes of their answers are used. If one of the others hangs, those after it are unknown, too.
   */
  readonly mayHang?: boolean
  /**
   * In place of `script`: parts that may each hang; one whose `when` is false is left out. Their outputs are lines
   * of the answer in any order; parts without output are missing in it.
   */
  readonly parts?: readonly { readonly when: string; readonly script: string }[]
}

export type Known<T> =
  | { readonly kind: 'known'; readonly value: T }
  | { readonly kind: 'unknown'; readonly because: string }

/** The facts that an area asks for, by name. */
export type FactSet<F> = { readonly [K in keyof F]: Fact<F[K]> }

/** Each fact of a set: its value, or why it is unknown. */
export type KnownFacts<F> = { readonly [K in keyof F]: Known<F[K]> }

/** Their answers of one host, which was asked at `atMs` and had answered at `untilMs`: milliseconds since the epoch by this machine's clock. */
export type HostFacts<F> = {
  readonly atMs: number
  readonly untilMs?: number
  readonly facts: KnownFacts<F>
}

export type AnyFacts = Readonly<Record<string, unknown>>

export type Gathered = { readonly kind: 'facts'; readonly host: string; readonly facts: HostFacts<AnyFacts> } | Away

/** It could not be asked, or did not answer in time. */
export type Away = {
  readonly kind: 'away'
  readonly host: string
  readonly outcome: 'unreachable' | 'refused' | 'cancelled'
  readonly reason: string
}

export type GatherOptions = {
  readonly signal: AbortSignal
  /** Random letters and digits that frame the answers of hosts. */
  readonly mark: string
  now(): number
  readonly asRoot?: boolean
  /** Multiplies all time limits, for slow hosts; default 1. */
  readonly limitFactor?: number
}

/** A single program that hangs is killed after this long, where `timeout` or perl can do that. */
export const PROGRAM_LIMIT_S = 3
/** Exit statuses of `timeout` (coreutils 124 and 137, busybox 143) and perl's alarm (142). */
export const STATUSES_OF_LIMIT: readonly number[] = [124, 137, 142, 143]

/** After this a fact that may hang is unknown, and after the second all that have not answered. */
const HANG_LIMIT_S = PROGRAM_LIMIT_S
const SEQUENCE_LIMIT_S = 20
/** Time for the host to report that, and for a slow link. */
const ANSWER_LIMIT_MS = (HANG_LIMIT_S + SEQUENCE_LIMIT_S) * 1000 + 6_000
const HANGING_CHARACTERS = 2000

export function known<T>(value: T): Known<T> {
  return { kind: 'known', value }
}

/** The value, or undefined where it is unknown or was not asked. */
export function knownValue<T>(fact: Known<T> | undefined): T | undefined {
  return fact?.kind === 'known' ? fact.value : undefined
}

/**
 * Asks one host for all of these facts at once. If one of them is answered with more than is read, those behind it are asked
 * once more without it. Never rejects.
 */
export async function gatherFacts(
  hosts: OpsHosts,
  host: string,
  facts: FactSet<AnyFacts>,
  options: GatherOptions,
): Promise<Gathered> {
  const atMs = options.now()
  const first = await ask(hosts, host, facts, options)
  if (first.kind === 'away') return first
  const missed = Object.entries(facts).filter(([name]) => first.missed.includes(name))
  const second = missed.length > 0 ? await ask(hosts, host, Object.fromEntries(missed), options) : undefined
  if (second?.kind === 'away' && second.outcome === 'cancelled') return second
  const answers = { ...first.answers, ...(second?.kind === 'answers' ? second.answers : {}) }
  return { kind: 'facts', host, facts: { atMs, untilMs: options.now(), facts: answers } }
}

type Answers = {
  readonly kind: 'answers'
  readonly answers: KnownFacts<AnyFacts>
  /** Facts behind one whose answer was cut because it was too long. */
  readonly missed: readonly string[]
}

async function ask(
  hosts: OpsHosts,
  host: string,
  facts: FactSet<AnyFacts>,
  { signal, mark, asRoot = false, limitFactor = 1 }: GatherOptions,
): Promise<Answers | Away> {
  const result = await hosts.exec(host, gatherScript(Object.values(facts), mark, limitFactor), {
    timeoutMs: ANSWER_LIMIT_MS * limitFactor,
    signal,
    asRoot,
    isBrief: true,
  })
  return awayBy(host, result.outcome) ?? readAnswers(facts, result, mark, limitFactor)
}

/** Undefined: it was reached. */
export function awayBy(host: string, outcome: RunOutcome): Away | undefined {
  const { kind } = outcome
  if (kind === 'cancelled') return { kind: 'away', host, outcome: kind, reason: 'cancelled' }
  return kind === 'unreachable' || kind === 'refused'
    ? { kind: 'away', host, outcome: kind, reason: outcome.reason }
    : undefined
}

function readAnswers(facts: FactSet<AnyFacts>, result: ScriptResult, mark: string, limitFactor: number): Answers {
  // Latin-1 keeps every byte; each fact gets its answer as text and as bytes.
  const textOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('latin1')
  const sections = sectionsOf(textOf(result.stdout), mark)
  const besides = sectionsOf(textOf(result.stderr), mark)
  const hasAnswered = sections.size + besides.size > 0
  const names = Object.keys(facts)
  const lastBegun = names.findLastIndex((_, index) => sections.has(`f${index}`))
  const missed: string[] = []
  const answers = names.map((name, index): [string, Known<unknown>] => {
    const { parts, mayHang = false } = facts[name] ?? {}
    const isBeside = mayHang || parts !== undefined
    const section =
      parts !== undefined
        ? joined(
            parts.flatMap((_, part) => besides.get(`f${index}-${part}`) ?? []),
            hasAnswered,
          )
        : mayHang
          ? besides.get(`f${index}`)
          : withStatus(sections.get(`f${index}`), sections.get(`s${index}`))
    if (section === undefined) {
      if (!isBeside && isCut(result, 'stdout') && lastBegun >= 0 && index > lastBegun) missed.push(name)
      const because = hasAnswered ? whyIncomplete(result, isBeside ? 'stderr' : 'stdout', limitFactor) : undefined
      return [name, { kind: 'unknown', because: because ?? printable(reasonOfResult(result, formatOutcome)) }]
    }
    if (STATUSES_OF_LIMIT.includes(section.status)) {
      return [name, { kind: 'unknown', because: 'a program on the host hangs' }]
    }
    const bytes = Buffer.from(section.text, 'latin1')
    try {
      const value = facts[name]?.parse(bytes.toString().trimEnd(), bytes)
      if (value !== undefined) return [name, known(value)]
    } catch {
      // The host printed something that the parser does not expect.
    }
    return [name, { kind: 'unknown', because: "could not parse the host's answer" }]
  })
  return { kind: 'answers', answers: Object.fromEntries(answers), missed }
}

const MOST_BYTES = { stdout: MOST_STDOUT_BYTES, stderr: MOST_STDERR_BYTES }

function isCut(result: ScriptResult, stream: 'stdout' | 'stderr'): boolean {
  return result[stream].length >= MOST_BYTES[stream]
}

/** Why a part of the answer is missing. */
function whyIncomplete(result: ScriptResult, stream: 'stdout' | 'stderr', limitFactor: number): string {
  const { outcome, durationMs } = result
  if (isCut(result, stream)) return `it printed more than ${formatBytes(MOST_BYTES[stream])}, and was cut off`
  // The host itself stops what takes too long, and then ends as usual.
  const isLate = outcome.kind === 'timeout' || durationMs >= HANG_LIMIT_S * limitFactor * 1000
  if (isLate) return 'it did not answer in time'
  return isSuccess(outcome) ? 'its answer is incomplete' : `its answer is incomplete (${formatOutcome(outcome)})`
}

/** An answer is complete once its status, which comes after it, has arrived. */
function withStatus(answer: AnswerSection | undefined, end: AnswerSection | undefined): AnswerSection | undefined {
  return answer === undefined || end === undefined ? undefined : { ...answer, status: end.status }
}

function joined(parts: readonly AnswerSection[], hasAnswered: boolean): AnswerSection | undefined {
  return hasAnswered ? { status: 0, text: parts.map(({ text }) => text).join('\n') } : undefined
}

/**
 * The script. Facts that do not hang run one after the other in one process and print as they go. Only answers that are written in
 * one piece may come in parallel: those that may hang are short, and use stderr. A fact that takes too long is stopped with
 * all that it started. The number of processes matters: on some hosts a program takes 20 ms and more to start.
 */
export function gatherScript(facts: readonly Fact<unknown>[], mark: string, limitFactor = 1): string {
  const hangS = Math.ceil(HANG_LIMIT_S * limitFactor)
  const sequenceS = Math.ceil(SEQUENCE_LIMIT_S * limitFactor)
  const before = new Set(facts.flatMap(({ before: own = [] }) => own))
  const functions: string[] = []
  const starts: string[] = []
  const sequence: number[] = []
  for (const [index, { script, mayHang = false, parts }] of facts.entries()) {
    const besides = parts ?? (mayHang ? [{ when: ':', script }] : [])
    for (const [part, { when, script: own }] of besides.entries()) {
      const name = parts === undefined ? `f${index}` : `f${index}-${part}`
      functions.push(`beside_${index}_${part}() {\n${own}\n}`)
      starts.push(`if ${when}; then beside ${name} beside_${index}_${part} & asked="$asked $!"; fi`)
    }
    if (besides.length === 0 && parts === undefined) {
      functions.push(`fact_${index}() {\n${script}\n}`)
      sequence.push(index)
    }
  }
  return `exec 3>&1 4>&2 > /dev/null 2>&1 < /dev/null
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
${[lazyLimitedFunctions(limitFactor), FLATTEN, TELL, ...before].join('\n')}
beside() {
  said=$("$2" 3>&- 4>&-; echo "x$?")
  status=\${said##*x}; said=\${said%x*}
  [ \${#said} -le ${HANGING_CHARACTERS} ] || said=$(printf %.${HANGING_CHARACTERS}s "$said")
  name=$1; flatten; printf '\\n%s\\n' "${mark} $name $status$us$said" >&4
}
answers() {
  next=1
  # A fact that ends its shell takes none of the others along: another shell begins with the one behind it.
  until [ $next -eq 0 ]; do
    (
      trap 'exit $((muster_at + 1))' EXIT
      muster_from=$next muster_at=0
      for muster_fact in ${sequence.join(' ')}; do
        muster_at=$((muster_at + 1))
        [ $muster_at -ge $muster_from ] || continue
        printf '\\n${mark} f%s 0\\n' $muster_fact
        fact_$muster_fact
        printf '\\n${mark} s%s %s\\n' $muster_fact $?
      done
      trap - EXIT
      exit 0
    )
    next=$?
  done
}
${READ_STAT}fell() {
  doomed=' '; before=
  for child; do
    if read_stat "/proc/$child/stat"; then
      s=\${s##*) }; s=\${s#* }
      [ "\${s%% *}" = $$ ] || continue
    elif [ -d /proc/self ]; then continue
    fi
    kill -STOP "$child"; doomed=" $child$doomed"
  done
  [ "$doomed" != ' ' ] || return
  until [ "$doomed" = "$before" ]; do
    before=$doomed
    for stat in /proc/[0-9]*/stat; do
      read_stat "$stat" || continue
      child=\${s%% *}; s=\${s##*) }; s=\${s#* }
      case $doomed in *" $child "*) continue;; esac
      case $doomed in *" \${s%% *} "*) kill -STOP "$child"; doomed=" $child$doomed";; esac
    done
  done
  # Children first: once they are gone, no parent waits any more.
  kill -9 $doomed
}
nap() { sleep $1 & nap=$!; wait $nap; }
${functions.join('\n')}
asked=
${starts.join('\n')}
answers >&3 3>&- 4>&- &
sequence=$!
( trap 'kill $nap; exit' TERM; nap ${hangS}; fell $asked; nap ${sequenceS - hangS}; fell $sequence ) 3>&- 4>&- &
clock=$!
wait $asked $sequence
kill $clock
`
}

/**
 * The parts of a POSIX script that asks many things at once: each runs in the background, so that one that hangs does not delay
 * the others, and each answer follows a line that nothing else on the host prints. It writes no file.
 */

/** `limited COMMAND` runs a program with the time limit, times the factor; `overdue STATUS` is true if the limit ended it. */
export function limitedFunctions(limitFactor = 1): string {
  return `${trial(limitFactor)}\n${OVERDUE}`
}

/** The same for a script that may not need it: the host's way to do it is found on first use. */
export function lazyLimitedFunctions(limitFactor = 1): string {
  return `limited() {\n${trial(limitFactor)}\nlimited "$@"\n}\n${OVERDUE}`
}

function trial(limitFactor: number): string {
  const limitS = Math.ceil(PROGRAM_LIMIT_S * limitFactor)
  return `if timeout -s KILL 1 true; then limited() { timeout -s KILL ${limitS} "$@"; }
elif timeout -t 1 true; then limited() { timeout -t ${limitS} "$@"; }
elif perl -e 1; then limited() { perl -e 'alarm ${limitS}; exec @ARGV' "$@"; }
else limited() { "$@"; }
fi`
}

const OVERDUE = `overdue() { case $1 in ${STATUSES_OF_LIMIT.join(' | ')}) ;; *) return 1 ;; esac; }`

/**
 * `flatten` makes one line of `$said`, for answers that are written in parallel: bash writes its output line by line, so
 * only single lines stay whole. Line breaks become 0x1f and empty lines vanish. Call it in a subshell.
 */
export const FLATTEN = `us='\x1f'; nl='
'
flatten() { set -f; IFS=$nl; set -- $said; IFS=$us; said=$*; }`

/**
 * `tell FILE PREFIX` prints a file with a prefix before each line. A short file needs no process, because starting one is slow on some
 * hosts. The rest of a long one is read by a program, because a shell reads byte by byte.
 */
export const TELL = `tell() {
  {
    lines=0
    while IFS= read -r line; do
      printf '%s%s\\n' "$2" "$line"
      lines=$((lines + 1)); [ $lines -lt 40 ] || { sed "s/^/$2/"; return; }
    done
    [ -z "$line" ] || printf '%s%s' "$2" "$line"
  } < "$1"
}`

const UNIT_SEPARATOR = '\x1f'

export type AnswerSection = { readonly status: number; readonly text: string }

/** The end of an answer. */
export function endMark(mark: string): string {
  return `\n${mark} end 0\n`
}

/** The sections of an answer, whole or cut off: `NAME STATUS`, and the text on the lines below or flattened in the same line. */
export function sectionsOf(answer: string, mark: string): ReadonlyMap<string, AnswerSection> {
  const sections = new Map<string, AnswerSection>()
  for (const section of answer.split(`\n${mark} `).slice(1)) {
    const match = /^([a-z0-9-]+) (\d+)(?:\x1f([^\n]*)|\n([\s\S]*)$)/.exec(section)
    if (match === null) continue
    const [, name = '', status, flat, text = ''] = match
    sections.set(name, { status: Number(status), text: flat?.replaceAll(UNIT_SEPARATOR, '\n') ?? text })
  }
  return sections
}
