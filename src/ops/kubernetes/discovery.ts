/** What an API server knows beyond its core, and what it lets this user do. */
import { list, record, textOf } from '../../base/json-lines.ts'
import { apiPath, type KubernetesApi, type KubernetesRefusal } from './api.ts'

/** Kinds that change how jobs are handed over, by the groups that may have them. */
export const EXTENSIONS = {
  /** Gangs of Kubernetes itself. */
  podGroup: { title: 'PodGroup', group: 'scheduling.k8s.io', resource: 'podgroups' },
  kueue: { title: 'Kueue', group: 'kueue.x-k8s.io', resource: 'localqueues' },
  volcano: { title: 'Volcano', group: 'scheduling.volcano.sh', resource: 'podgroups' },
  dijob: { title: 'DIJob', group: 'diengine.opendilab.org', resource: 'dijobs' },
} as const

export type Extension = keyof typeof EXTENSIONS

/** The group with its version, such as `kueue.x-k8s.io/v1beta1`, of each extension that the server has. */
export type KnownExtensions = Readonly<Partial<Record<Extension, string>>>

/** Never rejects. */
export async function findExtensions(
  api: KubernetesApi,
  signal?: AbortSignal,
): Promise<{ readonly ok: true; readonly extensions: KnownExtensions } | KubernetesRefusal> {
  const options = signal && { signal }
  const groups = await api.request('GET', '/apis', options)
  if (!groups.ok) return groups
  const versions = new Map(list(groups.body.groups).map((group) => [textOf(group.name), versionsOf(group)]))
  const extensions: Partial<Record<Extension, string>> = {}
  for (const [name, { group, resource }] of Object.entries(EXTENSIONS)) {
    for (const version of versions.get(group) ?? []) {
      const answer = await api.request('GET', apiPath(version), options)
      // A group whose server does not answer is unknown for now.
      if (!answer.ok && answer.status === 0) return answer
      if (!answer.ok || !list(answer.body.resources).some((each) => each.name === resource)) continue
      extensions[name as Extension] = version
      break
    }
  }
  return { ok: true, extensions }
}

const MOST_VERSIONS = 5

/** The preferred one first. */
function versionsOf(group: Readonly<Record<string, unknown>>): readonly string[] {
  const preferred = textOf(record(group.preferredVersion)?.groupVersion)
  const all = list(group.versions).map((version) => textOf(version.groupVersion))
  const isVersion = (text: string) => /^[a-z0-9.-]+\/v[a-z0-9]+$/.test(text)
  return [...new Set([preferred, ...all])].filter(isVersion).slice(0, MOST_VERSIONS)
}

/** What somebody wants to do to objects of a kind. */
export type KubernetesAction = {
  readonly verb: 'get' | 'list' | 'watch' | 'create' | 'patch' | 'delete'
  /** Empty: the core. */
  readonly group: string
  readonly resource: string
  readonly subresource?: string
  /** Absent: in all namespaces, or the kind has none. */
  readonly namespace?: string
}

/** Asks the API server, which answers for the credentials of the kubeconfig. Never rejects. */
export async function mayI(
  api: KubernetesApi,
  action: KubernetesAction,
  signal?: AbortSignal,
): Promise<{ readonly ok: true; readonly isAllowed: boolean } | KubernetesRefusal> {
  const answer = await api.request('POST', apiPath('authorization.k8s.io/v1', 'selfsubjectaccessreviews'), {
    body: {
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      spec: { resourceAttributes: action },
    },
    ...(signal && { signal }),
  })
  if (!answer.ok) return answer
  return { ok: true, isAllowed: record(answer.body.status)?.allowed === true }
}

/** Says what the credentials do not allow: `these credentials may not delete pods in the namespace a`. */
export function forbiddenWords({ verb, group, resource, subresource, namespace }: KubernetesAction): string {
  const kind = `${resource}${subresource === undefined ? '' : `/${subresource}`}${group === '' ? '' : ` (${group})`}`
  const where = namespace === undefined ? '' : ` in the namespace ${namespace}`
  return `the credentials of the kubeconfig do not allow: ${verb} ${kind}${where}`
}
