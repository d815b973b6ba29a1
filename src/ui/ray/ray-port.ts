/** What the console asks for to see the Ray cluster and to use its jobs; the composition root gives it. */
import type { RayJobOrder, RayJobSpec } from '../../ops/ray/jobs.ts'
import type { ClusterUsage } from '../../ops/ray/usage.ts'
import type { CommandHandlers, RunningCommand } from '../../ops/run/run-hosts.ts'

/** As hosts.yaml declares it. */
export type RayCluster = {
  readonly head: string
  /** Hosts by the addresses of their nodes, the head first. */
  readonly nodes: ReadonlyMap<string, string>
}

/** `directory`: of this machine, as it was typed. */
export type RayCommand =
  | Exclude<RayJobOrder, { do: 'submit' }>
  | {
      readonly do: 'submit'
      readonly job: Omit<RayJobSpec, 'archive'>
      readonly directory: string | undefined
      readonly follow: boolean
    }

export type RayWatchOptions = {
  readonly signal: AbortSignal
  readonly intervalMs: number
  /** Undefined: the head did not answer this time; the reason is printable. */
  onUsage(usage: ClusterUsage | undefined, reason: string): void
  /** It says nothing at all; once, until it says something again. The reason is printable. */
  onSilent(reason: string): void
}

export interface RayPort {
  /** Undefined: hosts.yaml declares none. */
  cluster(): Promise<RayCluster | undefined>
  /** Until the signal; resolves with the reason (printable) when the head cannot be asked. Over the head's connection. */
  watch(options: RayWatchOptions): Promise<string | undefined>
  /**
   * What `muster ray submit`, `jobs`, `logs` and `stop` print. A job that is followed is stopped by `stop`; `abandon`
   * leaves it. It never throws, and calls back only after it returned.
   */
  start(order: RayCommand, handlers: CommandHandlers): RunningCommand
}
