/** `muster k8s nodes`, `pods` and `why` */
import { formatBytes } from '../../base/format-bytes.ts'
import type { JsonRecord } from '../../base/json-lines.ts'
import { formatDuration } from '../../ops/kernel/finding.ts'
import { apiPath, type KubernetesRefusal } from '../../ops/kubernetes/api.ts'
import { itemsByTime, nodeRows, type PodRow, podRowOf, whyJob, whyPod } from '../../ops/kubernetes/rows.ts'
import { nodeOf, podOf } from '../../ops/kubernetes/usage.ts'
import { listObjects } from '../../ops/kubernetes/watch.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { formatTable } from '../output/table.ts'
import {
  inNamespace,
  inNamespaces,
  kubernetesName,
  type NamespaceOptions,
  namespaceOf,
  openCluster,
  pathOf,
  refused,
} from './open.ts'

const cut = (isCut: boolean, { stderr }: CliContext): void => {
  if (isCut) stderr.write('muster: Kubernetes: the list is too long; the rest is left out\n')
}

export const nodes: VerbCode = {
  help: `
Examples:
  muster k8s nodes                        show GPUs, cores and memory of each node, and what pods asked for
  muster k8s nodes --json
`,
  async run(options: GlobalOptions, context: CliContext) {
    using kubernetes = await openCluster(options, context)
    const { gpuResource } = kubernetes
    const { signal, stdout, stderr } = context
    const [found, pods] = await Promise.all([
      listObjects(kubernetes.api, apiPath('v1', 'nodes'), (object) => nodeOf(object, gpuResource), { signal }),
      listObjects(kubernetes.api, apiPath('v1', 'pods'), (object) => podOf(object, gpuResource), { signal }),
    ])
    if (!found.ok) return refused(found, context)
    const rows = nodeRows(found.items.values(), pods.ok ? pods.items.values() : undefined)
    if (!pods.ok) stderr.write(`muster: Kubernetes: what pods hold is unknown: ${pods.message}\n`)
    cut(found.isCut || (pods.ok && pods.isCut), context)
    if (options.json) for (const row of rows) stdout.write(jsonLine({ type: 'node', ...row }))
    else {
      const of = (used: number | undefined, all: number) => (used === undefined ? `${all}` : `${used}/${all}`)
      const bytes = (used: number | undefined, all: number) =>
        used === undefined ? formatBytes(all) : `${formatBytes(used)} / ${formatBytes(all)}`
      const table = rows.map((row) => [
        row.name,
        row.gpus === 0 ? '-' : of(row.gpusUsed, row.gpus),
        of(row.cpuUsedMilli && row.cpuUsedMilli / 1000, row.cpuMilli / 1000),
        bytes(row.memoryUsedBytes, row.memoryBytes),
        row.pods === undefined ? '' : String(row.pods),
        row.trouble,
      ])
      stdout.write(formatTable(['NODE', 'GPUS', 'CORES', 'MEMORY', 'PODS', ''], table))
    }
    return EXIT.ok
  },
}

export const pods: VerbCode = {
  define: (command) => inNamespaces(command),
  help: `
Examples:
  muster k8s pods                         show where pods run, and why others wait
  muster k8s pods -A --json
`,
  async run(options: NamespaceOptions, context: CliContext) {
    using kubernetes = await openCluster(options, context)
    const { signal, stdout, stderr, now } = context
    const where = await pathOf(kubernetes, 'v1', 'pods', options)
    if (!where.ok) return refused(where, context)
    const found = await listObjects(kubernetes.api, where.path, (object) => podRowOf(object, kubernetes.gpuResource), {
      signal,
    })
    if (!found.ok) return refused(found, context)
    cut(found.isCut, context)
    if (found.items.size === 0 && !options.json)
      stderr.write(`muster: no pods${where.namespace === undefined ? '' : ` in the namespace ${where.namespace}`}\n`)
    const order = ({ namespace, name }: PodRow) => `${namespace}/${name}`
    const rows = [...found.items.values()].sort((a, b) => order(a).localeCompare(order(b), 'en', { numeric: true }))
    if (options.json) for (const row of rows) stdout.write(jsonLine({ type: 'pod', ...row }))
    else {
      const age = ({ created }: PodRow) =>
        created === '' ? '' : formatDuration(Math.max(0, now() - Date.parse(created)))
      const table = rows.map((row) => [
        options.allNamespaces ? row.namespace : '',
        row.name,
        row.state,
        row.node,
        row.gpus === 0 ? '' : String(row.gpus),
        row.restarts === 0 ? '' : String(row.restarts),
        age(row),
        row.why,
      ])
      stdout.write(formatTable(['NAMESPACE', 'POD', 'STATE', 'NODE', 'GPUS', 'RESTARTS', 'AGE', ''], table))
    }
    return EXIT.ok
  },
}

const MOST_EVENTS = 250
const MOST_PODS = 250

export const why: VerbCode = {
  define: (command) => inNamespace(command.argument('<name>', 'name of a pod, or of a Job', kubernetesName)),
  help: `
Examples:
  muster k8s why train-0-x8k2p            explain why a pod waits, or how it ended
  muster k8s why train                    explain the same of a Job and its pods
`,
  async run(name: string, options: NamespaceOptions, context: CliContext) {
    using kubernetes = await openCluster(options, context)
    const where = await namespaceOf(kubernetes, options)
    if (!where.ok) return refused(where, context)
    const { signal, stdout } = context
    const { api } = kubernetes
    const own = (group: string, ...rest: string[]) => apiPath(group, 'namespaces', where.name, ...rest)
    const items = async (path: string, query: Record<string, string | number>): Promise<readonly JsonRecord[]> => {
      const answer = await api.request('GET', path, { query, signal })
      return answer.ok ? itemsByTime(answer.body) : []
    }
    const events = (kind: string) =>
      items(own('v1', 'events'), {
        fieldSelector: `involvedObject.kind=${kind},involvedObject.name=${name}`,
        limit: MOST_EVENTS,
      })
    const show = (kind: string, sentences: readonly string[]): number => {
      if (options.json) stdout.write(jsonLine({ type: 'why', kind, name, namespace: where.name, because: sentences }))
      else stdout.write(sentences.map((sentence) => `${sentence}\n`).join(''))
      return EXIT.ok
    }
    const pod = await api.request('GET', own('v1', 'pods', name), { signal })
    if (pod.ok) return show('Pod', whyPod(pod.body, await events('Pod'), kubernetes.gpuResource))
    if (pod.status !== 404) return refused(pod, context)
    const job = await api.request('GET', own('batch/v1', 'jobs', name), { signal })
    if (!job.ok) return refused(job.status === 404 ? noneOf(name, where.name, job) : job, context)
    const pods = await items(own('v1', 'pods'), {
      labelSelector: `batch.kubernetes.io/job-name=${name}`,
      limit: MOST_PODS,
    })
    return show('Job', whyJob(job.body, pods, await events('Job')))
  },
}

const noneOf = (name: string, namespace: string, refusal: KubernetesRefusal): KubernetesRefusal => ({
  ...refusal,
  message: `no pod and no Job ${name} in the namespace ${namespace}. List them: muster k8s pods`,
})
