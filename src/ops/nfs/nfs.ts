/** NFS: a server's exports and the mounts of its clients, as hosts.yaml declares them. */
import { defineArea } from '../kernel/area.ts'
import { type NfsFacts, nfsFacts } from './facts.ts'
import { planNfs } from './plan.ts'
import { verifyNfs } from './verify.ts'
import { hostsOfNfs, type NfsWanted, wantedNfs } from './wanted.ts'

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
