/** Jobs that were submitted together, as one row. */

/** Jobs that were submitted together: an array, a grid, or one alone. */
export type JobGroup = {
  readonly spec: number
  readonly first: number
  readonly count: number
  readonly counts: ReadonlyMap<string, number>
  /** Some of them were edited, so that they ask for other things than the first one, or have other names. */
  readonly isMixed?: boolean
}

/** When and where jobs that were submitted together ran. */
export type JobExtent = {
  /** The first start and the last end; undefined: none has started, or ended. */
  readonly startedMs: number | undefined
  readonly endedMs: number | undefined
  /** Places of engines, too. */
  readonly hosts: readonly string[]
}
