/**
 * Trust: the hosts of a mesh log in to each other without a password. Keys are made on the hosts and stay there; public keys and
 * host keys travel over the connections that Muster has authenticated, never through ssh-keyscan.
 */
import { defineArea } from '../kernel/area.ts'
import { type TrustFacts, trustFacts } from './facts.ts'
import { planTrust, type TrustWanted, trustWantedOf } from './plan.ts'
import { verifyTrust } from './verify.ts'

export { left } from './left.ts'

export const area = defineArea<TrustWanted, TrustFacts>({
  name: 'trust',
  wantedOf: trustWantedOf,
  hostsOf: ({ members, unusable }) => [...members.map(({ name }) => name), ...unusable.keys()],
  factsOf: () => trustFacts,
  plan: planTrust,
  verify: ({ members }, areaFacts, hostExec) => verifyTrust(members, areaFacts, hostExec),
})
