/** An area that only looks, as CONTRIBUTING.md shows it: one folder, and one line in the list of areas. */
import type { AreaEntry } from '../../../src/ops/kernel/area-entry.ts'

export const pbs: AreaEntry = {
  name: 'pbs',
  summary: 'check the nodes of a PBS cluster',
  verbs: {
    status: 'compare the states of the nodes with hosts.yaml',
    up: 'check the nodes (starts nothing)',
    down: 'stop nothing: PBS belongs to its administrators',
  },
  section: () => import('./section.ts'),
  load: () => import('./pbs.ts'),
}
