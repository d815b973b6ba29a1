/** A port for programs in pseudo-terminals: `terminal` implements it, and `ssh` gets it as a function. */

export type PtyOptions = {
  readonly file: string
  readonly args: readonly string[]
  readonly columns: number
  readonly rows: number
  readonly term: string
  /** The whole environment of the program. */
  readonly environment: Readonly<Record<string, string>>
  readonly directory?: string
}

export type PtyHandlers = {
  /** The buffer is not reused. */
  onData(bytes: Uint8Array): void
  /** The program accepts input again after `write` returned false. */
  onDrain?(): void
  /** After the last byte. */
  onExit(end: { readonly code: number } | { readonly signal: string }): void
}

export interface Pty {
  readonly pid: number
  /** False: the program does not read and input piles up; the bytes of this call are kept. */
  write(bytes: Uint8Array): boolean
  resize(columns: number, rows: number): void
  /** Stops reading: the program blocks when the kernel's buffer (some kilobytes) is full. */
  pause(): void
  resume(): void
  /** Hangs up (SIGHUP to the foreground group), then kills what is left. No handler is called any more. */
  close(): void
}

export type PtySpawner = (options: PtyOptions, handlers: PtyHandlers) => Pty
