/**
 * Env: parity of the software environment over a host set. One host is followed: what is fetched, solved or built is made
 * there once and brought to the others, so that they hold the same bytes and need no network.
 */
import type { EnvironmentSpec, Inventory } from '../../inventory/inventory.ts'
import type { World } from '../kernel/area.ts'
import { defineArea } from '../kernel/area.ts'
import type { FactSet } from '../kernel/fact.ts'
import { knownValue } from '../kernel/fact.ts'
import { type DockerFacts, dockerFact } from './docker-facts.ts'
import { type Drift, driftOf, type HostItems, itemsOf } from './drift.ts'
import { type PrefixFacts, prefixFact, type SystemFacts, systemFact } from './facts.ts'

export type EnvFacts = { readonly system: SystemFacts; readonly content: PrefixFacts | DockerFacts }

function contentFact(spec: EnvironmentSpec): FactSet<EnvFacts>['content'] {
  switch (spec.kind) {
    case 'docker':
      return dockerFact(spec.image, spec.name)
    case 'venv':
      return prefixFact({ path: spec.path })
    case 'conda':
      return prefixFact(spec.prefix === undefined ? { condaName: spec.name } : { path: spec.prefix })
  }
}

export const envArea = defineArea<EnvironmentSpec, EnvFacts>({
  name: 'env',
  wantedOf: ({ inventory }) => inventory.environment,
  hostsOf: ({ hosts }) => hosts,
  factsOf: (spec) => ({ system: systemFact, content: contentFact(spec) }),
  plan: () => [],
})

/** In what the hosts that answered differ. */
export function envDriftOf({ environment }: Inventory, world: World<EnvFacts>): Drift {
  const items = [...world.facts].map(([host, { facts }]): [string, HostItems] => [
    host,
    itemsOf(knownValue(facts.system), knownValue(facts.content)),
  ])
  return driftOf(environment?.from ?? '', new Map(items))
}
