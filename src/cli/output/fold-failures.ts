/** Why hosts failed, for people: those with the same reason share one line. */
import { getOrMake } from '../../base/collections.ts'
import { foldHostSet } from '../../inventory/host-set.ts'

export type HostFailure = { readonly host: string; readonly address: string; readonly reason: string }

/** In the order of each reason's first host. In a reason of several hosts, HOST stands for their names and addresses. */
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
