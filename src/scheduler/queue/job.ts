/** Waiting and running jobs as queue policies see them: widths and whole seconds, no hosts. */

export type QueuedJob = {
  /** In the order of submission; unique. */
  readonly order: number
  readonly submitS: number
  /** Processors, GPUs or whatever is counted, from 1 to what the machine has. */
  readonly width: number
  /** At least 1. */
  readonly estimateS: number
}

export type RunningJob = {
  readonly width: number
  /** It may end earlier; once that time has passed it is expected to end soon. */
  readonly estimatedEndS: number
}

export type QueueState = {
  readonly nowS: number
  readonly free: number
  readonly running: readonly RunningJob[]
  readonly waiting: readonly QueuedJob[]
  /** A job ended before its estimated end, so the plan is out of date. */
  readonly hasEndedEarly: boolean
}

/** Decides at each change which jobs begin. It may remember its plan, so each machine needs its own. */
export interface QueuePolicy {
  /** Jobs that begin now; together they fit in `free`. */
  choose(state: QueueState): readonly QueuedJob[]
}
