/** What every verb gets from `main.ts`, so that tests can pass streams and an environment of their own. */
import type { Readable, Writable } from 'node:stream'

export type CliContext = {
  readonly stdin: Readable & { readonly isTTY?: boolean }
  readonly stdout: Writable & { readonly isTTY?: boolean; readonly columns?: number; readonly rows?: number }
  readonly stderr: Writable & { readonly isTTY?: boolean }
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly workingDirectory: string
  /** Aborted by the first SIGINT, SIGTERM or SIGHUP. */
  readonly signal: AbortSignal
  readonly now: () => number
}

/** The options that verbs share. */
export type GlobalOptions = {
  readonly hosts?: string
  readonly json?: boolean
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
  readonly verbose?: boolean
}

export const EXIT = {
  ok: 0,
  failed: 1,
  usage: 2,
  configuration: 3,
  unreachable: 4,
  incomplete: 5,
  interrupted: 130,
} as const
