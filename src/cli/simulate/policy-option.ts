/** `--policy NAME[,NAME…]` of the simulations. */
import { InvalidArgumentError } from 'commander'
import { DEFAULT_POLICY, isPolicyName, POLICIES, type PolicyName } from '../../scheduler/policies/policies.ts'

/** Other words for the default. */
export const DEFAULT_ALIASES: ReadonlySet<string> = new Set(['default', 'muster', 'ours'])

export const POLICY_NAMES = Object.keys(POLICIES)

export function parsePolicies(text: string): readonly PolicyName[] {
  return text.split(',').map((word) => {
    const name = DEFAULT_ALIASES.has(word) ? DEFAULT_POLICY : word
    if (!isPolicyName(name))
      throw new InvalidArgumentError(`There is no policy '${word}'. There are ${POLICY_NAMES.join(', ')}.`)
    return name
  })
}

export function parseWhole(text: string): number {
  const value = Number(text)
  if (!Number.isSafeInteger(value) || value < 0)
    throw new InvalidArgumentError('It has to be a whole number from 0 on.')
  return value
}

export function parseCount(text: string): number {
  const value = parseWhole(text)
  if (value === 0) throw new InvalidArgumentError('It has to be 1 at least.')
  return value
}
