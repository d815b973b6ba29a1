/** Events of the API: what happened to an object lately. Pure. */
import { type JsonRecord, numberOf, record, textOf } from '../../base/json-lines.ts'

export type KubernetesEvent = {
  /** ISO 8601; empty: unknown. */
  readonly time: string
  /** `Normal` or `Warning`. */
  readonly type: string
  /** A code, such as `FailedScheduling`. */
  readonly reason: string
  readonly kind: string
  readonly name: string
  readonly namespace: string
  readonly message: string
  readonly count: number
}

const MOST_MESSAGE = 2_000

export function eventOf(object: JsonRecord): KubernetesEvent {
  const about = record(object.involvedObject)
  const series = record(object.series)
  const times = [series?.lastObservedTime, object.lastTimestamp, object.eventTime]
  const time = [...times, record(object.metadata)?.creationTimestamp].map(textOf).find((text) => text !== '') ?? ''
  return {
    time: Number.isFinite(Date.parse(time)) ? new Date(time).toISOString() : '',
    type: textOf(object.type),
    reason: textOf(object.reason),
    kind: textOf(about?.kind),
    name: textOf(about?.name),
    namespace: textOf(about?.namespace),
    message: textOf(object.message).slice(0, MOST_MESSAGE),
    count: numberOf(series?.count) ?? numberOf(object.count) ?? 1,
  }
}

/** Oldest first. */
export const inOrderOfTime = (events: Iterable<KubernetesEvent>): readonly KubernetesEvent[] =>
  [...events].sort((a, b) => a.time.localeCompare(b.time))
