/** The queue of jobs for the console; src/cli implements it. */
import type { Job } from '../../scheduler/jobs/job.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import type { Sweep } from '../../scheduler/jobs/results.ts'
import type { JobGroup } from '../../scheduler/jobs/store.ts'
import type { Trial, WhatIf } from '../packing/what-if.ts'

/** The queue at one moment. */
export type QueueStatus = {
  readonly hosts: readonly PackedHost[]
  /** Why a host does not answer the scheduler, by its name. */
  readonly down: Readonly<Record<string, string>>
  readonly active: readonly Job[]
  /** The first waiting jobs. */
  readonly waiting: readonly { readonly job: Job; readonly why: string; readonly expectedMs: number | undefined }[]
  /** The latest first; `lead` is the first job of each. */
  readonly groups: readonly (JobGroup & { readonly lead: Job })[]
  readonly counts: ReadonlyMap<string, number>
  /** The running scheduler; undefined: none. */
  readonly driver: string | undefined
}

export type JobDetails = {
  readonly job: Job
  readonly why: readonly string[]
  readonly expectedMs: number | undefined
  /** The log of bundle 0: its host, and a POSIX sh program without an apostrophe that prints its end. */
  readonly log: { readonly host: string; readonly program: string } | undefined
}

export type JobAction = 'hold' | 'release' | 'cancel' | 'retry'

export interface JobsPort {
  /** Undefined: nothing has changed since the last call. Rejects when hosts.yaml or the queue cannot be read. */
  read(): Promise<QueueStatus | undefined>
  /** Where a gang would go now. */
  tryOut(whatIf: WhatIf): Promise<Trial>
  details(id: number): Promise<JobDetails | undefined>
  /** All jobs submitted together with it, and their metrics. */
  sweep(id: number): Promise<Sweep | undefined>
  /** Jobs submitted together that are in one of these states, ascending. */
  members(spec: number, kinds: readonly string[]): Promise<readonly number[]>
  /** Returns how many were changed. */
  change(action: JobAction, ids: readonly number[]): Promise<number>
}
