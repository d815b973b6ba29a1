/**
 * A cluster's nodes, pods and jobs, followed by watches. Without the right to list nodes it shows only pods, and without
 * the right to list pods of all namespaces only those of its own namespace. The picture then says so.
 */
import type { Clock } from '../../base/clock.ts'
import type { JsonRecord } from '../../base/json-lines.ts'
import { apiPath, type KubernetesApi, type KubernetesRefusal } from './api.ts'
import type { Kubernetes } from './kubernetes.ts'
import {
  idleJobOf,
  type KubernetesIdleJob,
  type KubernetesNode,
  type KubernetesPod,
  type KubernetesUsage,
  kubernetesUsage,
  nodeOf,
  podOf,
} from './usage.ts'
import { watchObjects } from './watch.ts'

export type UsageWatchOptions = {
  readonly clock: Clock
  /** The resource that counts GPUs, besides the usual names. */
  readonly gpuResource: string
  random(): number
}

type Reached = Omit<Kubernetes, 'address'>

/** Between two pictures, or longer if one takes long. */
const PICTURE_MS = 1_000
const PAUSE_PER_WORK = 10
/** Until the kubeconfig is read again, or its host is asked again. */
const AGAIN_MS = 15_000

/** Until it is disposed of. A string: why nothing is known. */
export function watchKubernetesUsage(
  kubernetes: Reached,
  options: UsageWatchOptions,
  onUsage: (usage: KubernetesUsage | string) => void,
): Disposable {
  const watching = new UsageWatch(kubernetes, options, onUsage)
  void watching.begin()
  return watching
}

type Parts = {
  readonly nodes: Part<KubernetesNode>
  readonly pods: Part<KubernetesPod>
  readonly jobs: Part<KubernetesIdleJob>
}

class UsageWatch implements Disposable {
  readonly #kubernetes: Reached
  readonly #options: UsageWatchOptions
  readonly #onUsage: (usage: KubernetesUsage | string) => void
  #parts: Parts | undefined
  #namespace = ''
  #pause: Disposable | undefined
  #isChanged = false
  #isOver = false

  constructor(kubernetes: Reached, options: UsageWatchOptions, onUsage: (usage: KubernetesUsage | string) => void) {
    this.#kubernetes = kubernetes
    this.#options = options
    this.#onUsage = onUsage
  }

  async begin(): Promise<void> {
    const namespace = await this.#kubernetes.namespace()
    if (this.#isOver) return
    if (!namespace.ok) {
      this.#onUsage(namespace.message)
      if (!this.#isOver) this.#pause = this.#options.clock.after(AGAIN_MS, () => void this.begin())
      return
    }
    this.#pause = undefined
    const { name } = namespace
    const { api } = this.#kubernetes
    const { gpuResource } = this.#options
    const part = <T>(project: (object: JsonRecord) => T | undefined, ...paths: readonly string[]) =>
      new Part(api, paths, project, this.#options, () => this.#change())
    this.#namespace = name
    this.#parts = {
      nodes: part((object) => nodeOf(object, gpuResource), apiPath('v1', 'nodes')),
      pods: part(
        (object) => podOf(object, gpuResource),
        apiPath('v1', 'pods'),
        apiPath('v1', 'namespaces', name, 'pods'),
      ),
      jobs: part(idleJobOf, apiPath('batch/v1', 'jobs'), apiPath('batch/v1', 'namespaces', name, 'jobs')),
    }
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#pause?.[Symbol.dispose]()
    for (const part of Object.values(this.#parts ?? {})) part[Symbol.dispose]()
  }

  /** At once after a silence, else at the end of the pause. */
  #change(): void {
    this.#isChanged = true
    if (this.#pause !== undefined || this.#isOver || this.#parts === undefined) return
    const { clock } = this.#options
    const sinceMs = clock.now()
    const usage = this.#usage(this.#parts)
    if (usage === undefined) return
    this.#isChanged = false
    this.#onUsage(usage)
    if (this.#isOver) return
    const pauseMs = Math.max(PICTURE_MS, (clock.now() - sinceMs) * PAUSE_PER_WORK)
    this.#pause = clock.after(pauseMs, () => {
      this.#pause = undefined
      if (this.#isChanged) this.#change()
    })
  }

  /** Undefined: the first answers are not all there. */
  #usage({ nodes, pods, jobs }: Parts): KubernetesUsage | string | undefined {
    const silent = [nodes, pods].find((part) => part.all === undefined && part.refusal !== undefined)
    // Nodes are not needed: without the right to list them the picture lacks only their sizes. Any other failure stops it.
    if (silent?.refusal !== undefined && (silent === pods || !silent.isForbidden)) return silent.refusal.message
    if ([nodes, pods, jobs].some((part) => part.all === undefined && part.refusal === undefined)) return undefined
    const stale = [nodes, pods].find((part) => part.all !== undefined && part.refusal !== undefined)?.refusal
    const notes = [
      ...(nodes.isForbidden ? ['the credentials do not allow listing nodes: what they have is unknown'] : []),
      ...(pods.isNarrow
        ? [`the credentials allow listing pods only in the namespace ${this.#namespace}: others are missing`]
        : []),
      ...(stale === undefined ? [] : [`not up to date: ${stale.message}`]),
    ]
    return kubernetesUsage({
      nodes: nodes.all?.values(),
      pods: pods.all?.values() ?? [],
      idleJobs: jobs.all?.values() ?? [],
      namespace: this.#namespace,
      ...(notes.length === 0 ? {} : { note: notes.join('; ') }),
    })
  }
}

/** Objects of one kind, from the first path whose list is allowed. */
class Part<T> implements Disposable {
  readonly #follow: (path: string, further: readonly string[]) => Disposable
  all: ReadonlyMap<string, T> | undefined
  refusal: KubernetesRefusal | undefined
  /** Not from the first path. */
  isNarrow = false
  #watch: Disposable
  #isOver = false

  constructor(
    api: KubernetesApi,
    [path = '', ...further]: readonly string[],
    project: (object: JsonRecord) => T | undefined,
    { clock, random }: UsageWatchOptions,
    onChange: () => void,
  ) {
    this.#follow = (path, further) => {
      const onTrouble = (refusal: KubernetesRefusal | undefined) => {
        if (this.#isOver) return
        this.refusal = refusal
        if (this.isForbidden) this.#narrow(further)
        onChange()
      }
      const onChangeOf = (all: ReadonlyMap<string, T>) => {
        this.all = all
        onChange()
      }
      return watchObjects(api, path, { project, clock, random }, { onChange: onChangeOf, onTrouble })
    }
    this.#watch = this.#follow(path, further)
  }

  /** A list that was allowed once is asked for again, even if it may not be watched. */
  get isForbidden(): boolean {
    return this.all === undefined && this.refusal?.status === 403
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#watch[Symbol.dispose]()
  }

  #narrow([path, ...further]: readonly string[]): void {
    this.#watch[Symbol.dispose]()
    if (path === undefined) return
    this.isNarrow = true
    this.refusal = undefined
    this.#watch = this.#follow(path, further)
  }
}
