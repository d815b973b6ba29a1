/**
 * Env: parity of the software environment over a host set. One host is followed: what is fetched, solved or built is made
 * there once and brought to the others, so that they hold the same bytes and need no network.
 */

import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { type ChangeDirection, defineArea, type FileRequest } from '../kernel/area.ts'
import type { FactSet } from '../kernel/fact.ts'
import type { Operation } from '../kernel/operation.ts'
import { isPackedPrefix } from './conda-scripts.ts'
import { dockerFact, imageParcelFact } from './docker.ts'
import {
  condaToolFact,
  findPrefix,
  inHomeFact,
  parcelFact,
  prefixFact,
  prefixOf,
  systemFact,
  wheelsFact,
} from './facts.ts'
import { type EnvAreaFacts, type EnvFacts, fileTrouble } from './plan.ts'
import { planCondaDown, planCondaUp } from './plan-conda.ts'
import { planDockerDown, planDockerUp } from './plan-docker.ts'
import { planVenvDown, planVenvUp } from './plan-venv.ts'
import { envPreflights } from './preflight.ts'
import { type EnvironmentSpec, section } from './section.ts'
import { verifyEnv } from './verify.ts'
import { contentOf, type EnvWanted, envWantedOf, parcelOf, wheelsOf } from './wanted.ts'

function factsOf(wanted: EnvWanted, host: string): FactSet<EnvFacts> {
  const { spec } = wanted
  const parcel = parcelOf(wanted)
  if (spec.kind === 'docker') {
    return {
      system: systemFact,
      content: dockerFact(spec.image, spec.name),
      inHome: inHomeFact('p=', '/', parcel),
      parcel: imageParcelFact(parcel, host),
    }
  }
  const prefix = prefixOf(spec)
  const otherwise = spec.kind === 'venv' ? '$HOME' : `$HOME/.conda/envs/${spec.name}`
  return {
    system: systemFact,
    content: prefixFact(prefix),
    inHome: inHomeFact(findPrefix(prefix), otherwise, parcel),
    parcel:
      spec.kind === 'venv' ? wheelsFact(wheelsOf({ spec }), contentOf(wanted)) : parcelFact(parcel, contentOf(wanted)),
    ...(spec.kind === 'conda' && host === spec.from ? { condaTool: condaToolFact } : {}),
  }
}

export { left } from './left.ts'

export const area = defineArea<EnvWanted, EnvFacts>({
  name: 'env',
  wantedOf: envWantedOf,
  hostsOf: ({ spec }) => spec.hosts,
  filesOf,
  isUsedByJobs: true,
  factsOf,
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

type Planner<Kind extends EnvironmentSpec['kind'] = EnvironmentSpec['kind']> = Readonly<
  Record<ChangeDirection, (wanted: EnvWanted<Kind>, areaFacts: EnvAreaFacts) => readonly Operation[]>
>
const PLANNERS: { readonly [Kind in EnvironmentSpec['kind']]: Planner<Kind> } = {
  venv: { up: planVenvUp, down: planVenvDown },
  docker: { up: planDockerUp, down: planDockerDown },
  conda: { up: planCondaUp, down: planCondaDown },
}

function planEnv(direction: ChangeDirection, wanted: EnvWanted, areaFacts: EnvAreaFacts): readonly Operation[] {
  const trouble = direction === 'up' ? fileTrouble(wanted) : undefined
  return trouble ?? (PLANNERS[wanted.spec.kind] as unknown as Planner)[direction](wanted, areaFacts)
}
