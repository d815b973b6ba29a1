/**
 * Facts: what is so on a host, read and never changed. All facts of a host come in one command; what did not answer is
 * unknown with the reason, and never a guess.
 */
import { printable } from '../../base/printable.ts'
import { formatOutcome } from '../run/outcome.ts'
import { type ExecResult, type OpsHosts, reasonOfResult } from './host-port.ts'
import { FLATTEN, limitedFunctions, PROGRAM_LIMIT_S, STATUSES_OF_LIMIT, sectionsOf } from './probe-script.ts'

export type Fact<T> = {
  /**
   * The body of a POSIX shell function that only reads. `limited COMMAND` runs a program that may hang under a time limit;
   * `overdue STATUS` tells that it was ended by it, and then that status is to be returned. stderr is thrown away.
   */
  readonly script: string
  /** What was printed, line breaks at the end removed. Undefined: it says nothing, and the fact is unknown. Pure. */
  parse(text: string, bytes: Buffer): T | undefined
  /**
   * It touches what may not answer for ever (a mount of a dead server). Such facts run side by side and beside the others, and
   * are given up after 3 s; of their answers 2000 bytes count. One of the others that hangs takes those after it along.
   */
  readonly mayHang?: boolean
}

export type Known<T> =
  | { readonly kind: 'known'; readonly value: T }
  | { readonly kind: 'unknown'; readonly because: string }

/** The facts that an area asks for, by name. */
export type FactSet<F> = { readonly [K in keyof F]: Fact<F[K]> }

/** Their answers of one host, which was asked at `atMs` and had answered at `untilMs`: milliseconds since the epoch by this machine's clock. */
export type HostFacts<F> = {
  readonly atMs: number
  readonly untilMs?: number
  readonly facts: { readonly [K in keyof F]: Known<F[K]> }
}

export type AnyFacts = Readonly<Record<string, unknown>>

/** What became of asking a host. */
export type Gathered =
  | { readonly kind: 'facts'; readonly host: string; readonly facts: HostFacts<AnyFacts> }
  /** It could not be asked, or did not answer in time. */
  | {
      readonly kind: 'away'
      readonly host: string
      readonly outcome: 'unreachable' | 'refused' | 'cancelled'
      readonly reason: string
    }

export type GatherOptions = {
  readonly signal: AbortSignal
  /** Letters and digits that nothing else on a host prints. */
  readonly mark: string
  now(): number
  /** Where a fact needs it: asks as root. */
  readonly asRoot?: boolean
  /** Multiplies every limit of time, for hosts that are slow; 1 unless given. */
  readonly limitFactor?: number
}

/** After this a fact that may hang is unknown, and after the second all that have not answered. */
const HANG_LIMIT_S = PROGRAM_LIMIT_S
const SEQUENCE_LIMIT_S = 20
/** For the host to say that, and a slow link. */
const ANSWER_LIMIT_MS = (HANG_LIMIT_S + SEQUENCE_LIMIT_S) * 1000 + 6_000
const HANGING_CHARACTERS = 2000

export function known<T>(value: T): Known<T> {
  return { kind: 'known', value }
}

/** The value, or undefined where it is unknown. */
export function knownValue<T>(fact: Known<T>): T | undefined {
  return fact.kind === 'known' ? fact.value : undefined
}

/** Asks one host for all of these facts at once. Never rejects. */
export async function gatherFacts(
  hosts: OpsHosts,
  host: string,
  facts: FactSet<AnyFacts>,
  { signal, mark, now, asRoot = false, limitFactor = 1 }: GatherOptions,
): Promise<Gathered> {
  const atMs = now()
  const names = Object.keys(facts)
  const result = await hosts.exec(host, gatherScript(Object.values(facts), mark, limitFactor), {
    timeoutMs: ANSWER_LIMIT_MS * limitFactor,
    signal,
    asRoot,
  })
  const { outcome } = result
  if (outcome.kind === 'unreachable' || outcome.kind === 'refused') {
    return { kind: 'away', host, outcome: outcome.kind, reason: outcome.reason }
  }
  if (outcome.kind === 'cancelled') return { kind: 'away', host, outcome: 'cancelled', reason: 'cancelled' }
  const answers = readAnswers(facts, names, result, mark)
  return { kind: 'facts', host, facts: { atMs, untilMs: now(), facts: answers } }
}

function readAnswers(facts: FactSet<AnyFacts>, names: readonly string[], result: ExecResult, mark: string) {
  // Latin-1 keeps every byte; each fact gets its own as text and as they are.
  const sections = sectionsOf(Buffer.from(result.stdout).toString('latin1'), mark)
  const why = sections.size === 0 ? printable(reasonOfResult(result, formatOutcome)) : 'it did not answer in time'
  return Object.fromEntries(
    names.map((name, index): [string, Known<unknown>] => {
      const section = sections.get(`f${index}`)
      if (section === undefined || STATUSES_OF_LIMIT.includes(section.status)) {
        return [name, { kind: 'unknown', because: section === undefined ? why : 'a program that was asked hangs' }]
      }
      const bytes = Buffer.from(section.text.replace(/\n$/, ''), 'latin1')
      try {
        const value = facts[name]?.parse(bytes.toString().trimEnd(), bytes)
        if (value !== undefined) return [name, known(value)]
      } catch {
        // A parser that trips over what a host printed knows nothing.
      }
      return [name, { kind: 'unknown', because: 'the answer of the host says nothing about it' }]
    }),
  )
}

/**
 * The script. Only answers that are written in one piece may come side by side, so the facts that may hang are short and go
 * through a pipe of their own, and the others follow each other in one process. What is given up is ended with all that it
 * started.
 */
export function gatherScript(facts: readonly Fact<unknown>[], mark: string, limitFactor = 1): string {
  const limitS = (seconds: number) => Math.ceil(seconds * limitFactor)
  const functions = facts.map(({ script }, index) => `fact_${index}() {\n${script}\n}`)
  const names = (isHanging: boolean) =>
    facts.flatMap(({ mayHang = false }, index) => (mayHang === isHanging ? [String(index)] : []))
  const hanging = names(true)
  const besides = (some: readonly string[]) => `exec 3>&1 > /dev/null; asked=
for fact in ${some.join(' ')}; do answer $fact short & asked="$asked $!"; done
within ${limitS(HANG_LIMIT_S)} $asked`
  return `exec 3>&1 > /dev/null 2>&1 < /dev/null
LC_ALL=C; export LC_ALL
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin; export PATH
${limitedFunctions(limitFactor)}
${FLATTEN}
answer() {
  said=$("fact_$1" 3>&-; echo "x$?")
  status=\${said##*x}; said=\${said%x*}
  if [ "$2" = whole ]; then printf '\\n${mark} f%s %s\\n%s\\n' "$1" "$status" "$said" >&3
  else
    fact=f$1; said=$(printf %.${HANGING_CHARACTERS}s "$said"); flatten
    printf '\\n%s\\n' "${mark} $fact $status$us$said" >&3
  fi
}
fell() {
  doomed=" $* "; before=
  kill -STOP "$@"
  until [ "$doomed" = "$before" ]; do
    before=$doomed
    for stat in /proc/[0-9]*/stat; do
      read -r words < "$stat" || continue
      child=\${words%% *}; words=\${words##*) }; words=\${words#* }
      case $doomed in *" $child "*) continue;; esac
      case $doomed in *" \${words%% *} "*) kill -STOP "$child"; doomed="$doomed$child ";; esac
    done
  done
  kill -9 $doomed
}
within() {
  limit=$1; shift
  ( trap 'kill $clock; exit' TERM; sleep $limit 3>&- & clock=$!; wait $clock; fell "$@" ) 3>&- &
  limit=$!
  wait "$@"
  kill $limit
}
${functions.join('\n')}
( for fact in ${names(false).join(' ')}; do answer $fact whole; done ) &
sequence=$!
${hanging.length === 0 ? '' : `said=$(${besides(hanging)})\n`}within ${limitS(SEQUENCE_LIMIT_S)} $sequence
${hanging.length === 0 ? '' : `printf %s "$said" >&3\n`}printf '\\n${mark} end 0\\n' >&3
`
}
