/** What hosts.yaml declares about NFS: which host exports what to which clients, and where they mount it. Pure. */
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Declared } from '../kernel/area.ts'
import { trimmed } from './mounts.ts'
import { section } from './section.ts'

export type Share = {
  readonly server: string
  /** Where the clients reach it. */
  readonly serverAddress: string
  readonly path: string
  /** The hosts that mount it. */
  readonly clients: readonly string[]
  readonly clientAddresses: readonly string[]
  /** The clients in the exports file: their addresses, or what was declared. */
  readonly exportTo: readonly string[]
  readonly options: readonly string[]
  /** Octal, of the exported directory; undefined: as it is. */
  readonly mode?: string
  readonly point: string
  readonly mountOptions: readonly string[]
}

export type NfsWanted = {
  readonly shares: readonly Share[]
  /** Why a host cannot take part. */
  readonly unusable: ReadonlyMap<string, string>
}

export function wantedNfs({ inventory, endpoints }: Declared): NfsWanted | undefined {
  const specs = sectionOf(inventory, section)
  if (specs === undefined) return undefined
  const unusable = new Map<string, string>()
  const addressOf = (host: string): string => {
    const endpoint = endpoints.get(host)
    if (endpoint === undefined || endpoint.transport === 'local' || /^(localhost|127\.|::1$)/.test(endpoint.address)) {
      unusable.set(host, 'hosts.yaml gives no address at which the other hosts reach it')
    }
    return endpoint?.address ?? host
  }
  const shares = specs.map((spec): Share => {
    // The server has the directory itself where both are the same.
    const clients = spec.clients.filter((host) => host !== spec.server || spec.mount !== spec.path)
    const serverAddress = addressOf(spec.server)
    const clientAddresses = [...new Set(clients.map(addressOf))]
    return {
      server: spec.server,
      serverAddress: serverAddress.includes(':') ? `[${serverAddress}]` : serverAddress,
      path: trimmed(spec.path),
      clients,
      clientAddresses,
      exportTo: spec.exportTo ?? clientAddresses,
      options: wordsOf(spec.options),
      ...(spec.mode === undefined ? {} : { mode: spec.mode }),
      point: trimmed(spec.mount),
      mountOptions: wordsOf(spec.mountOptions),
    }
  })
  return { shares, unusable }
}

export function hostsOfNfs({ shares }: NfsWanted): string[] {
  return [...new Set(shares.flatMap(({ server, clients }) => [server, ...clients]))]
}

export function sourceOf({ serverAddress, path }: Pick<Share, 'serverAddress' | 'path'>): string {
  return `${serverAddress}:${path}`
}

function wordsOf(options: string): string[] {
  return options.split(',').flatMap((word) => (word.trim() === '' ? [] : [word.trim()]))
}
