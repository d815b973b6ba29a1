/** What waits and what runs, as the planner sees it: gangs on devices of hosts, times in whole seconds. */
import type { Placement } from '../model/cluster.ts'
import type { Gang } from '../model/gang.ts'

export type WaitingJob = {
  /** Unique; of jobs that are alike in all else the one with the lower number was submitted first. */
  readonly order: number
  readonly gang: Gang
  readonly user: string
  /** Since when it waits: from its submission on, later by the time that it ran meanwhile. */
  readonly submitS: number
  /** Any whole number; the higher goes first, 0 is what everyone has. */
  readonly priority: number
  /** How long it will run at most, from 1 on; undefined: nobody said. */
  readonly estimateS: number | undefined
}

export type ActiveJob = WaitingJob & {
  readonly startS: number
  readonly placements: readonly Placement[]
  /** May be ended for a job of higher priority. */
  readonly isPreemptible: boolean
}

/** Hosts that some time belongs to nobody (maintenance) or to these users. */
export type Reservation = {
  readonly hosts: readonly number[]
  readonly fromS: number
  readonly untilS: number
  readonly users: readonly string[]
}
