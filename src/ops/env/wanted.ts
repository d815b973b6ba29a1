/** What hosts.yaml wants of the environments, and where things lie on the hosts. Pure. */
import { createHash } from 'node:crypto'
import type { EnvironmentSpec, NfsSpec } from '../../inventory/inventory.ts'
import type { Declared, DeclaredFile } from '../kernel/area.ts'

export type EnvWanted<Kind extends EnvironmentSpec['kind'] = EnvironmentSpec['kind']> = {
  readonly spec: Extract<EnvironmentSpec, { kind: Kind }>
  /** Undefined: the environment of `spec.from` is what the others get. */
  readonly file?: DeclaredFile
  /** Tells one content of the file from another; letters and digits. */
  readonly key: string
  /** Hosts whose directory is another host's, over NFS: that host looks after it. */
  readonly sharedBy: ReadonlyMap<string, string>
}

export const AREA = 'env'

export function envWantedOf({ inventory, environmentFile }: Declared): EnvWanted | undefined {
  const { environment: spec, nfs } = inventory
  if (spec === undefined) return undefined
  const content = environmentFile?.kind === 'text' ? environmentFile.digest : ''
  const parts = [spec.kind, spec.kind === 'venv' ? spec.python : '', content]
  return {
    spec,
    ...(environmentFile === undefined ? {} : { file: environmentFile }),
    key: createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16),
    sharedBy: sharedBy(spec, nfs),
  }
}

/** The directory that holds what is made on one host and brought to the others: one an environment, whatever is in it. */
export function parcelOf({ spec }: Pick<EnvWanted, 'spec'>): string {
  const base = spec.kind === 'venv' ? spec.wheels : undefined
  const name = spec.kind === 'docker' ? spec.image : (directoryOf(spec) ?? spec.kind)
  return `${base ?? PARCELS}/muster-${createHash('sha256').update(name).digest('hex').slice(0, 16)}`
}

/** The file in it that is written last and says what it holds, for this content of the file of hosts.yaml. */
export function contentOf({ key }: Pick<EnvWanted, 'key'>): string {
  return `content-${key}`
}

export const PARCELS = '~/.cache/muster/env'

/** The directory on the hosts; undefined: nobody can say without asking them. */
function directoryOf(spec: EnvironmentSpec): string | undefined {
  return spec.kind === 'venv' ? spec.path : spec.kind === 'conda' ? spec.prefix : undefined
}

function sharedBy(spec: EnvironmentSpec, shares: readonly NfsSpec[]): ReadonlyMap<string, string> {
  const directory = directoryOf(spec)
  if (directory === undefined) return new Map()
  const owners = new Map<string, string>()
  const shared = new Map<string, string>()
  for (const host of [spec.from, ...spec.hosts.filter((each) => each !== spec.from)]) {
    const place = placeOf(host, directory, shares)
    if (place === undefined) continue
    const owner = owners.get(place)
    if (owner === undefined) owners.set(place, host)
    else shared.set(host, owner)
  }
  return shared
}

/** `SERVER:PATH` of a directory that lies in a share. */
function placeOf(host: string, directory: string, shares: readonly NfsSpec[]): string | undefined {
  for (const { server, path, clients, mount } of shares) {
    const own = host === server ? path : clients.includes(host) ? mount : undefined
    if (own !== undefined && directory.startsWith(`${own}/`)) return `${server}:${path}${directory.slice(own.length)}`
  }
  return undefined
}
