/** NFS: a server's exports and the mounts of its clients, as hosts.yaml declares them. */
import { type AreaFacts, type ChangeDirection, defineArea } from '../kernel/area.ts'
import { ifKnown, type Operation, operationId, unusableHost, type Verdict } from '../kernel/operation.ts'
import { installVerdict, missingPackages, removalVerdict } from '../kernel/packages.ts'
import {
  AREA,
  exportsId,
  type HostFactsOfNfs,
  mountId,
  type NfsFacts,
  nfsFacts,
  packagesOf,
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
  const install = operation(
    host,
    operationId(AREA, 'packages', host),
    'NFS packages',
    ifKnown(host, 'the packages', own.packages, (packages) => {
      const names = packagesOf(wanted, host)
      const missing = missingPackages(names, packages)
      if (missing.length === 0)
        return { kind: 'nothing', because: `${names[packages.manager].join(' and ')} installed` }
      return installVerdict(host, AREA, packages.manager, missing)
    }),
  )
  const serving =
    served.length === 0
      ? []
      : [
          operation(host, exportsId(host), 'exports', planExports(host, own, served)),
          operation(host, serviceId(host), 'NFS server', planService(host, own)),
        ]
  const mounting = mounted.map((share) => ({
    ...operation(host, mountId(host, share.point), `mount at ${share.point}`, planMount(host, own, share)),
    after: [exportsId(share.server), serviceId(share.server)],
  }))
  return [install, ...serving, ...mounting]
}

/** Clients first, then their servers, then packages. */
function planDown(host: string, own: HostFactsOfNfs, served: readonly Share[], mounted: readonly Share[]): Operation[] {
  const unmounting = mounted.map((share) =>
    operation(host, mountId(host, share.point), `mount at ${share.point}`, planUnmount(host, own, share)),
  )
  const after = served.flatMap(({ clients, point }) => clients.map((client) => mountId(client, point)))
  const serving =
    served.length === 0 ? [] : [{ ...operation(host, exportsId(host), 'exports', planUnexport(host, own)), after }]
  const removal = operation(
    host,
    operationId(AREA, 'packages', host),
    'NFS packages',
    ifKnown(host, 'the packages', own.packages, (packages) =>
      removalVerdict(host, AREA, packages, 'Muster installed no package for NFS'),
    ),
  )
  return [...unmounting, ...serving, removal]
}

function operation(host: string, id: string, title: string, verdict: Verdict): Operation {
  return { id, area: AREA, host, title, after: [], verdict }
}

/** NFS: a server's exports and the mounts of its clients, as hosts.yaml declares them. */

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
