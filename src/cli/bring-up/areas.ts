/** The areas of bring-up, in the order in which `up` applies them; `down` goes the other way. A new area is one line here. */

import type { Section } from '../../inventory/hosts-yaml-schema.ts'
import { env } from '../../ops/env/area.ts'
import type { AreaMaker } from '../../ops/kernel/area.ts'
import type { AreaEntry } from '../../ops/kernel/area-entry.ts'
import { kubernetes } from '../../ops/kubernetes/area.ts'
import { nfs } from '../../ops/nfs/area.ts'
import { packages } from '../../ops/packages/area.ts'
import { ray } from '../../ops/ray/area.ts'
import { slurm } from '../../ops/slurm/area.ts'
import { trust } from '../../ops/trust/area.ts'

export const AREAS: readonly AreaEntry[] = [trust, packages, nfs, env, ray, slurm, kubernetes]

export async function loadAreas(entries: readonly AreaEntry[] = AREAS): Promise<readonly AreaMaker[]> {
  return await Promise.all(entries.map(async ({ load }) => (await load()).area))
}

/** Their parts of hosts.yaml, and what launchers and engines use. */
export async function fileSections(): Promise<readonly Section[]> {
  const others = [import('../../scheduler/launch/section.ts'), import('../../scheduler/launch/rows.ts')]
  return await Promise.all([
    ...AREAS.map(async ({ section }) => (await section()).section),
    ...others.map(async (module) => (await module).section),
  ])
}
