import type { AreaEntry } from '../kernel/area-entry.ts'

export const ray: AreaEntry = {
  name: 'ray',
  summary: 'run a Ray cluster, and jobs on it',
  verbs: {
    status: 'compare the nodes with hosts.yaml',
    up: 'start the head, then all workers',
    down: 'stop the nodes of this cluster, the head last',
  },
  section: () => import('./section.ts'),
  load: () => import('./ray.ts'),
}
