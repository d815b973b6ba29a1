/**
 * A cluster's nodes, pods and jobs, followed by watches. Whoever may not list nodes sees the pods alone, and whoever may not list the
 * pods of all namespaces sees those of its own; the picture then says so.
 */
import type { Clock } from '../../base/clock.ts'
import type { JsonRecord } from '../../base/json-lines.ts'
import { apiPath, type KubernetesRefusal } from './api.ts'
import type { Kubernetes } from './kubernetes.ts'
import { idleJobOf, type KubernetesUsage, kubernetesUsage, nodeOf, podOf } from './usage.ts'
import { watchObjects } from './watch.ts'

/** Between two pictures. */
const PICTURE_MS = 1_000

export type KubernetesUsageOptions = {
  readonly clock: Clock
  random(): number
  readonly onUsage: (usage: KubernetesUsage | string) => void
}

/** Until it is disposed of. A string: why nothing is known. */
export function watchKubernetesUsage(kubernetes: Kubernetes, options: KubernetesUsageOptions): Disposable {
  const following = new UsageWatch(kubernetes, options)
  void following.start()
  return following
}

class UsageWatch implements Disposable {
  readonly #kubernetes: Kubernetes
  readonly #options: KubernetesUsageOptions
  #parts: { readonly nodes: Part<typeof nodeOf>; readonly pods: Part<typeof podOf>; readonly jobs: Part<typeof idleJobOf> } | undefined
  #namespace = ''
  #pause: Disposable | undefined
  #isChanged = false
  #isOver = false

  constructor(kubernetes: Kubernetes, options: KubernetesUsageOptions) {
    this.#kubernetes = kubernetes
    this.#options = options
  }

  async start(): Promise<void> {
    const namespace = await this.#kubernetes.namespace()
    if (this.#isOver) return
    if (!namespace.ok) return this.#options.onUsage(namespace.message)
    const { name } = namespace
    this.#namespace = name
    const follow = <P extends Project>(project: P, ...paths: readonly string[]) =>
      new Part(this.#kubernetes, this.#options, project, paths, () => this.#change())
    this.#parts = {
      nodes: follow(nodeOf, apiPath('v1', 'nodes')),
      pods: follow(podOf, apiPath('v1', 'pods'), apiPath('v1', 'namespaces', name, 'pods')),
      jobs: follow(idleJobOf, apiPath('batch/v1', 'jobs'), apiPath('batch/v1', 'namespaces', name, 'jobs')),
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
    if (this.#pause !== undefined || this.#isOver) return
    const usage = this.#usage()
    if (usage === undefined) return
    this.#isChanged = false
    this.#pause = this.#options.clock.after(PICTURE_MS, () => {
      this.#pause = undefined
      if (this.#isChanged) this.#change()
    })
    this.#options.onUsage(usage)
  }

  /** Undefined: the first answers are not all there. */
  #usage(): KubernetesUsage | string | undefined {
    if (this.#parts === undefined) return undefined
    const { nodes, pods, jobs } = this.#parts
    const trouble = [nodes, pods].find((part) => part.all === undefined && part.refusal !== undefined && !part.isForbidden)
    if (trouble?.refusal !== undefined) return trouble.refusal.message
    if (pods.isForbidden) return pods.refusal?.message ?? ''
    if (pods.all === undefined || (nodes.all === undefined && !nodes.isForbidden)) return undefined
    if (jobs.all === undefined && jobs.refusal === undefined) return undefined
    const notes = [
      ...(nodes.isForbidden ? ['nodes may not be listed: what they have is unknown'] : []),
      ...(pods.isNarrow ? [`only pods of the namespace ${this.#namespace} may be listed: others are missing`] : []),
      ...staleNote([nodes, pods].find((part) => part.refusal !== undefined && !part.isForbidden)?.refusal),
    ]
    return kubernetesUsage({
      nodes: nodes.all?.values(),
      pods: pods.all.values(),
      idleJobs: jobs.all?.values() ?? [],
      namespace: this.#namespace,
      ...(notes.length === 0 ? {} : { note: notes.join('; ') }),
    })
  }
}

const staleNote = (refusal: KubernetesRefusal | undefined): readonly string[] =>
  refusal === undefined ? [] : [`not up to date: ${refusal.message}`]

type Project = (object: JsonRecord) => object | undefined

/** Objects of one kind: of the first path whose list is allowed. */
class Part<P extends Project> implements Disposable {
  all: ReadonlyMap<string, NonNullable<ReturnType<P>>> | undefined
  refusal: KubernetesRefusal | undefined
  /** None of the paths is allowed. */
  isForbidden = false
  /** Not the first path. */
  isNarrow = false
  #watch: Disposable | undefined
  #isOver = false

  constructor(
    { api }: Kubernetes,
    options: KubernetesUsageOptions,
    project: P,
    [path = '', ...rest]: readonly string[],
    onChange: () => void,
  ) {
    const follow = (at: string, others: readonly string[]) => {
      this.#watch = watchObjects(
        api,
        at,
        { ...options, project: (object) => project(object) as NonNullable<ReturnType<P>> | undefined },
        {
          onChange: (all) => {
            this.all = all
            onChange()
          },
          onTrouble: (refusal) => {
            if (this.#isOver) return
            this.refusal = refusal
            if (refusal?.status === 403 && this.all === undefined) {
              this.#watch?.[Symbol.dispose]()
              const [next, ...further] = others
              if (next !== undefined) {
                this.isNarrow = true
                this.refusal = undefined
                return follow(next, further)
              }
              this.isForbidden = true
            }
            onChange()
          },
        },
      )
    }
    follow(path, rest)
  }

  [Symbol.dispose](): void {
    this.#isOver = true
    this.#watch?.[Symbol.dispose]()
  }
}
