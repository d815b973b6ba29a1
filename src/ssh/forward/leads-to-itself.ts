/** Forwards whose host is this machine: a listener here would be what they lead to, and each connection would open the next. */
import { hostname, networkInterfaces } from 'node:os'
import type { Endpoint } from '../../inventory/host.ts'
import { type ForwardSpec, isEverywhere, isLoopback } from './forward-spec.ts'

/** Whether it would, if it listens on the port that it leads to. A name that the host resolves may hide it. */
export function leadsToItself(endpoint: Endpoint | undefined, spec: ForwardSpec): boolean {
  if (spec.kind !== 'local' || endpoint === undefined || !isThisMachine(endpoint)) return false
  const isLocal = spec.to.address === 'localhost' || isLoopback(spec.to.address)
  return isLocal && (isLoopback(spec.listen.address) || isEverywhere(spec.listen.address))
}

function isThisMachine({ transport, address, jump, proxyCommand }: Endpoint): boolean {
  if (transport === 'local') return true
  if (jump.length > 0 || proxyCommand !== undefined) return false
  const own = Object.values(networkInterfaces()).flatMap((each) => each?.map((card) => card.address) ?? [])
  return isLoopback(address) || ['localhost', hostname(), ...own].includes(address)
}
