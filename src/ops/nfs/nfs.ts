/** NFS: a server's exports and the mounts of its clients, as hosts.yaml declares them. */
import { type AreaFacts, type ChangeDirection, defineArea } from '../kernel/area.ts'
import { ifKnown, nothing, type Operation, operationOf, unusableHost } from '../kernel/operation.ts'
import { installVerdict, missingPackages, removalVerdict } from '../kernel/packages.ts'
import {
  AREA,
  exportsId,
  exportsOperation,
  type HostFactsOfNfs,
  mountId,
  mountOperation,
  type NfsFacts,
  nfsFacts,
  packagesOf,
  packagesOperation,
  serviceId,
} from './facts.ts'
import { planMount, planUnmount } from './plan-client.ts'
import { planExports, planService, planUnexport } from './plan-server.ts'
import { verifyNfs } from './verify.ts'
import { hostsOfNfs, type NfsWanted, type Share, wantedNfs } from './wanted.ts'

export function planNfs(direction: ChangeDirection, wanted: NfsWanted, { facts }: AreaFacts<NfsFacts>): Operation[] {
  return hostsOfNfs(wanted).flatMap((host) => {
    const own = facts.get(host)?.facts
    if (own === undefined) return []
    const because = wanted.unusable.get(host)
    if (because !== undefined && direction === 'up') return [unusableHost(AREA, host, because)]
    const served = wanted.shares.filter(({ server }) => server === host)
    const mounted = wanted.shares.filter(({ clients }) => clients.includes(host))
    return direction === 'up' ? planUp(host, own, wanted, served, mounted) : planDown(host, own, served, mounted)
  })
}

function planUp(
  host: string,
  own: HostFactsOfNfs,
  wanted: NfsWanted,
  served: readonly Share[],
  mounted: readonly Share[],
): Operation[] {
  const install = ifKnown(host, 'the packages', own.packages, (packages) => {
    const names = packagesOf(wanted, host)
    const missing = missingPackages(names, packages)
    return missing.length === 0
      ? nothing(`${names[packages.manager].join(' and ')} installed`)
      : installVerdict(AREA, packages.manager, missing)
  })
  const exporting = () => exportsOperation(host, planExports(host, own, served))
  const running = () => operationOf(AREA, host, 'server', 'NFS server', planService(host, own))
  const serving = served.length === 0 ? [] : [exporting(), running()]
  const mounting = mounted.map((share) =>
    mountOperation(host, share, planMount(host, own, share), [exportsId(share.server), serviceId(share.server)]),
  )
  return [packagesOperation(host, install), ...serving, ...mounting]
}

/** Clients first, then their servers, then packages. */
function planDown(host: string, own: HostFactsOfNfs, served: readonly Share[], mounted: readonly Share[]): Operation[] {
  const unmounting = mounted.map((share) => mountOperation(host, share, planUnmount(host, own, share)))
  const after = served.flatMap(({ clients, point }) => clients.map((client) => mountId(client, point)))
  const serving = served.length === 0 ? [] : [exportsOperation(host, planUnexport(host, own), after)]
  const removal = ifKnown(host, 'the packages', own.packages, (packages) =>
    removalVerdict(AREA, packages, 'Muster installed no package for NFS'),
  )
  return [...unmounting, ...serving, packagesOperation(host, removal)]
}

export { left } from './left.ts'

export const area = defineArea<NfsWanted, NfsFacts>({
  name: 'nfs',
  wantedOf: wantedNfs,
  hostsOf: hostsOfNfs,
  factsOf: nfsFacts,
  isUsedByJobs: true,
  plan: planNfs,
  verify: verifyNfs,
})
