/** `--policy` of the simulations. */
import { InvalidArgumentError, Option } from 'commander'
import { isPolicyName, POLICIES } from '../../scheduler/policies/policies.ts'

/** Other words for the default. */
const DEFAULT_ALIASES: readonly string[] = ['default', 'muster', 'ours']

export const POLICY_NAMES = Object.keys(POLICIES).filter(isPolicyName)

/** Its value is a list. */
export function policyOption<Name extends string>(names: readonly Name[], usual: Name): Option {
  return new Option('--policy <names>', `one or more of ${names.join(', ')}`)
    .argParser((text) => text.split(',').map((word) => oneOf(word, names, usual)))
    .default([usual], usual)
}

export function oneOf<Name extends string>(word: string, names: readonly Name[], usual: Name): Name {
  const name = DEFAULT_ALIASES.includes(word) ? usual : names.find((known) => known === word)
  if (name === undefined) throw new InvalidArgumentError(`Unknown policy: ${word}. Policies: ${names.join(', ')}.`)
  return name
}
