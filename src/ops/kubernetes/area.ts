import type { AreaEntry } from '../kernel/area-entry.ts'

export const kubernetes: AreaEntry = {
  name: 'k8s',
  summary: 'inspect a Kubernetes cluster: nodes, pods, logs, and why a pod waits',
  verbs: {
    status: 'check kubectl, credentials, rights, nodes, and extensions for gangs and queues',
    up: 'create the namespace that hosts.yaml names',
    down: 'change nothing: Muster never deletes a namespace',
  },
  section: () => import('./section.ts'),
  load: () => import('./cluster.ts'),
}
