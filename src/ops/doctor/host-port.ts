/** What the doctor needs of a host: commands on a connection that stands. Whoever connects provides it. */

/** How a command came to its end. `lost`: the connection went away; `refused`: it could not be started. */
export type DoctorEnd =
  | { readonly kind: 'exit'; readonly code: number }
  | { readonly kind: 'signal'; readonly signal: string }
  | { readonly kind: 'lost' | 'refused'; readonly reason: string }
  /** The words of `until` arrived, and the channel was closed without waiting for more. */
  | { readonly kind: 'enough' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'cancelled' }

export type CommandResult = {
  readonly stdout: Uint8Array
  readonly stderr: Uint8Array
  readonly end: DoctorEnd
  /** From asking to the end, in milliseconds. */
  readonly durationMs: number
}

export type CommandOptions = {
  readonly timeoutMs: number
  /** Nothing arrives for so long: a timeout, too. */
  readonly silenceMs?: number
  readonly signal: AbortSignal
  /** Written at once; stdin stays open until the channel is closed. */
  readonly stdin?: string
  /** Once stdout contains it, nothing more is waited for. */
  readonly until?: string
}

/** A question and its answer, one line each; times in milliseconds since the epoch by this machine's clock. */
export type Exchange = { readonly answer: string; readonly sentAtMs: number; readonly receivedAtMs: number }

export interface DoctorHost {
  /** Never rejects: what goes wrong is the result's end. */
  exec(command: string, options: CommandOptions): Promise<CommandResult>
  /**
   * Asks one line at a time on one channel: the next question goes out when the one before is answered. Exchange 0 is the
   * first line that begins with `ready`, which the command says by itself; what is printed before is thrown away. Ends
   * early, and never rejects, when no answer comes.
   */
  converse(
    command: string,
    questions: readonly string[],
    options: Omit<CommandOptions, 'until'> & { readonly ready: string },
  ): Promise<readonly Exchange[]>
}
