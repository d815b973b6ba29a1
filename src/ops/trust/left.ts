/** What trust leaves if hosts.yaml no longer declares it, or if it was interrupted: what `down` would remove, and partial keys. */
import type { LeftKind } from '../../base/left.ts'
import type { FactSet } from '../kernel/fact.ts'
import { defineLeft, type LeftAnswer, leftFact, leftOfOperations, leftoversOf } from '../kernel/left.ts'
import type { Operation } from '../kernel/operation.ts'
import { type TrustFacts, trustFacts } from './facts.ts'
import { planDown, trustWantedOf } from './plan.ts'

/** Keys of the host's SSH server do not matter here. */
type Facts = Omit<TrustFacts, 'hostKeys'> & { readonly found: LeftAnswer }

const FIND = `for file in "$HOME"/.ssh/id_muster.new "$HOME"/.ssh/id_muster.new.pub; do
  [ ! -e "$file" ] || left_found half "$file"
done
[ -e "$HOME/.ssh/id_muster" ] || [ ! -e "$HOME/.ssh/id_muster.pub" ] || left_found half "$HOME/.ssh/id_muster.pub"`

const KINDS: Readonly<Record<string, LeftKind>> = { half: { title: 'unfinished SSH key', isBrief: true } }

const NAMES: Readonly<Record<string, string>> = {
  'authorized-keys': 'lines in ~/.ssh/authorized_keys',
  'known-hosts': 'lines in ~/.ssh/known_hosts',
  config: 'lines in ~/.ssh/config',
  key: 'SSH key ~/.ssh/id_muster',
}

/** Identified by its place, not by its purpose. */
function named(operation: Operation): Operation {
  const name = operation.id.slice(operation.id.indexOf('/') + 1, operation.id.lastIndexOf('@'))
  return { ...operation, title: NAMES[name] ?? operation.title }
}

export const left = defineLeft<Facts>({
  name: 'trust',
  factsOf(_, __, also) {
    const { key, authorizedKeys, knownHosts, config } = trustFacts
    return { key, authorizedKeys, knownHosts, config, found: leftFact(FIND, also) } satisfies FactSet<Facts>
  },
  itemsOf({ found, ...own }, declared, host) {
    const { members = [], unusable = new Map() } = trustWantedOf(declared) ?? {}
    const isDeclared = members.some(({ name }) => name === host) || unusable.has(host)
    return [
      ...leftOfOperations(planDown(host, own).map(named), isDeclared ? 'trust' : undefined),
      ...leftoversOf(found, KINDS),
    ]
  },
})
