/** The Ray cluster and its jobs for the console; src/cli implements it. */
import type { RayJobOrder, RayJobSpec } from '../../ops/ray/jobs.ts'
import type { ClusterUsage } from '../../ops/ray/usage.ts'
import type { CommandHandlers, RunningCommand } from '../../ops/run/run-hosts.ts'

/** As hosts.yaml declares it. */
export type RayCluster = {
  readonly head: string
  /** Hosts by the addresses of their nodes, the head first. */
  readonly nodes: ReadonlyMap<string, string>
}

/** `directory`: on this machine, as typed. */
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
  /** `usage` undefined: Ray did not answer this time; the reason is printable. */
  onUsage(usage: ClusterUsage | undefined, reason: string): void
  /** The head is silent; called once until it reports again. The reason is printable. */
  onSilent(reason: string): void
}

export interface RayPort {
  /** As hosts.yaml declares it; undefined: it declares none. */
  cluster(): Promise<RayCluster | undefined>
  /** Until the signal, over the head's connection; resolves with the reason (printable) when the head cannot be reached. */
  watch(options: RayWatchOptions): Promise<string | undefined>
  /**
   * Prints what `muster ray submit`, `jobs`, `logs` and `stop` print. `stop` stops a followed job, `abandon` leaves it
   * running. Never throws, and calls back only after it returned.
   */
  start(order: RayCommand, handlers: CommandHandlers): RunningCommand
}
