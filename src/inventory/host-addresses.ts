/** At which address hosts reach each other. */
import type { Endpoint, Host } from './host.ts'

/** Through a tunnel of this machine, or this machine itself: no other host reaches it there. */
const OWN = /^(localhost$|127\.|::1$)/

/** By name: the address of hosts.yaml, else HostName of ssh_config, else the name. Of a host without an endpoint nothing is asked. */
export function hostAddresses(
  hosts: readonly Host[],
  endpoints: readonly Pick<Endpoint, 'host' | 'transport' | 'address'>[],
): ReadonlyMap<string, string> {
  const reached = new Map(endpoints.map((endpoint) => [endpoint.host, endpoint]))
  return new Map(
    hosts.map(({ name, address }) => {
      const endpoint = reached.get(name)
      const isOwn = endpoint === undefined || endpoint.transport === 'local' || OWN.test(endpoint.address)
      return [name, address ?? (isOwn ? name : endpoint.address)]
    }),
  )
}
