/** Under which names known_hosts is searched for an endpoint, as ssh does (get_hostfile_hostname_ipaddr, sshconnect.c). */
import type { Endpoint } from '../host.ts'

const DEFAULT_PORT = 22

export type Named = Pick<Endpoint, 'address' | 'port' | 'hostKeyAlias'>

/** `address`, `[address]:port` when the port is not 22, or the HostKeyAlias as it is. */
export function lookupNameOf({ address, port, hostKeyAlias }: Named): string {
  if (hostKeyAlias !== undefined) return hostKeyAlias
  return port === DEFAULT_PORT ? address : `[${address}]:${port}`
}

/** Where nothing is known about the name with its port, ssh looks for the address without it; undefined: it does not. */
export function secondLookupNameOf({ address, port, hostKeyAlias }: Named): string | undefined {
  return hostKeyAlias === undefined && port !== DEFAULT_PORT ? address : undefined
}
