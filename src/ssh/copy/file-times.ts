/** Times of files as touch takes them, in UTC. */

/** `2026-11-21 10:00:00.000000001`, and the older `202611211000.00` for a touch that knows no fractions. */
export function touchTimes(mtimeNs: bigint): readonly [time: string, stamp: string] {
  const second = 1_000_000_000n
  const fraction = ((mtimeNs % second) + second) % second
  const iso = new Date(Number((mtimeNs - fraction) / 1_000_000n)).toISOString()
  const time = `${iso.slice(0, 10)} ${iso.slice(11, 19)}.${String(fraction).padStart(9, '0')}`
  const stamp = `${iso.slice(0, 16).replace(/[-T:]/g, '')}.${iso.slice(17, 19)}`
  return [time, stamp]
}
