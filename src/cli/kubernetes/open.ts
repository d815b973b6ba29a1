/** The cluster that hosts.yaml declares under `k8s`, for the verbs of `muster k8s`. */
import { type Command, InvalidArgumentError } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { DisposableStore } from '../../base/disposable.ts'
import { MusterError } from '../../base/errors.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import { fileTitle } from '../../inventory/inventory.ts'
import { loadInventory } from '../../inventory/load-inventory.ts'
import { apiPath, type KubernetesRefusal } from '../../ops/kubernetes/api.ts'
import { type Kubernetes, openKubernetes } from '../../ops/kubernetes/kubernetes.ts'
import { gpuResourceOf } from '../../ops/kubernetes/manifest.ts'
import { section } from '../../ops/kubernetes/section.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/verb.ts'
import { inventorySource } from '../connect/endpoints.ts'
import { connectHosts } from '../job/hosts.ts'

/** `gpuResource`: what counts GPUs on its nodes. */
type OpenCluster = Kubernetes & { readonly gpuResource: string }

export type NamespaceOptions = GlobalOptions & { readonly namespace?: string; readonly allNamespaces?: boolean }

/** Options of verbs about an object of a namespace. */
export const inNamespace = (command: Command): Command =>
  command.option(
    '-n, --namespace <name>',
    'use this namespace (default: that of hosts.yaml, then that of the kubeconfig)',
    kubernetesName,
  )

/** Options of verbs that list objects. */
export const inNamespaces = (command: Command): Command =>
  inNamespace(command).option('-A, --all-namespaces', 'list objects of all namespaces')

export function kubernetesName(text: string): string {
  if (!/^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$/.test(text))
    throw new InvalidArgumentError('Names have only lower-case letters, digits, - and .')
  return text
}

/** @throws MusterError */
export async function declaredCluster(options: GlobalOptions, context: CliContext) {
  const inventory = await loadInventory(inventorySource(options, context))
  const spec = sectionOf(inventory, section)
  if (spec === undefined)
    throw new MusterError('configuration', `${fileTitle(inventory)} declares no Kubernetes cluster`, {
      hint: 'Add a section k8s; k8s: {} is the current context of kubectl on this machine (docs/engines.md).',
    })
  return { inventory, spec }
}

/** Disposing ends the proxy and the connection to its host. @throws MusterError */
export async function openCluster(options: GlobalOptions, context: CliContext): Promise<OpenCluster> {
  const { inventory, spec } = await declaredCluster(options, context)
  const { environment, signal } = context
  const opened = new DisposableStore()
  const hosts = spec.via === undefined ? undefined : opened.own(await connectHosts(inventory, options, context)).ops
  const kubernetes = opened.own(
    openKubernetes(spec, { clock: systemClock, environment, signal, ...(hosts && { hosts }) }),
  )
  return { ...kubernetes, gpuResource: gpuResourceOf(spec), [Symbol.dispose]: () => opened[Symbol.dispose]() }
}

/** As the options say, else hosts.yaml, else the kubeconfig. */
export const namespaceOf = (
  kubernetes: Kubernetes,
  { namespace }: NamespaceOptions,
): ReturnType<Kubernetes['namespace']> =>
  namespace === undefined ? kubernetes.namespace() : Promise.resolve({ ok: true, name: namespace })

/** The path of a kind of objects as the options say; `namespace` undefined: of all. */
export async function pathOf(
  kubernetes: Kubernetes,
  group: string,
  kind: string,
  options: NamespaceOptions,
): Promise<{ readonly ok: true; readonly path: string; readonly namespace?: string } | KubernetesRefusal> {
  if (options.allNamespaces) return { ok: true, path: apiPath(group, kind) }
  const own = await namespaceOf(kubernetes, options)
  return own.ok ? { ok: true, path: apiPath(group, 'namespaces', own.name, kind), namespace: own.name } : own
}

/** Says why it could not be had, and returns the exit code. */
export function refused({ message, status, reason }: KubernetesRefusal, { stderr }: CliContext): number {
  if (reason === 'Stopped') return EXIT.interrupted
  const hint = status === 403 ? '. Ask an administrator of the cluster for a role that allows it' : ''
  stderr.write(`muster: Kubernetes: ${message}${hint}\n`)
  return status === 0 || status === 401 ? EXIT.unreachable : EXIT.failed
}
