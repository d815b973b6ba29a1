/** What the queue tells of studies for the Jobs tab, and which part of one is shown. */

import type { OpenTrial } from '../../scheduler/jobs/study-rows.ts'
import type { TrialCounts } from '../../scheduler/study/front.ts'
import type { Study, Trial } from '../../scheduler/study/study.ts'
import { ENDED_KINDS } from '../../scheduler/study/study.ts'

/** A study in the list. */
export type StudyLine = {
  readonly study: Study
  readonly counts: TrialCounts
  /** By its first metric; undefined: none yet. */
  readonly best: Trial | undefined
}

/** All of a study; the same object while nothing has changed. */
export type StudyReading = {
  readonly study: Study
  readonly counts: TrialCounts
  readonly trials: readonly Trial[]
  /** Those that wait or run, with their jobs. */
  readonly open: readonly OpenTrial[]
}

export const TRIAL_FILTERS = ['all', 'open', ...ENDED_KINDS] as const

/** The study that is shown instead of the list. */
export type StudyView = {
  readonly id: number
  /** The selected trial; undefined: the first of the table. */
  readonly trial?: number | undefined
  readonly filter: (typeof TRIAL_FILTERS)[number]
  /** The first view beside the table. */
  readonly shown: number
  /** Of its metrics, the one that plots show. */
  readonly metric: number
  /** The selected trial's job and log are shown in place of the plots. */
  readonly hasLog: boolean
}

export type StudyChange =
  | { readonly kind: 'stop'; readonly now: boolean }
  /** `trials`: so many more; undefined: as many as it was to have. */
  | { readonly kind: 'more'; readonly trials: number | undefined }
