/** What the console asks for to see and change the queue of jobs; the composition root gives it. */
import type { Job } from '../../scheduler/jobs/job.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import type { Sweep } from '../../scheduler/jobs/results.ts'
import type { JobGroup } from '../../scheduler/jobs/store.ts'
import type { Trial, WhatIf } from '../packing/what-if.ts'

export type WaitingJob = { readonly job: Job; readonly why: string; readonly expectedMs: number | undefined }

/** The queue at one moment. */
export type QueueStatus = {
  readonly hosts: readonly PackedHost[]
  /** By name of a host that does not answer the driver: why. */
  readonly down: Readonly<Record<string, string>>
  readonly active: readonly Job[]
  /** The first that wait, and why. */
  readonly waiting: readonly WaitingJob[]
  /** What was submitted last comes first; the first job of each stands for it. */
  readonly groups: readonly (JobGroup & { readonly lead: Job })[]
  readonly counts: ReadonlyMap<string, number>
  /** Who drives it; undefined: nobody. */
  readonly driver: string | undefined
}

export type JobDetails = {
  readonly job: Job
  readonly why: readonly string[]
  readonly expectedMs: number | undefined
  /** Where bundle 0 writes: its host, and a program of POSIX sh without an apostrophe that prints the end of it. */
  readonly log: { readonly host: string; readonly program: string } | undefined
}

export type JobAction = 'hold' | 'release' | 'cancel' | 'retry'

export interface JobsPort {
  /** Undefined: nothing has changed since the last call. Rejects where hosts.yaml or the queue cannot be used. */
  read(): Promise<QueueStatus | undefined>
  /** Where a gang would go now. */
  tryOut(whatIf: WhatIf): Promise<Trial>
  details(id: number): Promise<JobDetails | undefined>
  /** What was submitted together with it, and its metrics. */
  sweep(id: number): Promise<Sweep | undefined>
  /** Jobs submitted together, so far as they are in one of these states, ascending. */
  members(spec: number, kinds: readonly string[]): Promise<readonly number[]>
  /** How many of them it changed. */
  change(action: JobAction, ids: readonly number[]): Promise<number>
}
