/**
 * Linear programs with more columns than can be written down: maximise the value of x ≥ 0 with A x ≤ limits, where columns of
 * A are found as they are needed (Gilmore and Gomory, 1961). Primal simplex with a dense inverse, for some hundred rows.
 */
export type Column = {
  /** Rows that it uses, and how much of each for one of it. */
  readonly rows: readonly number[]
  readonly amounts: readonly number[]
}

/** The column that is worth most beyond what it costs at these prices of the rows. */
export type FindColumn = (prices: Float64Array) => { readonly column: Column; readonly gain: number } | undefined

const TOLERANCE = 1e-7
const LEAST_PIVOT = 1e-9
const MAX_PIVOTS = 100_000

/**
 * Prices of the rows at the optimum. By duality limits × prices is an upper bound of what any x is worth, whatever the
 * rounding on the way, since no column gains more than the tolerance at these prices.
 */
export function solveForPrices(limits: Float64Array, find: FindColumn): Float64Array {
  const size = limits.length
  const inverse = new Float64Array(size * size)
  for (let row = 0; row < size; row++) inverse[row * size + row] = 1
  // Slightly different limits: with equal ratios the simplex method would turn in circles.
  const levels = limits.map((limit, row) => limit + 1e-6 * (1 + ((row * 7919) % size) / size))
  const prices = new Float64Array(size)
  const direction = new Float64Array(size)
  for (let pivots = 0; pivots < MAX_PIVOTS; pivots++) {
    const entering = slackToEnter(prices) ?? find(prices)
    if (entering === undefined || entering.gain < TOLERANCE) return prices.map((price) => Math.max(0, price))
    const { rows, amounts } = entering.column
    direction.fill(0)
    for (let row = 0; row < size; row++)
      for (let at = 0; at < rows.length; at++) direction[row]! += inverse[row * size + rows[at]!]! * amounts[at]!
    const leaving = rowToLeave(levels, direction)
    const pivot = direction[leaving]!
    const start = leaving * size
    for (let at = start; at < start + size; at++) inverse[at]! /= pivot
    levels[leaving]! /= pivot
    for (let row = 0; row < size; row++) {
      const factor = direction[row]!
      if (row === leaving || Math.abs(factor) < 1e-13) continue
      for (let at = 0; at < size; at++) inverse[row * size + at]! -= factor * inverse[start + at]!
      levels[row] = Math.max(0, levels[row]! - factor * levels[leaving]!)
    }
    for (let at = 0; at < size; at++) prices[at]! += entering.gain * inverse[start + at]!
  }
  throw new Error(`a linear program that ${MAX_PIVOTS} pivots do not solve`)
}

/** Using less of a row whose price is below nothing is worth something. */
function slackToEnter(prices: Float64Array): ReturnType<FindColumn> {
  let row = 0
  for (let other = 1; other < prices.length; other++) if (prices[other]! < prices[row]!) row = other
  const gain = -(prices[row] ?? 0)
  return gain < TOLERANCE ? undefined : { column: { rows: [row], amounts: [1] }, gain }
}

function rowToLeave(levels: Float64Array, direction: Float64Array): number {
  let leaving = -1
  for (let row = 0; row < levels.length; row++) {
    if (direction[row]! < LEAST_PIVOT) continue
    if (leaving < 0 || levels[row]! * direction[leaving]! < levels[leaving]! * direction[row]!) leaving = row
  }
  if (leaving < 0) throw new Error('a linear program without a limit')
  return leaving
}
