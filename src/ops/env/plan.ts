/** What the plans for venv, conda and Docker share. Pure. */
import type { AreaFacts, ChangeDirection } from '../kernel/area.ts'
import { type Known, type KnownFacts, knownValue } from '../kernel/fact.ts'
import { blocked, type Operation, operationId, operationOf, type Verdict } from '../kernel/operation.ts'
import { keepersOf, sharedHomeSentence } from '../kernel/shared-home.ts'
import type { DockerFacts } from './docker.ts'
import type { InHome, ParcelFacts, PrefixFacts, SystemFacts } from './facts.ts'
import { AREA, type EnvWanted } from './wanted.ts'

export type EnvFacts = {
  readonly system: SystemFacts
  readonly content: PrefixFacts | DockerFacts
  readonly parcel: ParcelFacts
  /** What lies in the home directory and on its file system; undefined: not asked. */
  readonly inHome?: InHome
  /** Whether it can make a conda environment; undefined: not asked. */
  readonly condaTool?: boolean
}
export type OwnFacts = KnownFacts<EnvFacts>
export type EnvAreaFacts = AreaFacts<EnvFacts>
export type Prefix = Extract<PrefixFacts, { kind: 'venv' | 'conda' }>

export const prefixFactOf = ({ content }: OwnFacts) => content as Known<PrefixFacts>

export const envId = (name: string, host: string): string => operationId(AREA, name, host)

export function operation(
  name: string,
  host: string,
  title: string,
  verdict: Verdict,
  after?: readonly string[],
): Operation {
  return operationOf(AREA, host, name, title, verdict, after)
}

/** What makes the packages (name to version) of an environment those that are wanted, as lines of a diff. */
export function packageChanges(
  there: ReadonlyMap<string, string>,
  wanted: ReadonlyMap<string, string>,
  broken: readonly string[] = [],
): string[] {
  const changes = [...wanted].flatMap(([name, version]) => {
    const own = there.get(name)
    if (own === undefined) return [`+ ${name} ${version}`]
    if (own !== version) return [`~ ${name} ${own} → ${version}`]
    return broken.includes(name) ? [`~ ${name} ${version}: its list of files is missing`] : []
  })
  return [...changes, ...[...there].flatMap(([name, own]) => (wanted.has(name) ? [] : [`- ${name} ${own}`]))]
}

/** Blocks all hosts if the file of the environment cannot be read. */
export function fileTrouble({ spec, file }: EnvWanted): Operation[] | undefined {
  if (file?.kind !== 'unreadable') return undefined
  const cause = `${file.path} cannot be read: ${file.because}`
  return spec.hosts.map((host) => operation('file', host, 'source of the environment', blocked(host, 'no-file', cause)))
}

/** By host the verdict for what another host takes care of: on an NFS share of hosts.yaml, or in a shared home. */
export function keptElsewhere(
  direction: ChangeDirection,
  { spec, sharedBy }: EnvWanted,
  { facts, sharedHomes = [] }: EnvAreaFacts,
  what: keyof InHome = 'environment',
): ReadonlyMap<string, Verdict & { readonly keeper: string }> {
  const isInHome = (host: string): boolean => knownValue(facts.get(host)?.facts.inHome)?.[what] === true
  // The followed host comes first: it has the environment, or makes it.
  const isFirst = (host: string) => direction === 'up' && host === spec.from
  const homes = sharedHomes.map(({ hosts, path }) => ({
    hosts: hosts.filter(isInHome).toSorted((one, two) => Number(isFirst(two)) - Number(isFirst(one))),
    path,
  }))
  const kept = [
    ...[...keepersOf(homes)].map(([host, shared]) => [host, shared.keeper, sharedHomeSentence(shared)] as const),
    ...[...sharedBy].map(
      ([host, keeper]) => [host, keeper, `it is on an NFS share, and ${keeper} takes care of it`] as const,
    ),
  ]
  return new Map(kept.map(([host, keeper, because]) => [host, { kind: 'nothing', because, keeper }]))
}
