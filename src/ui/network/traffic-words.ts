/** Numbers of a table in few columns. */

/** `0`, `834k`, `1.2M`: bytes or bits, powers of 1000, at most five columns. */
export function shortAmount(value: number): string {
  if (value < 1) return '0'
  const units = ['', 'k', 'M', 'G', 'T']
  let power = 0
  let rest = value
  for (; rest >= 999.5 && power < units.length - 1; power += 1) rest /= 1000
  return `${rest < 9.95 && power > 0 ? rest.toFixed(1) : Math.round(rest)}${units[power]}`
}

export const percentOf = (part: number): string => `${Math.round(part * 100)}%`

const BARS = '▁▂▃▄▅▆▇█'

/** One column of a sparkline: the mean of its values; undefined: nothing is known there. */
export type Bar = { readonly text: string; readonly mean: number | undefined }

/** The last of `values`, each column the mean of `step`; `most` is a whole bar. What is not known is a blank. */
export function sparkBars<T>(
  values: readonly T[],
  pick: (value: T) => number | undefined,
  { columns, step, most }: { readonly columns: number; readonly step: number; readonly most: number },
): readonly Bar[] {
  // Drawn for every host and column once a second: no arrays on the way.
  const bars = new Array<Bar>(columns)
  for (let column = columns - 1, end = values.length; column >= 0; column -= 1, end -= step) {
    let sum = 0
    let known = 0
    for (let index = Math.max(0, end - step); index < end; index += 1) {
      const value = pick(values[index] as T)
      if (value === undefined) continue
      sum += value
      known += 1
    }
    const level = Math.round((sum / known / (most || 1)) * 7)
    bars[column] = known === 0 ? BLANK : { text: BARS[Math.max(0, Math.min(7, level))] ?? ' ', mean: sum / known }
  }
  return bars
}

const BLANK: Bar = { text: ' ', mean: undefined }
