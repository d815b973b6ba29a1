/** What waits and what runs, as queue policies see it: a width, times in whole seconds, nothing of hosts. */

export type QueuedJob = {
  /** Place in the order of submission; unique. */
  readonly order: number
  readonly submitS: number
  /** Processors (or GPUs, or whatever is counted): at least 1, at most what the machine has. */
  readonly width: number
  /** How long it will run at most; at least 1. */
  readonly estimateS: number
}

export type RunningJob = {
  readonly width: number
  /** Not known to be right: it may end before, and is taken to end soon when that time has passed. */
  readonly estimatedEndS: number
}

export type QueueState = {
  readonly nowS: number
  /** Width that nothing uses now. */
  readonly free: number
  readonly running: readonly RunningJob[]
  /** In the order of submission. */
  readonly waiting: readonly QueuedJob[]
  /** Something ended before its estimated end since the last look: what was planned is out of date. */
  readonly hasEndedEarly: boolean
}

/** Decides at each change who begins now. A policy may remember what it planned: one for each machine. */
export interface QueuePolicy {
  /** Those who begin now, together no wider than what is free. */
  choose(state: QueueState): readonly QueuedJob[]
}
