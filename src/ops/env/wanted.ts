/** What hosts.yaml declares about the environment, and the paths on hosts. Pure. */
import { createHash } from 'node:crypto'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Declared, DeclaredFile } from '../kernel/area.ts'
import { type NfsSpec, section as nfsSection } from '../nfs/section.ts'
import { type EnvironmentSpec, section } from './section.ts'

export type EnvWanted<Kind extends EnvironmentSpec['kind'] = EnvironmentSpec['kind']> = {
  readonly spec: Extract<EnvironmentSpec, { kind: Kind }>
  /** Undefined: the others get the environment of `spec.from`. */
  readonly file?: DeclaredFile
  /** A hash of the file's contents and the settings. */
  readonly key: string
  /** Hosts that see another host's directory over NFS, and that host, which maintains it. */
  readonly sharedBy: ReadonlyMap<string, string>
}

export const AREA = 'env'

export function envWantedOf({ inventory, files }: Declared): EnvWanted | undefined {
  const spec = sectionOf(inventory, section)
  if (spec === undefined) return undefined
  const file = files?.get(spec.file ?? '')
  const content = file?.kind === 'text' ? file.digest : ''
  const parts = [spec.kind, spec.kind === 'venv' ? spec.python : '', content]
  return {
    spec,
    ...(file === undefined ? {} : { file }),
    key: createHash('sha256').update(JSON.stringify(parts)).digest('hex').slice(0, 16),
    sharedBy: sharedBy(spec, sectionOf(inventory, nfsSection) ?? []),
  }
}

/** The directory for what one host makes and the others receive; one for each environment, whatever its contents. */
export function parcelOf({ spec }: Pick<EnvWanted, 'spec'>): string {
  if (spec.kind === 'venv') return wheelsOf({ spec }).root
  return `${PARCELS}/${parcelName(spec.kind === 'docker' ? spec.image : (directoryOf(spec) ?? spec.kind))}`
}

/** Where wheels are on a host, and what it notes about them. */
export type WheelsPlaces = {
  readonly root: string
  /** In the root: the wheels of the host that is followed now, so that those of another one are never taken for them. */
  readonly parcel: string
  /** In the home directory, never in a directory of wheels, which hosts may share. Nothing is copied into it but below `of-HOST`. */
  readonly notes: string
  /** In the notes: the lock that this host itself gathered for the parcel. Without it the parcel is not its own. */
  readonly own: string
  /** In the notes: says that the parcel was copied here, rather than seen in a directory that hosts share. */
  readonly brought: string
  /** In the notes: the host whose wheels, with no hashes to compare them with, are installed in the environment. */
  readonly filledBy: string
  /** The parcel of earlier versions. It does not say whose it is. */
  readonly legacy: string
}

export function wheelsOf({ spec }: Pick<EnvWanted<'venv'>, 'spec'>): WheelsPlaces {
  const { path, from, wheels = PARCELS } = spec
  // Not the name of the legacy one: it may hold whatever another host sent.
  const name = parcelName(`venv ${path}`)
  const [root, notes] = [`${wheels}/${name}`, `${PARCELS}/${name}`]
  return {
    root,
    parcel: `${root}/of-${from}`,
    notes,
    own: `${notes}/own-${from}`,
    brought: `${notes}/brought-${from}`,
    filledBy: `${notes}/filled-by`,
    legacy: `${wheels}/${parcelName(path)}`,
  }
}

function parcelName(of: string): string {
  return `muster-${createHash('sha256').update(of).digest('hex').slice(0, 16)}`
}

/** The file in the parcel that is written last and lists its contents; its name depends on what was declared. */
export function contentOf({ key }: Pick<EnvWanted, 'key'>): string {
  return `content-${key}`
}

export const PARCELS = '~/.cache/muster/env'

/** The directory on the hosts; undefined: only the hosts know it. */
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
