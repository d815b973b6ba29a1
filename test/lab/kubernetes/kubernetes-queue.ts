/** A Kubernetes of the lab and a queue that hands jobs to it, for tests with a real API server. */
import { appendFileSync } from 'node:fs'
import { KUBERNETES_SECTION, type KubernetesLab, kubernetesLab } from '../cluster/kubernetes-lab.ts'
import type { Lab } from '../cluster/lab.ts'
import { hostsFileOf, type LabQueue, labQueue } from '../jobs/lab-queue.ts'

export type KubernetesQueue = {
  readonly lab: Lab
  readonly kubernetes: KubernetesLab
  readonly queue: LabQueue
  /** hosts.yaml. */
  readonly file: string
  /** Of the scheduler and of all jobs in Kubernetes. */
  stop(): Promise<void>
}

/** `section`: `k8s` in hosts.yaml. `environmentOf`: what the user has besides the lab's own. */
export async function kubernetesQueue(
  options: Parameters<typeof kubernetesLab>[0] & {
    readonly section?: string
    readonly environmentOf?: (lab: Lab) => NodeJS.ProcessEnv
  } = {},
): Promise<KubernetesQueue> {
  const { section = KUBERNETES_SECTION, environmentOf = () => ({}), ...labOptions } = options
  const { lab, kubernetes } = await kubernetesLab(labOptions)
  const file = hostsFileOf(lab, 'k8s')
  appendFileSync(file, section)
  const queue = labQueue(lab, file, environmentOf(lab))
  return {
    ...{ lab, kubernetes, queue, file },
    async stop() {
      await queue.stop()
      await kubernetes.kubectl('delete jobs --all --wait=true --cascade=foreground --timeout=60s')
    },
  }
}
