/** What an API server lets this user do. */
import { record } from '../../base/json-lines.ts'
import { apiPath, type KubernetesApi, type KubernetesRefusal } from './api.ts'

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
