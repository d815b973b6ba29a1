/** The cluster of hosts.yaml: its API through `kubectl proxy`, and its namespace. */
import { onAbort } from '../../base/abort.ts'
import { messageOf } from '../../base/errors.ts'
import { KubernetesApi, type KubernetesRefusal, unreachable } from './api.ts'
import { KubectlProxy, type ProxyOptions } from './proxy.ts'
import type { KubernetesSpec } from './section.ts'

const DEFAULT_NAMESPACE = 'default'

/** Disposing ends the proxy and all requests. */
export type Kubernetes = Disposable & {
  readonly api: KubernetesApi
  /** Of hosts.yaml, else of the context. Never rejects. */
  namespace(): Promise<{ readonly ok: true; readonly name: string } | KubernetesRefusal>
  /** `https://10.0.0.1:6443 (team-a)`: the server that kubectl uses now, and that namespace; undefined: not known. Never rejects. */
  address(): Promise<string | undefined>
}

/** Nothing runs before the first request. The signal does what disposing does. */
export function openKubernetes(
  spec: KubernetesSpec,
  options: ProxyOptions & { readonly signal: AbortSignal },
): Kubernetes {
  const proxy = new KubectlProxy(spec, options)
  const abort = new AbortController()
  const end = () => {
    abort.abort()
    proxy[Symbol.dispose]()
  }
  const listener = onAbort(options.signal, end)
  return {
    api: new KubernetesApi(proxy.dial, options.clock, abort.signal),
    async namespace() {
      if (spec.namespace !== undefined) return { ok: true, name: spec.namespace }
      try {
        return { ok: true, name: (await proxy.namespace(abort.signal)) ?? DEFAULT_NAMESPACE }
      } catch (error) {
        return unreachable(messageOf(error))
      }
    },
    async address() {
      const [namespace, server] = await Promise.all([
        this.namespace(),
        proxy.server(abort.signal).catch(() => undefined),
      ])
      return namespace.ok && server !== undefined ? `${server} (${namespace.name})` : undefined
    },
    [Symbol.dispose]() {
      listener[Symbol.dispose]()
      end()
    },
  }
}
