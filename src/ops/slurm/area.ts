import type { AreaEntry } from '../kernel/area-entry.ts'

export const slurm: AreaEntry = {
  name: 'slurm',
  summary: 'set up a Slurm cluster',
  verbs: {
    status: 'compare the cluster with hosts.yaml, and show what is wrong with its nodes',
    up: 'set up munge, slurmctld and slurmd with one configuration',
    down: 'end the jobs and the daemons of the cluster, and remove what Muster made',
    check: 'also run a command on every node through srun',
  },
  section: () => import('./section.ts'),
  load: () => import('./slurm.ts'),
}
