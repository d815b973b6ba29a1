/** What a verb is: an entry of the table in `verbs.ts`, and the code that is loaded when it is called. */
import type { Command } from 'commander'

/** Groups of shared options (`options.ts`); help shows those that mean something to the verb. */
export type OptionGroup = 'inventory' | 'exclude' | 'connection' | 'json' | 'color' | 'confirmation'

/**
 * `reads` changes nothing, with or without --dry-run; `changes` takes --dry-run only if it declares it; `plans` shows a plan
 * first, and with --dry-run does no more; `console` stays until the user leaves, and takes no --timeout.
 */
export type Effect = 'reads' | 'changes' | 'plans' | 'console'

export type Verb = {
  /** Verb and object, lower case, no full stop. */
  readonly summary: string
  readonly effect: Effect
  readonly takes: readonly OptionGroup[]
  /** Options with which a verb that reads changes something. */
  readonly changesWith?: readonly string[]
  readonly isHidden?: boolean
  /** Its code, by itself or as the `verb` of a module. */
  load(): Promise<VerbCode | { readonly verb: VerbCode }>
}

export type VerbGroup = { readonly summary: string; readonly verbs: VerbTable }

/** Verbs and groups of verbs by name, in the order of help. */
export type VerbTable = { readonly [name: string]: Verb | VerbGroup }

export type VerbCode = {
  /** Adds its arguments and options. One that is named as a shared option replaces that. */
  define?(command: Command): void
  /** Examples, then notes; shown below the options. */
  readonly help: string
  /** Called with its arguments, its options (the shared ones included) and the context; returns the exit code. */
  readonly run: (...call: never[]) => number | Promise<number>
}
