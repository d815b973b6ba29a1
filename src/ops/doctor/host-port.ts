/** What the doctor needs from a host: commands on an open connection. */

/** How a command came to its end. `lost`: the connection went away; `refused`: it could not be started. */
export type DoctorEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'lost' | 'refused'; readonly reason: string }
  /** The text of `until` arrived, and the channel was closed. */
  | { readonly kind: 'enough' }
  /** It printed more than this, and was cut off. */
  | { readonly kind: 'flood'; readonly moreThanBytes: number }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'cancelled' }

export type CommandResult = {
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  readonly end: DoctorEnd
  /** From the request to the end, in milliseconds. */
  readonly durationMs: number
}

export type CommandOptions = {
  readonly timeoutMs: number
  /** Without output for this long, the command times out, too. */
  readonly silenceMs?: number
  readonly signal: AbortSignal
  /** Written at once; stdin stays open until the channel is closed. */
  readonly stdin?: string
  /** The command ends once stdout contains this text. */
  readonly until?: string
}

/** A question and its answer, one line each. Times are milliseconds since the epoch by this machine's clock. */
export type Exchange = { readonly answer: string; readonly sentAtMs: number; readonly receivedAtMs: number }

export interface DoctorHost {
  /** Never rejects: a failure is the `end` of the result. */
  exec(command: string, options: CommandOptions): Promise<CommandResult>
  /**
   * Sends one line at a time on one channel, the next one after the answer. Exchange 0 is the first line that begins with
   * `ready`, which the command prints by itself; earlier output is ignored. Never rejects; ends early without an answer.
   */
  converse(
    command: string,
    questions: readonly string[],
    options: Omit<CommandOptions, 'until'> & { readonly ready: string },
  ): Promise<readonly Exchange[]>
}
