/** Times and ages as people write them. Pure. */

/** `13:51` of today, otherwise `2026-11-22 13:51`, in local time. */
export function timeText(ms: number, nowMs: number): string {
  const date = new Date(ms)
  const time = date.toTimeString().slice(0, 5)
  return date.toDateString() === new Date(nowMs).toDateString() ? time : `${date.toLocaleDateString('sv-SE')} ${time}`
}

/** `12 s`, `3 min`, `2 h`, `3 days`. */
export function ageText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`
}

/** `0`, `834k`, `1.2M`: bytes or bits in powers of 1000, at most five columns. */
export function shortAmount(value: number): string {
  if (value < 1) return '0'
  const units = ['', 'k', 'M', 'G', 'T']
  let power = 0
  let rest = value
  for (; rest >= 999.5 && power < units.length - 1; power += 1) rest /= 1000
  return `${rest < 9.95 && power > 0 ? rest.toFixed(1) : Math.round(rest)}${units[power]}`
}

export const percentOf = (part: number): string => `${Math.round(part * 100)}%`
