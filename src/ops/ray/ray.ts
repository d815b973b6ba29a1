/** Ray: a head and its workers, as hosts.yaml declares them. */
import { defineArea } from '../kernel/area.ts'
import { type RayFacts, rayFacts } from './facts.ts'
import { planRay } from './plan.ts'
import { verifyRay } from './verify.ts'
import { nodesOf, type RayWanted, wantedRay } from './wanted.ts'

export { left } from './left.ts'

export const area = defineArea<RayWanted, RayFacts>({
  name: 'ray',
  wantedOf: wantedRay,
  hostsOf: (wanted) => nodesOf(wanted).map(({ host }) => host),
  factsOf: rayFacts,
  plan: planRay,
  verify: verifyRay,
})
