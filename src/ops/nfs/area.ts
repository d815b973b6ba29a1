import type { AreaEntry } from '../kernel/area-entry.ts'

export const nfs: AreaEntry = {
  name: 'nfs',
  summary: 'export and mount NFS directories',
  verbs: {
    status: 'compare exports and mounts with hosts.yaml',
    up: 'export and mount the directories',
    down: 'unmount the directories, and remove the exports that Muster made',
    check: 'write a file on each host, read it on all others, and measure the speed',
  },
  section: () => import('./section.ts'),
  load: () => import('./nfs.ts'),
}
