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
/** Of names and codes. */
const MOST_NAME = 253

/** A copy: a part of a long text would keep all of it in memory. */
export function cut(value: unknown, most = MOST_NAME): string {
  const text = textOf(value)
  return text.length <= most ? text : Buffer.from(text.slice(0, most)).toString()
}

export function eventOf(object: JsonRecord): KubernetesEvent {
  const about = record(object.involvedObject)
  const series = record(object.series)
  const times = [series?.lastObservedTime, object.lastTimestamp, object.eventTime]
  const time = [...times, record(object.metadata)?.creationTimestamp].map(textOf).find((text) => text !== '') ?? ''
  return {
    time: Number.isFinite(Date.parse(time)) ? new Date(time).toISOString() : '',
    type: cut(object.type),
    reason: cut(object.reason),
    kind: cut(about?.kind),
    name: cut(about?.name),
    namespace: cut(about?.namespace),
    message: cut(object.message, MOST_MESSAGE),
    count: numberOf(series?.count) ?? numberOf(object.count) ?? 1,
  }
}

/** Oldest first. */
export const inOrderOfTime = (events: Iterable<KubernetesEvent>): readonly KubernetesEvent[] =>
  [...events].sort((a, b) => a.time.localeCompare(b.time))
