/** What a verb is (an entry of the table in `verbs.ts`, and the code that is loaded when it is called), and what it gets: the context and the shared options. */

import type { Readable, Writable } from 'node:stream'
import type { Command } from 'commander'
import type { InventorySource } from '../../inventory/load-inventory.ts'
import type { WarmTransport } from '../../ssh/persist/warm-connections.ts'
import type { OutputSchema } from '../schemas/shape.ts'
import type { HeldConsole } from '../sessions/held-console.ts'

/** Groups of shared options (`options.ts`); help shows those that mean something to the verb. */
export type OptionGroup = 'inventory' | 'exclude' | 'connection' | 'color' | 'confirmation'

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
  /** A verb that reads and prints as it goes: always, or with these options. What others print may be shown in a pager. */
  readonly streams?: true | readonly string[]
  /** It streams, but its exit code matters, too, so it continues when nobody reads its output. */
  readonly outlivesReader?: true
  readonly isHidden?: boolean
  /** It gets the words of its group that name no verb. */
  readonly isDefault?: boolean
  /** Words that a default verb knows: they do not count as misspelt verbs. */
  readonly names?: (source: InventorySource) => Promise<readonly string[]>
  /** The schema of what it prints with --json; without one it takes no --json. */
  readonly output?: () => Promise<OutputSchema>
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

/** With `--json=FIELDS`: the types of lines that have all of the fields, and the fields in the order in which they were given. */
export type FieldSelection = { readonly types: ReadonlySet<string>; readonly fields: readonly string[] }

export type CliContext = {
  readonly stdin: Readable & { readonly isTTY?: boolean; readonly fd?: number }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean }
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingDirectory: string
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal
  readonly now: () => number
  /** With --json=FIELDS: what is left of each line. */
  readonly selection?: FieldSelection | undefined
  /** Set in the process of a console that can outlive its terminal. */
  readonly held?: HeldConsole
  /** Set where the keeper of warm connections does the work of another process, whose streams these are. */
  readonly inKeeper?: WorkInKeeper
  /** `--quiet`: what `output/notices.ts` writes is left out. */
  readonly isQuiet?: boolean
}

export type WorkInKeeper = {
  /** `persist`: as `--persist`, in seconds. */
  connections(persist: number | undefined): WarmTransport
  /** The work begins; before that, nothing of it was printed. */
  accept(): void
  /** The other process does the work itself; what was printed here is dropped. */
  decline(): void
}

/** The options that verbs share. */
export type GlobalOptions = {
  readonly hosts?: string
  readonly json?: boolean
  /** Of --json=FIELDS. */
  readonly jsonFields?: string
  readonly dryRun?: boolean
  readonly exclude?: string
  readonly fanOut?: number
  /** Seconds. */
  readonly connectTimeout?: number
  /** Seconds; for `run` of the command on each host, else of the whole verb. */
  readonly timeout?: number
  /** Seconds that connections stay open after their last use, 0: not at all; undefined: as hosts.yaml says. */
  readonly persist?: number
  readonly color?: 'auto' | 'always' | 'never'
  readonly yes?: boolean
  readonly quiet?: boolean
  /** False: --no-pager. */
  readonly pager?: boolean
  readonly verbose?: boolean
}

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  configuration: 3,
  unreachable: 4,
  incomplete: 5,
  later: 6,
  interrupted: 130,
} as const
