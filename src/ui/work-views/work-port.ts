/** Runs and copies on hosts beside their shells; src/cli implements it. */
import type { HostOutput } from '../../ops/run/output-store.ts'
import type { CommandHandlers, RunningCommand } from '../../ops/run/run-hosts.ts'
import type { CopyEvent } from '../../ssh/copy/events.ts'

export type CopyOrder = {
  readonly hosts: readonly string[]
  /** Files and directories on this machine, as typed. */
  readonly sources: readonly string[]
  /** As typed: `%h %n %u` stand for each host's own. */
  readonly destination: string
  /** Connects hosts that are not connected, without waiting until their next attempt is due. */
  readonly isRetry: boolean
  readonly signal: AbortSignal
  onEvent(event: CopyEvent): void
  /** Sources that cannot be copied, one sentence each; called before anything is sent. */
  onProblems(problems: readonly string[]): void
}

export interface WorkPort {
  /** Over the host's open connection. Never throws, and calls back only after it returned. `isRetry`: as for a copy. */
  startCommand(host: string, command: string, handlers: CommandHandlers, isRetry?: boolean): RunningCommand
  /** @throws when one of them is missing or cannot be read: a mistyped name is found while it can still be corrected. */
  checkSources?(sources: readonly string[]): Promise<void>
  /** @throws before any event when there is nothing to copy. */
  copy(order: CopyOrder): Promise<void>
  /** Writes HOST.out and HOST.err; returns the directory's path. @throws when one of the files exists. */
  saveOutput(directory: string, outputs: ReadonlyMap<string, HostOutput>): Promise<string>
  /** The most commands or copies at a time. */
  readonly fanOut: number
  /** For output that does not fit into memory. */
  readonly spillDirectory: string
}

/** Runs a POSIX sh script without an apostrophe beside the host's shell; only its standard output is read. */
export function startScript(
  work: Pick<WorkPort, 'startCommand'>,
  host: string,
  script: string,
  onText: (text: string) => void,
  onEnd: CommandHandlers['onEnd'],
): RunningCommand {
  const decoder = new TextDecoder()
  const onStdout = (bytes: Uint8Array) => onText(decoder.decode(bytes, { stream: true }))
  return work.startCommand(host, `exec /bin/sh -c '${script}'`, { onBegin() {}, onStdout, onStderr() {}, onEnd })
}
