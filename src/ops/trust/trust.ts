/**
 * Trust: the hosts of a mesh log in to each other without a password. Keys are made on the hosts and stay there; public halves
 * and host keys travel over the connections that Muster has authenticated, never through ssh-keyscan.
 */
import { type Declared, defineArea } from '../kernel/area.ts'
import { type TrustFacts, trustFacts } from './facts.ts'
import type { Member } from './lines.ts'
import { planTrust, type TrustWanted } from './plan.ts'
import { verifyTrust } from './verify.ts'

export function trustWantedOf({ inventory, endpoints }: Declared): TrustWanted | undefined {
  if (inventory.trustMesh === undefined) return undefined
  const members: Member[] = []
  const unusable = new Map<string, string>()
  for (const name of inventory.trustMesh) {
    const endpoint = endpoints.get(name)
    if (endpoint === undefined) continue
    const { address, port, user, transport } = endpoint
    if (transport === 'local')
      unusable.set(name, 'hosts.yaml reaches it without SSH, so the others cannot log in to it')
    else members.push({ name, address, port, user })
  }
  return { members, unusable }
}

export const trustArea = defineArea<TrustWanted, TrustFacts>({
  name: 'trust',
  wantedOf: trustWantedOf,
  hostsOf: ({ members, unusable }) => [...members.map(({ name }) => name), ...unusable.keys()],
  factsOf: () => trustFacts,
  plan: planTrust,
  verify: ({ members }, world, looker) => verifyTrust(members, world, looker),
})
