/** Times and durations for people, in local time; machines get ISO 8601 (`--json`, files). */

/** `2026-11-22` */
export const dayText = (ms: number): string => new Date(ms).toLocaleDateString('sv-SE')

/** `13:51` */
export const clockText = (ms: number): string => new Date(ms).toTimeString().slice(0, 5)

/** `13:51:07` */
export const secondText = (ms: number): string => new Date(ms).toTimeString().slice(0, 8)

/** `2026-11-22T13-51-07`, for the name of a file: in UTC, so that later names sort last. */
export const fileTimeText = (ms: number): string => new Date(ms).toISOString().slice(0, 19).replaceAll(':', '-')

const withDay = (time: string, ms: number, nowMs: number): string =>
  dayText(ms) === dayText(nowMs) ? time : `${dayText(ms)} ${time}`

/** `13:51` of today, otherwise `2026-11-22 13:51`. */
export const timeText = (ms: number, nowMs: number): string => withDay(clockText(ms), ms, nowMs)

/** `13:51:07` of today, otherwise `2026-11-22 13:51:07`. */
export const daySecondText = (ms: number, nowMs: number): string => withDay(secondText(ms), ms, nowMs)

const NEXT_MS = 20 * 3_600_000

/** An end: `01:33`, also of tomorrow; with the day if it is more than 20 hours away. */
export function untilText(ms: number, nowMs: number): string {
  return ms - nowMs < NEXT_MS ? clockText(ms) : timeText(ms, nowMs)
}

const SOON_MS = 3_600_000

/** A time to come: `now`, `in 40 s`, `in 4 min`; from an hour on: `at 13:51`, `on 2026-11-24 at 09:00`. */
export function whenText(ms: number, nowMs: number): string {
  const leftMs = ms - nowMs
  if (leftMs <= 0) return 'now'
  if (leftMs < SOON_MS) return `in ${ageText(Math.ceil(leftMs / 1000) * 1000)}`
  const time = timeText(ms, nowMs)
  return time.includes(' ') ? `on ${time.replace(' ', ' at ')}` : `at ${time}`
}

/** `12 s`, `3 min`, `2 h`, `3 days`: rounded down. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`
}

/** `12 ms`, `3.4 s`, `2 h 5 min`: rounded. */
export function formatDuration(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 120_000) return `${Number((ms / 1000).toFixed(1))} s`
  const minutes = Math.round(ms / 60_000)
  if (minutes < 120) return `${minutes} min`
  const hours = Math.floor(minutes / 60)
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.round(hours / 24)} days`
}
