/** What the values of options may be. */
import { InvalidArgumentError, Option } from 'commander'

/** For timers of Node: 24 days. */
const LONGEST_S = 2_147_483

export function wholeNumber(min: number, max = Number.MAX_SAFE_INTEGER): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isSafeInteger(value) && value >= min && value <= max) return value
    const most = max === Number.MAX_SAFE_INTEGER ? ` of ${min} or more` : ` from ${min} to ${max}`
    throw new InvalidArgumentError(`It must be a whole number${min === Number.MIN_SAFE_INTEGER ? '' : most}.`)
  }
}

export function numberFrom(min: number): (text: string) => number {
  return (text) => {
    const value = Number(text)
    if (text.trim() !== '' && Number.isFinite(value) && value >= min) return value
    throw new InvalidArgumentError(`It must be a number of ${min} or more.`)
  }
}

export function numberAbove0(text: string): number {
  const value = Number(text)
  if (Number.isFinite(value) && value > 0) return value
  throw new InvalidArgumentError('It must be a number above 0.')
}

/** No more than a timer can be set to. */
export function seconds(text: string): number {
  return Math.min(numberAbove0(text), LONGEST_S)
}

/** An option that may be given several times; its value is a list. */
export function repeatable(flags: string, description: string): Option {
  return new Option(flags, `${description}; can be given several times`)
    .argParser((text: string, before: readonly string[] = []) => [...before, text])
    .default([], 'none')
}
