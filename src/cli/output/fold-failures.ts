/** Why hosts failed, for people: those with the same reason share one line. */
import { getOrMake } from '../../base/collections.ts'
import { foldHostSet } from '../../inventory/host-set.ts'

export type HostFailure = { readonly host: string; readonly address: string; readonly reason: string }

/** Where a reason is shared by several hosts, HOST stands for the name and the address of each. In the order of the first host. */
export function foldFailures(failures: Iterable<HostFailure>): string {
  const groups = new Map<string, HostFailure[]>()
  for (const failure of failures) getOrMake(groups, withoutNames(failure), () => []).push(failure)
  return [...groups]
    .map(([shared, members]) => {
      const [first] = members
      if (members.length === 1) return `muster: ${first?.host}: ${first?.reason}\n`
      return `muster: ${foldHostSet(members.map(({ host }) => host))} (${members.length}): ${shared}\n`
    })
    .join('')
}

const withoutNames = ({ host, address, reason }: HostFailure): string =>
  reason.replace(/[\w-]+(?:\.[\w-]+)*/g, (word) => (word === host || word === address ? 'HOST' : word))
