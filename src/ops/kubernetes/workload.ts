/** A pod or a Job: why it waits or how it ended, what happened to it, and what the credentials allow to do with it. */
import { type Clock, hasPassed } from '../../base/clock.ts'
import { type JsonRecord, list, textOf } from '../../base/json-lines.ts'
import { apiPath, type KubernetesAnswer, type KubernetesApi, type KubernetesRefusal } from './api.ts'
import { type KubernetesAction, mayI } from './discovery.ts'
import { eventOf, inOrderOfTime, type KubernetesEvent } from './events.ts'
import { KEY_LABEL } from './manifest.ts'
import { isOver, isSuspended, labelsIn, metadataOf } from './objects.ts'
import { plainWords } from './reasons.ts'
import { whyJob, whyPod } from './rows.ts'

export type Workload = {
  readonly kind: 'Pod' | 'Job'
  readonly namespace: string
  readonly name: string
  readonly object: JsonRecord
  /** Sentences. */
  readonly because: readonly string[]
  /** Oldest first. */
  readonly events: readonly KubernetesEvent[]
}

const MOST_EVENTS = 250
const MOST_PODS = 250

/** The pod of this name, else the Job. Never rejects. */
export async function readWorkload(
  api: KubernetesApi,
  namespace: string,
  name: string,
  { gpuResource, signal }: { readonly gpuResource: string; readonly signal: AbortSignal },
): Promise<{ readonly ok: true; readonly workload: Workload } | KubernetesRefusal> {
  const own = (group: string, ...rest: string[]) => apiPath(group, 'namespaces', namespace, ...rest)
  const items = async (path: string, query: Record<string, string | number>): Promise<readonly JsonRecord[]> => {
    const answer = await api.request('GET', path, { query, signal })
    return answer.ok ? list(answer.body.items) : []
  }
  const eventsOf = async (kind: string) => {
    const fieldSelector = `involvedObject.kind=${kind},involvedObject.name=${name}`
    return inOrderOfTime((await items(own('v1', 'events'), { fieldSelector, limit: MOST_EVENTS })).map(eventOf))
  }
  const found = (
    kind: Workload['kind'],
    object: JsonRecord,
    because: readonly string[],
    events: readonly KubernetesEvent[],
  ) => ({ ok: true, workload: { kind, namespace, name, object, because, events } }) as const
  const pod = await api.request('GET', own('v1', 'pods', name), { signal })
  if (pod.ok) {
    const events = await eventsOf('Pod')
    return found('Pod', pod.body, whyPod(pod.body, events, gpuResource), events)
  }
  if (pod.status !== 404) return pod
  const job = await api.request('GET', own('batch/v1', 'jobs', name), { signal })
  if (!job.ok)
    return job.status === 404 ? { ...job, message: `no pod and no Job ${name} in the namespace ${namespace}` } : job
  const labelSelector = `batch.kubernetes.io/job-name=${name}`
  const pods = await items(own('v1', 'pods'), { labelSelector, limit: MOST_PODS })
  const events = await eventsOf('Job')
  return found('Job', job.body, whyJob(job.body, pods, events), events)
}

/** `suspend`: its pods are deleted until it is resumed. */
export type WorkloadAction = 'delete' | 'suspend' | 'resume'

/** Rights do not change often. */
const RIGHTS_MS = 60_000

/** Finds out what the credentials allow for a workload, and does it. Jobs of a queue are changed only through that queue. */
export class WorkloadActions {
  readonly #api: KubernetesApi
  readonly #clock: Clock
  readonly #rights = new Map<string, { readonly atMs: number; readonly isAllowed: boolean }>()

  constructor(api: KubernetesApi, clock: Clock) {
    this.#api = api
    this.#clock = clock
  }

  /** What its state and the credentials allow; nothing where that cannot be found out. Never rejects. */
  async allowed({ kind, namespace, object }: Workload, signal: AbortSignal): Promise<readonly WorkloadAction[]> {
    if (labelsIn(object)[KEY_LABEL] !== undefined) return []
    const may = (verb: 'delete' | 'patch') => this.#may({ verb, ...(kind === 'Pod' ? PODS : JOBS), namespace }, signal)
    const actions: WorkloadAction[] = (await may('delete')) ? ['delete'] : []
    if (kind === 'Job' && !isOver(object) && (await may('patch')))
      actions.push(isSuspended(object) ? 'resume' : 'suspend')
    return actions
  }

  /** Changes this object, never a newer one of the same name. Never rejects. */
  async act(
    action: WorkloadAction,
    { kind, namespace, name, object }: Pick<Workload, 'kind' | 'namespace' | 'name' | 'object'>,
    signal: AbortSignal,
  ): Promise<KubernetesAnswer> {
    const { group, resource } = kind === 'Pod' ? PODS : JOBS
    const path = apiPath(group === '' ? 'v1' : `${group}/v1`, 'namespaces', namespace, resource, name)
    const uid = textOf(metadataOf(object).uid)
    if (action !== 'delete')
      return await this.#api.request('PATCH', path, {
        body: { metadata: { uid }, spec: { suspend: action === 'suspend' } },
        signal,
      })
    const body = {
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      preconditions: { uid },
      // Its pods go with it.
      propagationPolicy: 'Background',
    }
    return await this.#api.request('DELETE', path, { body, signal })
  }

  async #may(action: KubernetesAction, signal: AbortSignal): Promise<boolean> {
    const key = `${action.verb} ${action.resource} ${action.namespace}`
    const known = this.#rights.get(key)
    const nowMs = this.#clock.now()
    if (known !== undefined && !hasPassed(known.atMs, RIGHTS_MS, nowMs)) return known.isAllowed
    const review = await mayI(this.#api, action, signal)
    if (review.ok) this.#rights.set(key, { atMs: nowMs, isAllowed: review.isAllowed })
    return review.ok && review.isAllowed
  }
}

const PODS = { group: '', resource: 'pods' }
const JOBS = { group: 'batch', resource: 'jobs' }

const MOST_EVENT_LINES = 12

/** The latest events, a printable line each. */
export const eventLines = ({ events }: Workload): readonly { readonly atMs: number; readonly text: string }[] =>
  events.slice(-MOST_EVENT_LINES).map(({ time, reason, message, count }) => ({
    atMs: Date.parse(time) || 0,
    text: plainWords(`${reason}: ${count > 1 ? `${count} times: ` : ''}${message}`),
  }))
