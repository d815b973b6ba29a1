/** Beyond what a counter of a machine can hold. */
const MOST = 2 ** 64

/** A number from a host; undefined if it is no number, negative or too large. */
export function amountOf(reported: unknown): number | undefined {
  const value = typeof reported === 'string' && reported.trim() !== '' ? Number(reported) : reported
  return typeof value === 'number' && value >= 0 && value <= MOST ? value : undefined
}
