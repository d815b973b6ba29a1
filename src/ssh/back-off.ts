/** How long to wait before connecting again: 1 s, doubled with each failure up to 30 s, ±25 % so that hosts spread out. */

const FIRST_MS = 1_000
const LONGEST_MS = 30_000
const JITTER = 0.25

/** `failures` in a row, from 1; `random` in [0, 1). Whole milliseconds. */
export function backOffMs(failures: number, random: number): number {
  const doublings = Math.min(Math.max(failures, 1) - 1, 30)
  const middle = Math.min(FIRST_MS * 2 ** doublings, LONGEST_MS)
  return Math.round(middle * (1 - JITTER + 2 * JITTER * random))
}
