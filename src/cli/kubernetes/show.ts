/** `muster k8s nodes`, `pods` and `why` */

import { formatBytes } from '../../base/format-bytes.ts'
import { formatDuration } from '../../base/time-text.ts'
import { apiPath } from '../../ops/kubernetes/api.ts'
import { nodeRows, type PodRow, podRowOf } from '../../ops/kubernetes/rows.ts'
import { nodeOf, podOf } from '../../ops/kubernetes/usage.ts'
import { listObjects } from '../../ops/kubernetes/watch.ts'
import { readWorkload } from '../../ops/kubernetes/workload.ts'
import { type CliContext, EXIT, type GlobalOptions, type VerbCode } from '../command-line/verb.ts'
import { jsonLine } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
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
    if (options.json) for (const row of rows) stdout.write(jsonLine({ type: 'node', ...row }, context))
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
      stdout.write(formatTable(['NODE', 'GPUS', 'CORES', 'MEMORY', 'PODS', ''], table, stdout))
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
    const { signal, stdout, now } = context
    const where = await pathOf(kubernetes, 'v1', 'pods', options)
    if (!where.ok) return refused(where, context)
    const found = await listObjects(kubernetes.api, where.path, (object) => podRowOf(object, kubernetes.gpuResource), {
      signal,
    })
    if (!found.ok) return refused(found, context)
    cut(found.isCut, context)
    if (found.items.size === 0 && !options.json)
      notice(context, `muster: no pods${where.namespace === undefined ? '' : ` in the namespace ${where.namespace}`}\n`)
    const order = ({ namespace, name }: PodRow) => `${namespace}/${name}`
    const rows = [...found.items.values()].sort((a, b) => order(a).localeCompare(order(b), 'en', { numeric: true }))
    if (options.json) for (const row of rows) stdout.write(jsonLine({ type: 'pod', ...row }, context))
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
      stdout.write(formatTable(['NAMESPACE', 'POD', 'STATE', 'NODE', 'GPUS', 'RESTARTS', 'AGE', ''], table, stdout))
    }
    return EXIT.ok
  },
}

export const why: VerbCode = {
  define: (command) => inNamespace(command.argument('<name>', 'name of a pod or Job', kubernetesName)),
  help: `
Examples:
  muster k8s why train-0-x8k2p            explain why a pod waits, or how it ended
  muster k8s why train                    explain the same for a Job and its pods
`,
  async run(name: string, options: NamespaceOptions, context: CliContext) {
    using kubernetes = await openCluster(options, context)
    const where = await namespaceOf(kubernetes, options)
    if (!where.ok) return refused(where, context)
    const { signal, stdout, stderr } = context
    const { api, gpuResource } = kubernetes
    const found = await readWorkload(api, where.name, name, { gpuResource, signal })
    if (!found.ok) {
      const code = refused(found, context)
      if (found.status === 404) stderr.write('List the pods: muster k8s pods\n')
      return code
    }
    const { kind, because } = found.workload
    if (options.json) stdout.write(jsonLine({ type: 'why', kind, name, namespace: where.name, because }, context))
    else stdout.write(because.map((sentence) => `${sentence}\n`).join(''))
    return EXIT.ok
  },
}
