/** `0-3,6`: of numbers in ascending order. */
export const formatNumberSet = (numbers: readonly number[]): string => numberRanges(numbers).join()

/** `0-3`, `6` */
export function numberRanges(numbers: readonly number[]): readonly string[] {
  const ranges: [number, number][] = []
  for (const number of numbers) {
    const last = ranges.at(-1)
    if (last !== undefined && number === last[1] + 1) last[1] = number
    else ranges.push([number, number])
  }
  return ranges.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`))
}
