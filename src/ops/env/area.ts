import type { AreaEntry } from '../kernel/area-entry.ts'

export const env: AreaEntry = {
  name: 'env',
  summary: 'give hosts the same software environment',
  verbs: {
    status: 'compare the environment of each host with hosts.yaml',
    up: 'create or update the environment on its hosts',
    sync: 'repair what differs (the same as up)',
    down: 'remove the environment that Muster created',
  },
  section: () => import('./section.ts'),
  load: () => import('./env.ts'),
}
