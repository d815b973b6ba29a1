/** What the tabs Packing and Jobs know of the queue, and how they show it. */
import type { Trial, WhatIf } from '../packing/what-if.ts'
import type { JobAction, QueueSight } from './jobs-port.ts'

export const FILTERS = ['all', 'waiting', 'running', 'ended'] as const
export type Filter = (typeof FILTERS)[number]

/** By which column it is sorted; undefined: by its first metric, where it has one. */
export type SweepOrder = { readonly column: number | undefined; readonly isReversed: boolean }

export type QueueView = {
  /** Undefined: not read yet. */
  readonly sight: QueueSight | undefined
  /** Why it cannot be read now. */
  readonly trouble: string | undefined
  readonly filter: Filter
  /** Only lines with this in name, command, user or number; empty: all. */
  readonly needle: string
  /** Of the list: what was submitted together. */
  readonly spec: number | undefined
  /** Of an array or a grid: which one is looked at; undefined: the one that tells most. */
  readonly member: number | undefined
  readonly logOffset: number | undefined
  /** How the table of an array or a grid is sorted; undefined: it is not open. */
  readonly table: SweepOrder | undefined
  /** Whose boxes the Packing tab shows. */
  readonly picture: 'queue' | 'ray'
  /** A gang that is looked at without being submitted. */
  readonly whatIf: WhatIf | undefined
  /** Where it would go; undefined: no answer yet. */
  readonly trial: Trial | undefined
  /** Rows of boxes that are scrolled out above. */
  readonly packingOffset: number
  /** Moves with what is shown besides. */
  readonly revision: number
}

export const FIRST_QUEUE_VIEW: QueueView = {
  sight: undefined,
  trouble: undefined,
  filter: 'all',
  needle: '',
  spec: undefined,
  member: undefined,
  logOffset: undefined,
  table: undefined,
  picture: 'queue',
  whatIf: undefined,
  trial: undefined,
  packingOffset: 0,
  revision: 0,
}

/** With the command that starts one. */
export const NO_SCHEDULER = 'no scheduler running: muster job work'

export const KINDS: Readonly<Record<Exclude<Filter, 'all'>, readonly string[]>> = {
  waiting: ['queued', 'held'],
  running: ['starting', 'running', 'ending'],
  ended: ['done', 'failed', 'timed-out', 'lost', 'cancelled'],
}

/** Which states each of them changes. */
export const CHANGED_KINDS: Readonly<Record<JobAction, readonly string[]>> = {
  cancel: [...KINDS.waiting, ...KINDS.running],
  hold: ['queued'],
  release: ['held'],
  retry: ['failed', 'timed-out', 'lost', 'cancelled'],
}

export type JobLine = QueueSight['groups'][number]

export function shownLines({ sight, filter, needle }: QueueView): readonly JobLine[] {
  return (sight?.groups ?? []).filter(
    (line) =>
      (filter === 'all' || KINDS[filter].some((kind) => line.counts.has(kind))) &&
      (needle === '' || isFound(line, needle)),
  )
}

/** As in searches: without a capital letter, case makes no difference. */
function isFound({ lead, first, count }: JobLine, needle: string): boolean {
  const { name, command } = lead.spec
  const number = Number(needle)
  if (Number.isInteger(number) && number >= first && number < first + count) return true
  const isExact = needle !== needle.toLowerCase()
  return [name, command, lead.user].some((text) => (isExact ? text : text.toLowerCase()).includes(needle))
}

/** The chosen line: the first where the one that was chosen is not shown. */
export function chosenLine(view: QueueView, lines = shownLines(view)): JobLine | undefined {
  return lines.find((line) => line.spec === view.spec) ?? lines[0]
}

export const countOf = ({ counts }: Pick<JobLine, 'counts'>, kinds: readonly string[]): number =>
  kinds.reduce((sum, kind) => sum + (counts.get(kind) ?? 0), 0)

/** Its jobs write what can be compared. */
export function hasMetrics({ spec }: JobLine['lead']): boolean {
  return (spec.metrics?.length ?? 0) > 0
}
