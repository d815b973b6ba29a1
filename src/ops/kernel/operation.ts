/**
 * Operations as data: what would make a host as it is wanted. An operation is made by a pure function out of what is wanted
 * and the facts, and never executes anything. Ids are `AREA/NAME@HOST`, those of steps `AREA/NAME@HOST/WORD`.
 */
import type { Finding } from './finding.ts'
import type { FileDelivery } from './host-port.ts'

/**
 * What a script reads, in pieces: text, bytes, or what another step printed (a key that is made on another host, say).
 * The output stands in one line and has to match `pattern` whole, or the step fails before it begins.
 */
export type StdinPart = string | Uint8Array | { readonly output: string; readonly pattern: string }

/** A script of POSIX sh, which other users of the host can see while it runs; what is secret goes to stdin. */
export type Action = {
  readonly script: string
  readonly stdin?: readonly StdinPart[]
  /** Brought to the host before the script runs; time is not limited for it. */
  readonly files?: FileDelivery
  readonly asRoot?: boolean
  /** 60,000 unless given. */
  readonly timeoutMs?: number
  /**
   * The same as `script`, to begin before its turn where it waits for other hosts: it loads what it needs, and changes and prints
   * nothing until it has read a line. It runs in place of `script` unless it has ended by then.
   */
  readonly early?: string
  /** Its exit code 0 shows what the check shows, which is not looked at again then. */
  readonly isProof?: boolean
}

/** Reads and changes nothing; exit code 0 means that it is so. */
export type Check = Omit<Action, 'stdin' | 'files' | 'early' | 'isProof'>

export type Step = {
  readonly id: string
  /** What it does, as an order: `make the key ~/.ssh/id_muster`. */
  readonly title: string
  /** The difference that it makes, a line each, as in a diff: `+ added`, `- removed`, `~ changed`. No secret. */
  readonly changes: readonly string[]
  readonly run: Action
  /** Shows that it is done: looked at before (then the step is not needed) and after. */
  readonly check?: Check
  /** Takes it back when it failed half way or the check does not hold after it. */
  readonly undo?: Action & { readonly title: string }
}

export type Verdict =
  /** It is so already, or the host `keeper` sees to it for both; `because` is a sentence without a full stop. */
  | { readonly kind: 'nothing'; readonly because: string; readonly keeper?: string }
  /** `missing`: nothing of it is there; `differs`: something else is. Steps run in this order. */
  | {
      readonly kind: 'steps'
      readonly state: 'missing' | 'differs'
      /** In what it differs, where the state alone does not say it. */
      readonly because?: string
      readonly steps: readonly Step[]
    }
  /** It cannot be done as things are. */
  | { readonly kind: 'blocked'; readonly findings: readonly Finding[] }

export type Operation = {
  readonly id: string
  readonly area: string
  readonly host: string
  /** What it is about, as a noun: `SSH key`, `export of /srv`. */
  readonly title: string
  /** Operations that come before it, also of other hosts. One that is not in the plan has nothing to do and is not waited for. */
  readonly after: readonly string[]
  readonly verdict: Verdict
  /** Its failure ends nothing but itself: what stands behind it on its host runs all the same. */
  readonly isAlone?: boolean
}

export function operationId(area: string, name: string, host: string): string {
  return `${area}/${name}@${host}`
}

/** `blocked` by one finding. */
export function blockedBy(finding: Finding): Verdict {
  return { kind: 'blocked', findings: [finding] }
}
