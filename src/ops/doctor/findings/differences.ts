/** Differences between hosts that should be alike. An unknown value is not a difference. */
import { getOrMake } from '../../../base/collections.ts'
import { foldHostSet } from '../../../inventory/host-set.ts'
import type { Finding, Gravity } from '../../kernel/finding.ts'
import type { MachineFacts } from '../fact-script.ts'

type Trait = {
  readonly id: string
  readonly name: string
  readonly gravity: Gravity
  read(facts: MachineFacts): string | undefined
}

const TRAITS: readonly Trait[] = [
  { id: 'differs-architecture', name: 'the architecture', gravity: 'risk', read: ({ system }) => system?.architecture },
  {
    // Ray and pickled objects want the same minor version everywhere.
    id: 'differs-python',
    name: 'the version of Python',
    gravity: 'risk',
    read: ({ python }) => (typeof python === 'object' ? python.version.split('.').slice(0, 2).join('.') : undefined),
  },
  { id: 'differs-kernel', name: 'the kernel', gravity: 'note', read: ({ system }) => kernelOf(system) },
  {
    id: 'differs-distribution',
    name: 'the distribution',
    gravity: 'note',
    read: ({ distribution }) => distribution?.name,
  },
  {
    // By its offset, as one zone has several names.
    id: 'differs-time-zone',
    name: 'the time zone',
    gravity: 'note',
    read: ({ system }) => system?.utcOffset && `UTC${system.utcOffset}`,
  },
]

function kernelOf(system: MachineFacts['system']): string | undefined {
  const { kernelName, kernelRelease } = system ?? {}
  return kernelRelease === undefined ? undefined : `${kernelName ?? ''} ${kernelRelease}`.trim()
}

export function differenceFindings(factsOf: ReadonlyMap<string, MachineFacts>): Finding[] {
  return TRAITS.flatMap((trait) => traitFindings(trait, factsOf))
}

function traitFindings({ id, name, gravity, read }: Trait, factsOf: ReadonlyMap<string, MachineFacts>): Finding[] {
  const hostsByValue = new Map<string, string[]>()
  for (const [host, facts] of factsOf) {
    const value = read(facts)
    if (value) getOrMake(hostsByValue, value, () => []).push(host)
  }
  if (hostsByValue.size < 2) return []
  const groups = [...hostsByValue].toSorted(([, one], [, other]) => other.length - one.length)
  const known = groups.reduce((sum, [, hosts]) => sum + hosts.length, 0)
  const [usual, usualHosts = []] = groups[0] ?? []
  if (usual === undefined) return []
  if (usualHosts.length * 2 <= known) {
    // Without a majority all groups are named.
    const cause = `${name} is not the same: ${groups.map(([value, hosts]) => `${value} on ${foldHostSet(hosts)}`).join(', ')}`
    return groups.flatMap(([, hosts]) => hosts.map((host) => ({ host, gravity, id, cause })))
  }
  const others = usualHosts.length === 1 ? '1 other' : `${usualHosts.length} others`
  return groups
    .slice(1)
    .flatMap(([value, hosts]) =>
      hosts.map((host) => ({ host, gravity, id, cause: `${name} differs from ${others}: ${value}, there ${usual}` })),
    )
}
