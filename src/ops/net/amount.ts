/** Beyond what a counter of a machine can hold. */
const MOST = 2 ** 64

/** A number as a host tells it; undefined: it is none, or none that counts or measures anything. */
export function amountOf(told: unknown): number | undefined {
  const value = typeof told === 'string' && told.trim() !== '' ? Number(told) : told
  return typeof value === 'number' && value >= 0 && value <= MOST ? value : undefined
}
