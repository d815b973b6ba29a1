/**
 * Env: parity of the software environment over a host set. One host is followed: what is fetched, solved or built is made
 * there once and brought to the others, so that they hold the same bytes and need no network.
 */
import type { Inventory } from '../../inventory/inventory.ts'
import { sectionOf } from '../../inventory/section.ts'
import { type ChangeDirection, defineArea, type FileRequest } from '../kernel/area.ts'
import { type Fact, knownValue } from '../kernel/fact.ts'
import type { Operation } from '../kernel/operation.ts'
import { isPackedPrefix } from './conda-scripts.ts'
import { dockerFact } from './docker-facts.ts'
import { imageParcelFact } from './docker-scripts.ts'
import { type Drift, driftOf, type HostItems, itemsOf } from './drift.ts'
import { findPrefix, prefixFact, systemFact } from './facts.ts'
import { type InHome, inHomeFact } from './in-home.ts'
import { parcelFact } from './parcel.ts'
import type { EnvAreaFacts, EnvFacts } from './plan.ts'
import { planCondaDown, planCondaUp } from './plan-conda.ts'
import { planDockerDown, planDockerUp } from './plan-docker.ts'
import { planVenvDown, planVenvUp } from './plan-venv.ts'
import { envPreflights } from './preflight.ts'
import { type EnvironmentSpec, section } from './section.ts'
import { verifyEnv } from './verify.ts'
import { contentOf, type EnvWanted, envWantedOf, parcelOf } from './wanted.ts'

function contentFact(spec: EnvironmentSpec): Fact<EnvFacts['content']> {
  switch (spec.kind) {
    case 'docker':
      return dockerFact(spec.image, spec.name)
    case 'venv':
      return prefixFact({ path: spec.path })
    case 'conda':
      return prefixFact(spec.prefix === undefined ? { condaName: spec.name } : { path: spec.prefix })
  }
}

function inHomeFactOf(wanted: EnvWanted): { readonly inHome: Fact<InHome> } {
  const { spec } = wanted
  const parcel = parcelOf(wanted)
  switch (spec.kind) {
    case 'docker':
      return { inHome: inHomeFact('p=', '/', parcel) }
    case 'venv':
      return { inHome: inHomeFact(findPrefix({ path: spec.path }), '$HOME', parcel) }
    case 'conda': {
      const place = spec.prefix === undefined ? { condaName: spec.name } : { path: spec.prefix }
      return { inHome: inHomeFact(findPrefix(place), `$HOME/.conda/envs/${spec.name}`, parcel) }
    }
  }
}

export { left } from './left.ts'

export const area = defineArea<EnvWanted, EnvFacts>({
  name: 'env',
  wantedOf: envWantedOf,
  hostsOf: ({ spec }) => spec.hosts,
  filesOf,
  isUsedByJobs: true,
  factsOf: (wanted, host) => ({
    system: systemFact,
    content: contentFact(wanted.spec),
    ...inHomeFactOf(wanted),
    parcel:
      wanted.spec.kind === 'docker'
        ? imageParcelFact(parcelOf(wanted), host)
        : parcelFact(parcelOf(wanted), contentOf(wanted)),
  }),
  plan: planEnv,
  verify: verifyEnv,
  preflights: ({ spec }, operations) => envPreflights(spec, operations),
})

function filesOf(inventory: Inventory): readonly FileRequest[] {
  const { kind, file } = sectionOf(inventory, section) ?? {}
  if (file === undefined) return []
  const isArchive = kind === 'conda' && isPackedPrefix(file)
  return [{ name: file, kind: isArchive ? 'archive' : kind === 'docker' ? 'directory' : 'text' }]
}

function planEnv(direction: ChangeDirection, wanted: EnvWanted, areaFacts: EnvAreaFacts): readonly Operation[] {
  const isUp = direction === 'up'
  switch (wanted.spec.kind) {
    case 'venv': {
      const own = wanted as EnvWanted<'venv'>
      return isUp ? planVenvUp(own, areaFacts) : planVenvDown(own, areaFacts)
    }
    case 'docker': {
      const own = wanted as EnvWanted<'docker'>
      return isUp ? planDockerUp(own, areaFacts) : planDockerDown(own, areaFacts)
    }
    case 'conda': {
      const own = wanted as EnvWanted<'conda'>
      return isUp ? planCondaUp(own, areaFacts) : planCondaDown(own, areaFacts)
    }
  }
}

/** In what the hosts that answered differ. */
export function envDriftOf(followed: string, areaFacts: Pick<EnvAreaFacts, 'facts'>): Drift {
  const items = [...areaFacts.facts].map(([host, { facts }]): [string, HostItems] => [
    host,
    itemsOf(knownValue(facts.system), knownValue(facts.content)),
  ])
  return driftOf(followed, new Map(items))
}
