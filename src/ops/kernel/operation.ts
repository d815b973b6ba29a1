/**
 * Operations as data: what would bring a host to its declared state. A pure function makes them from the wanted state and the
 * facts; they execute nothing. IDs are `AREA/NAME@HOST`, those of steps `AREA/NAME@HOST/WORD`.
 */
import { defined } from '../../base/defined.ts'
import { clip } from '../../base/text-width.ts'
import type { Known } from './fact.ts'
import type { Finding } from './finding.ts'
import type { FileDelivery } from './host-port.ts'

/**
 * The stdin of a script, in pieces: text, bytes, or the output of another step, such as a key that another host created.
 * The output must be one line that matches `pattern` as a whole; otherwise the step fails before it starts.
 */
export type StdinPart = string | Uint8Array | { readonly output: string; readonly pattern: string }

/** A script of POSIX sh, which other users of the host can see while it runs; secrets go to stdin. */
export type Action = {
  readonly script: string
  readonly stdin?: readonly StdinPart[]
  /** Copied to the host before the script runs, without a time limit. */
  readonly files?: FileDelivery
  readonly asRoot?: boolean
  /** 60,000 unless given. */
  readonly timeoutMs?: number
  /**
   * The same as `script`, for an early start while the step waits for other hosts: it loads what it needs, and changes and prints
   * nothing until it has read a line. It runs in place of `script` unless it has ended by then.
   */
  readonly early?: string
  /** Exit code 0 proves what the check would, so the check does not run again. */
  readonly isProof?: boolean
  /** What it prints goes to the stdin of other steps, and is shown and recorded nowhere. */
  readonly isSecret?: boolean
}

/** Changes nothing; exit code 0 means that it holds. `lack`: what is the case if it does not, with a subject and a verb. Printable. */
export type Check = Omit<Action, 'files' | 'early' | 'isProof' | 'isSecret'> & { readonly lack: string }

export type Step = {
  readonly id: string
  /** An imperative: `create the key ~/.ssh/id_muster`. */
  readonly title: string
  /** Lines as in a diff: `+ added`, `- removed`, `~ changed`. No secrets. */
  readonly changes: readonly string[]
  readonly run: Action
  /** Runs before the step (if it holds, the step is not needed) and after it. */
  readonly check?: Check
  /** Reverts a step that failed halfway, or whose check fails after it. */
  readonly undo?: Action & { readonly title: string }
}

export type Verdict =
  /** Already as declared, or the host `keeper` takes care of it for both; `because` is a sentence without a full stop. */
  | { readonly kind: 'nothing'; readonly because: string; readonly keeper?: string }
  /** `missing`: nothing of it is there; `differs`: something else is. Steps run in this order. */
  | {
      readonly kind: 'steps'
      readonly state: 'missing' | 'differs'
      /** How it differs, if the state alone does not say it. */
      readonly because?: string
      readonly steps: readonly Step[]
    }
  /** It cannot be done now. */
  | { readonly kind: 'blocked'; readonly findings: readonly Finding[] }

export type Operation = {
  readonly id: string
  readonly area: string
  readonly host: string
  /** A noun: `SSH key`, `export of /srv`. */
  readonly title: string
  /** Ids of operations that come first, also on other hosts. Those that are not in the plan are not waited for. */
  readonly after: readonly string[]
  readonly verdict: Verdict
  /** If it fails, the next operations of its host still run. */
  readonly isAlone?: boolean
}

const MOST_CHANGES = 3
const MOST_CHANGE = 60

/** ` (- foo 1.0, ~ bar 1.1 -> 1.2, and 4 more)`; empty if the steps do not name what they change. */
export function changesText(all: readonly Step[]): string {
  const changes = all.flatMap((step) => step.changes)
  const more = changes.length - MOST_CHANGES
  const named = changes.slice(0, MOST_CHANGES).map((change) => clip(change.trim(), MOST_CHANGE))
  return changes.length === 0 ? '' : ` (${[...named, ...(more > 0 ? [`and ${more} more`] : [])].join(', ')})`
}

export function operationId(area: string, name: string, host: string): string {
  return `${area}/${name}@${host}`
}

/** The ids of its steps are words (`make`), which get its own id in front. */
export function operationOf(
  area: string,
  host: string,
  name: string,
  title: string,
  verdict: Verdict,
  after: readonly string[] = [],
): Operation {
  const id = operationId(area, name, host)
  const base = { id, area, host, title, after }
  if (verdict.kind !== 'steps') return { ...base, verdict }
  return { ...base, verdict: { ...verdict, steps: verdict.steps.map((step) => ({ ...step, id: `${id}/${step.id}` })) } }
}

export function nothing(because: string): Verdict {
  return { kind: 'nothing', because }
}

/** The steps that are needed; where none is, there is nothing to do, with this reason. */
export function steps(
  state: 'missing' | 'differs',
  all: readonly (Step | false | undefined)[],
  otherwise = 'it is as declared',
): Verdict {
  const needed = all.filter((step) => step !== undefined && step !== false)
  return needed.length === 0 ? nothing(otherwise) : { kind: 'steps', state, steps: needed }
}

/** `blocked` by one finding. */
export function blockedBy(finding: Finding): Verdict {
  return { kind: 'blocked', findings: [finding] }
}

export function blocked(host: string, id: string, cause: string, hint?: string): Verdict {
  return blockedBy({ host, gravity: 'blocker', id, cause, ...defined({ hint }) })
}

/** The result of `decide` for a known fact; blocked if it is unknown. */
export function ifKnown<T>(host: string, what: string, fact: Known<T>, decide: (value: T) => Verdict): Verdict {
  if (fact.kind === 'known') return decide(fact.value)
  return blocked(host, 'unknown', `cannot determine ${what}: ${fact.because}`)
}

/** Replaces all operations of a host that other hosts cannot reach. */
export function unusableHost(area: string, host: string, cause: string): Operation {
  return operationOf(area, host, 'host', 'the host', blocked(host, 'no-address', cause))
}
