/** `k8s` in hosts.yaml. */
import { defined } from '../../base/defined.ts'
import type { JsonRecord } from '../../base/json-lines.ts'
import { defineSection, hostName } from '../../inventory/hosts-yaml-schema.ts'
import { anyMapping, object, text } from '../../inventory/yaml-reader.ts'

export type KubernetesSpec = {
  /** Of the kubeconfig; undefined: its current one. */
  readonly context?: string
  /** Undefined: that of the context. */
  readonly namespace?: string
  /** The host where kubectl and the kubeconfig are; undefined: this machine. */
  readonly via?: string
  /** Of jobs; undefined: each job names its own. */
  readonly image?: string
  /** Of Kueue. */
  readonly queue?: string
  /** Absolute or `~/…`, where kubectl runs; undefined: kubectl's own choice. */
  readonly kubeconfig?: string
  /** The resource that counts GPUs; undefined: that of NVIDIA's device plugin. */
  readonly gpuResource?: string
  /** Further fields of pods, and of their container, as the API has them. */
  readonly pod?: JsonRecord
  readonly container?: JsonRecord
}

/** It stands in paths of the API and in command lines. */
const dnsLabel = (type: string) =>
  text(type, [
    /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/,
    'may contain at most 63 lower-case letters, digits and hyphens, and must begin and end with a letter or digit',
  ])
const contextName = text('context', [/^[\w.:/@][\w.:/@+-]*$/, 'may contain letters, digits and _ . : / @ + - only'])
const image = text('container image', [
  /^[\w][\w./:@-]{0,511}$/,
  'is not a name of a container image, such as registry.example.org/lab/train:1',
])
const kubeconfig = text('path of a kubeconfig', [
  /^(~\/|\/)[\w./+@ -]*$/,
  'must begin with / or ~/, and may contain letters, digits, spaces and _ . / + @ - only',
])

const resource = text('resource', [
  /^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\/[A-Za-z0-9]([-\w.]{0,61}[A-Za-z0-9])?$/,
  'is not a name of a resource, such as nvidia.com/gpu',
])

export const section = defineSection(
  'k8s',
  {
    schema: object({
      context: {
        schema: contextName,
        about: 'The context of the kubeconfig.',
        example: 'lab',
        fallback: 'the current context',
      },
      namespace: {
        schema: dnsLabel('namespace'),
        about: 'The namespace where jobs run and that `muster k8s` inspects.',
        example: 'team-a',
        fallback: 'that of the context',
      },
      via: {
        schema: hostName,
        about:
          'The host where `kubectl` and the kubeconfig are. Muster runs `kubectl proxy` there and reaches it over its own SSH connection; no credential leaves the host.',
        example: 'm10',
        fallback: 'this machine',
      },
      image: {
        schema: image,
        about: 'The container image of jobs that do not name one.',
        example: 'lab/train:1',
        fallback: 'each job needs `--from-env image:NAME`',
      },
      queue: {
        schema: dnsLabel('queue'),
        about: 'The queue of Kueue (LocalQueue) that jobs wait in, if Kueue is installed.',
        example: 'gpu',
        fallback: 'none',
      },
      kubeconfig: {
        schema: kubeconfig,
        about: 'The kubeconfig, where `kubectl` runs.',
        example: '~/.kube/lab',
        fallback: "kubectl's own choice",
      },
      gpu_resource: {
        schema: resource,
        about: 'The resource that counts GPUs on the nodes.',
        example: 'amd.com/gpu',
        fallback: 'nvidia.com/gpu',
      },
      pod: {
        schema: anyMapping('fields of a pod'),
        about:
          'Additional fields for the pods of jobs, as in `spec` of a pod: `nodeSelector`, `tolerations`, `volumes`, `serviceAccountName` and others. Fields that Muster sets itself take precedence.',
        example: '{ nodeSelector: { pool: gpu } }',
        fallback: 'none',
      },
      container: {
        schema: anyMapping('fields of a container'),
        about:
          'Additional fields for the container of jobs: `volumeMounts`, `imagePullPolicy`, `securityContext` and others.',
        example: '{ imagePullPolicy: Always }',
        fallback: 'none',
      },
    }),
    about: 'A Kubernetes cluster, which Muster hands jobs to with `--engine k8s` and shows with `muster k8s`.',
  },
  (raw, context): KubernetesSpec => {
    const { via, gpu_resource: gpuResource, ...rest } = raw
    return { ...rest, ...defined({ gpuResource, via: via && context.knownHost(via) }) }
  },
  { needsNoHost: true },
)
