/** What the console asks for to do work on hosts beside their shells; the composition root gives it. */
import type { HostOutput } from '../../ops/run/output-store.ts'
import type { CommandHandlers, RunningCommand } from '../../ops/run/run-hosts.ts'
import type { CopyEvent } from '../../ssh/copy/events.ts'

export type CopyOrder = {
  readonly hosts: readonly string[]
  /** Files and directories of this machine, as they were typed. */
  readonly sources: readonly string[]
  /** As it was typed: `%h %n %u` stand for each host's own. */
  readonly destination: string
  readonly signal: AbortSignal
  onEvent(event: CopyEvent): void
  /** What of the sources cannot be copied, one sentence each; before anything is sent. */
  onProblems(problems: readonly string[]): void
}

export interface WorkPort {
  /** Over the connection that the host has; it never throws, and calls back only after it returned. */
  startCommand(host: string, command: string, handlers: CommandHandlers): RunningCommand
  /** Throws, before any event, when there is nothing to copy. */
  copy(order: CopyOrder): Promise<void>
  /** A file HOST.out and HOST.err each; throws when one of them is there. Gives the directory's path. */
  saveOutput(directory: string, outputs: ReadonlyMap<string, HostOutput>): Promise<string>
  /** Commands, or copies, at once. */
  readonly fanOut: number
  /** For what is too much for memory. */
  readonly spillDirectory: string
}
