import type { AreaEntry } from '../kernel/area-entry.ts'

export const trust: AreaEntry = {
  name: 'trust',
  summary: 'let hosts log in to each other without a password',
  verbs: {
    status: 'compare keys and known hosts with hosts.yaml',
    up: 'create keys, and authorize them on all hosts of the mesh',
    down: 'remove the keys and lines that Muster added',
  },
  section: () => import('./section.ts'),
  load: () => import('./trust.ts'),
}
