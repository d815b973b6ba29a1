/**
 * Kubernetes as an engine of the queue: a job is an Indexed Job with a pod for each bundle, named after its key, so that it is made once.
 * Each round reads the state of the cluster again, so an order may be given twice.
 */
import { stringify } from 'yaml'
import { onAbort } from '../../base/abort.ts'
import { type Clock, hasPassed, systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { type JsonRecord, list, numberOf, record, textOf } from '../../base/json-lines.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { sectionOf } from '../../inventory/hosts-yaml-schema.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import type { Declared } from '../kernel/area.ts'
import type { LogPiece, LogSearch } from '../kernel/host-output.ts'
import type { OpsHosts } from '../kernel/host-port.ts'
import { apiPath, type KubernetesAnswer, type KubernetesRefusal } from './api.ts'
import { findExtensions, type KnownExtensions } from './discovery.ts'
import { eventOf, inOrderOfTime } from './events.ts'
import { type Kubernetes, openKubernetes } from './kubernetes.ts'
import { PodLogs, runWithFiles } from './logs.ts'
import {
  barredObject,
  gpuResourceOf,
  INDEX_LABEL,
  jobObject,
  KEY_LABEL,
  type KubernetesObject,
  type KubernetesStart,
  MOST_BUNDLES,
  objectName,
  operatorTemplate,
  podGroupObject,
  QUEUE_LABEL,
  STRATEGY,
  serviceObject,
  strategyOf,
  whyNotKubernetes,
} from './manifest.ts'
import {
  hasEnded,
  isBarred,
  isDeleting,
  isOver,
  isSuspended,
  labelsIn,
  metadataOf,
  nodeOfPod,
  ownerOf,
  parallelismOf,
} from './objects.ts'
import { jobParts, podParts } from './parts.ts'
import { createWords, plainWords, podWaitWords } from './reasons.ts'
import { type KubernetesReport, type KubernetesSight, reportOfJob } from './report.ts'
import { type FreeRoom, freeRoom, type GangWish, nodeRoomOf, podClaimOf, reserveUnbound, takeGang } from './room.ts'
import { type KubernetesSpec, section } from './section.ts'
import type { KubernetesUsage } from './usage.ts'
import { watchKubernetesUsage } from './usage-watch.ts'
import { listObjects } from './watch.ts'
import { eventLines, readWorkload, type WorkloadAction, WorkloadActions } from './workload.ts'

type KubernetesOrder =
  | (KubernetesStart & { readonly kind: 'start' })
  | { readonly kind: 'check' | 'stop'; readonly key: string }

/** For `--engine k8s` (cli/job/engines.ts). */
export const KUBERNETES_ENGINE = {
  name: 'k8s',
  // Kubernetes decides the order of the jobs that it has; those that wait here can still be reordered.
  mostWaiting: 50,
  pollMs: { soon: 500, late: 4_000 },
  summary: 'the Kubernetes cluster of hosts.yaml does',
  docs: 'docs/engines.md',
  refuses: ['--on', '--preemptible', '--copy-dir', '--silent', '--strict'],
  startsGangs: true,
  runsImages: true,
  showsUsage: true,
  // An object in Kubernetes has at most 1.5 MB, and an argument of a program at most 128 KB.
  mostCommandBytes: 64 * 1024,
  isDeclared: (inventory: Inventory) => sectionOf(inventory, section) !== undefined,
  whyNot(spec: KubernetesStart['spec'], inventory: Inventory) {
    const k8s = sectionOf(inventory, section)
    return k8s && whyNotKubernetes(spec, k8s)
  },
  open({ inventory }: Declared, life: EngineLife) {
    const k8s = sectionOf(inventory, section)
    return k8s && openKubernetesJobs(k8s, life)
  },
}

/** A plain object, because callers spread it together with the description of the engine. */
export function openKubernetesJobs(k8s: KubernetesSpec, life: EngineLife) {
  const jobs = new KubernetesJobs(k8s, life)
  return {
    locate: jobs.locate.bind(jobs),
    round: jobs.round.bind(jobs),
    log: jobs.log.bind(jobs),
    searchOutput: jobs.searchOutput.bind(jobs),
    tryOut: jobs.tryOut.bind(jobs),
    tryDijob: jobs.tryDijob.bind(jobs),
    usage: jobs.usage.bind(jobs),
    watchUsage: jobs.watchUsage.bind(jobs),
    details: jobs.details.bind(jobs),
    [Symbol.dispose]: () => jobs[Symbol.dispose](),
  }
}

export type EngineLife = {
  readonly environment: Readonly<Record<string, string | undefined>>
  readonly signal: AbortSignal
  readonly clock?: Clock
}

/** The container to which DI-engine's operator adds the port of the bus. */
const DIJOB_CONTAINER = 'di-container'
/** Keys in one request: far below the longest URL that an API server accepts. */
const KEYS_AT_ONCE = 50
const AT_ONCE = 8
/** Pods of one job: those that are ending, and their replacements. */
const MOST_PODS = 2 * MOST_BUNDLES
/** Between two reads of all nodes and pods, for gangs that wait. */
const ROOM_MS = 5_000
const EXTENSIONS_MS = 300_000
/** A gang whose pods do not all have a node after this time gives back what it holds. */
const BIND_MS = 45_000
const FIRST_PAUSE_MS = 30_000
const LAST_PAUSE_MS = 600_000
/** A pod that has not ended this long after it was told to is on a node that does not answer. */
const STUCK_MS = 120_000

type Round = {
  readonly namespace: string
  readonly sights: ReadonlyMap<string, KubernetesSight>
  readonly signal: AbortSignal
  readonly reports: Map<string, KubernetesReport>
  readonly waits: Map<string, { readonly why: string }>
  readonly nodes: Map<string, string>
  /** Why no more can be done in this round. */
  trouble: string | undefined
}

/** When a gang that got only some nodes gives them back and tries again. */
type Patience = { boundMs: number; tries: number; untilMs: number }

/** `w[1-2]` */
const nodesOf = (pods: readonly JsonRecord[]): string =>
  plainWords(foldHostSet([...new Set(pods.map(nodeOfPod))].filter((name) => name !== '')))

class KubernetesJobs implements Disposable {
  readonly #k8s: KubernetesSpec
  readonly #life: EngineLife
  readonly #clock: Clock
  #kubernetes: Kubernetes | undefined
  #actions: WorkloadActions | undefined
  #extensions: { readonly atMs: number; readonly known: KnownExtensions } | undefined
  /** Keys whose job was seen, so that one that is gone was deleted. */
  readonly #known = new Set<string>()
  /** Keys of gangs that have all of their objects. */
  readonly #whole = new Set<string>()
  readonly #patience = new Map<string, Patience>()
  readonly #logs = new PodLogs()
  readonly #stuck = new Map<string, number>()
  #room: { readonly atMs: number; readonly free: FreeRoom | undefined } | undefined

  constructor(k8s: KubernetesSpec, life: EngineLife) {
    this.#k8s = k8s
    this.#life = life
    this.#clock = life.clock ?? systemClock
  }

  [Symbol.dispose](): void {
    this.#kubernetes?.[Symbol.dispose]()
  }

  /** The server and the namespace. Never rejects. */
  async locate(hosts: OpsHosts): Promise<string | undefined> {
    return await this.#open(hosts).address()
  }

  /** Never rejects. */
  async round(orders: readonly KubernetesOrder[], hosts: OpsHosts, signal: AbortSignal) {
    const reports = new Map<string, KubernetesReport>()
    const waits = new Map<string, { readonly why: string }>()
    const nodes = new Map<string, string>()
    const namespace = await this.#open(hosts).namespace()
    if (!namespace.ok) return { trouble: namespace.message, reports }
    const sights = await this.#look(namespace.name, orders, signal)
    if (!(sights instanceof Map)) return { trouble: troubleWords(sights), reports }
    const round: Round = { namespace: namespace.name, sights, signal, reports, waits, nodes, trouble: undefined }
    await inParts(orders, AT_ONCE, async (order) => {
      if (round.trouble === undefined) await this.#carryOut(order, round)
    })
    if (round.trouble === undefined) await this.#tendGangs(orders, round)
    if (round.trouble === undefined) await this.#explain(orders, round)
    this.#forget(orders)
    return { trouble: round.trouble, reports, waits, nodes }
  }

  #open(hosts: OpsHosts): Kubernetes {
    const { environment, signal } = this.#life
    this.#kubernetes ??= openKubernetes(this.#k8s, { clock: this.#clock, environment, signal, hosts })
    return this.#kubernetes
  }

  get #api() {
    return (this.#kubernetes as Kubernetes).api
  }

  /** Jobs and pods of these orders by key. */
  async #look(
    namespace: string,
    orders: readonly KubernetesOrder[],
    signal: AbortSignal,
  ): Promise<Map<string, KubernetesSight> | KubernetesRefusal> {
    const keys = orders.map(({ key }) => key)
    const sights = new Map(
      keys.map((key) => [key, { job: undefined as JsonRecord | undefined, pods: [] as JsonRecord[] }]),
    )
    const keyOf = (object: JsonRecord): string => textOf(labelsIn(object)[KEY_LABEL])
    for (let at = 0; at < keys.length; at += KEYS_AT_ONCE) {
      const query = { labelSelector: `${KEY_LABEL} in (${keys.slice(at, at + KEYS_AT_ONCE).join()})` }
      const read = (group: string, kind: string, take: (object: JsonRecord) => unknown) =>
        listObjects(this.#api, apiPath(group, 'namespaces', namespace, kind), take, { query, signal })
      const jobs = await read('batch/v1', 'jobs', (object) => {
        const sight = sights.get(keyOf(object))
        if (sight !== undefined && metadataOf(object).name === objectName(keyOf(object))) sight.job = jobParts(object)
      })
      if (!jobs.ok) return jobs
      const pods = await read('v1', 'pods', (object) => {
        const key = keyOf(object)
        const sight = sights.get(key)
        if (sight && sight.pods.length < MOST_PODS && isPodOf(object, key, sight.job)) sight.pods.push(podParts(object))
      })
      if (!pods.ok) return pods
    }
    return sights
  }

  async #carryOut(order: KubernetesOrder, round: Round): Promise<void> {
    const { kind, key } = order
    const { job, pods } = round.sights.get(key) as KubernetesSight
    const report = (one: KubernetesReport) => void round.reports.set(key, one)
    if (job !== undefined) {
      this.#known.add(key)
      if (isOver(job) || isBarred(job)) {
        round.nodes.set(key, nodesOf(pods))
        return report(reportOfJob({ job, pods }))
      }
      const lost = this.#lostNode(key, job, pods)
      if (lost !== undefined) {
        // Its other pods are ending.
        await this.#delete(job, round)
        return report({ kind: 'gone', reason: lost })
      }
      if (kind === 'stop') return await this.#delete(job, round)
      if (isDeleting(job)) return
      const found = reportOfJob({ job, pods })
      if (found === 'running') round.nodes.set(key, nodesOf(pods))
      return report(found)
    }
    // They are still ending.
    if (pods.some((pod) => !hasEnded(pod))) return
    if (this.#known.has(key))
      return report(kind === 'stop' ? 'lost' : { kind: 'gone', reason: 'deleted in Kubernetes', isCancelled: true })
    if (order.kind === 'start') return await this.#create(order, round)
    return kind === 'stop' ? await this.#bar(key, round) : report('forgotten')
  }

  /** Why a job is given up of which a pod is told to end and does not; undefined: it is not. */
  #lostNode(key: string, job: JsonRecord, pods: readonly JsonRecord[]): string | undefined {
    const left = isSuspended(job) ? [] : pods.filter((pod) => !hasEnded(pod) && isDeleting(pod))
    const nowMs = this.#clock.now()
    const sinceMs = this.#stuck.get(key) ?? nowMs
    if (left.length === 0) this.#stuck.delete(key)
    else this.#stuck.set(key, sinceMs)
    const graceMs = Math.max(...left.map(graceOf), 0) * 1000
    if (left.length === 0 || !hasPassed(sinceMs, STUCK_MS + graceMs, nowMs)) return undefined
    const nodes = plainWords([...new Set(left.map(nodeOfPod))].join(', '))
    return `its node does not answer: ${nodes}. Its processes may still run there`
  }

  async #create(order: KubernetesStart & { readonly kind: 'start' }, round: Round): Promise<void> {
    const { key, spec } = order
    const { signal, namespace } = round
    const extensions = await this.#findExtensions(round)
    if (extensions === undefined) return
    const isQueued = this.#k8s.queue !== undefined
    if (isQueued && extensions.kueue === undefined) {
      round.trouble = 'hosts.yaml names a queue, but Kueue is not installed in the cluster'
      return
    }
    const isGang = spec.bundles > 1
    const hasPodGroup = isGang && extensions.podGroup !== undefined && !isQueued
    const object = jobObject(order, this.#k8s, {
      isSuspended: isGang || isQueued,
      hasPodGroup,
      // Kueue must not start a gang before it is whole.
      isQueued: isQueued && !isGang,
    })
    const answer = await this.#post(object, namespace, signal)
    if (answer.ok || (answer.status === 409 && (await this.#isOurs(key, round)))) {
      this.#known.add(key)
      round.reports.set(key, 'waiting')
      return
    }
    if (round.trouble === undefined) this.#takeRefusal(key, answer, round)
  }

  #takeRefusal(key: string, refusal: KubernetesRefusal, round: Round): void {
    const { status, message } = refusal
    if (status === 409) {
      const name = objectName(key)
      const reason = `the namespace ${round.namespace} has a job ${name} that is not Muster's. Delete it: kubectl delete job ${name}`
      round.reports.set(key, { kind: 'refused', reason })
    } else if (/exceeded quota/.test(message)) round.waits.set(key, { why: createWords(message) })
    // What is wrong with the job itself; rights, and a namespace that is missing or ends, concern all jobs.
    else if (isOwnFault(refusal))
      round.reports.set(key, { kind: 'refused', reason: `Kubernetes refused it: ${message}` })
    else round.trouble = troubleWords(refusal)
  }

  /** Another scheduler has made it, or this one in a round whose answer was lost. */
  async #isOurs(key: string, round: Round): Promise<boolean> {
    const found = await this.#api.request('GET', this.#jobPath(key, round.namespace), { signal: round.signal })
    if (!found.ok) round.trouble = troubleWords(found)
    return found.ok && labelsIn(found.body)[KEY_LABEL] === key
  }

  #post(object: KubernetesObject, namespace: string, signal: AbortSignal, query = {}): Promise<KubernetesAnswer> {
    return this.#api.request('POST', objectsPath(object, namespace), {
      body: object,
      query: { fieldManager: 'muster', ...query },
      signal,
    })
  }

  /** With its pods, which end first. */
  async #delete(job: JsonRecord, round: Round): Promise<void> {
    if (isDeleting(job)) return
    const { name, uid } = metadataOf(job)
    const path = apiPath('batch/v1', 'namespaces', round.namespace, 'jobs', textOf(name))
    const body = { propagationPolicy: 'Foreground', preconditions: { uid } }
    const answer = await this.#api.request('DELETE', path, { body, signal: round.signal })
    if (!answer.ok && answer.status !== 404 && answer.status !== 409) round.trouble = troubleWords(answer)
  }

  /** A hand-over that is still under way finds its name taken. */
  async #bar(key: string, round: Round): Promise<void> {
    const answer = await this.#post(barredObject(key), round.namespace, round.signal)
    if (answer.ok) round.reports.set(key, 'barred')
    else if (answer.status !== 409) round.trouble = troubleWords(answer)
  }

  async #findExtensions(round: Pick<Round, 'signal' | 'trouble'>): Promise<KnownExtensions | undefined> {
    const nowMs = this.#clock.now()
    if (this.#extensions === undefined || hasPassed(this.#extensions.atMs, EXTENSIONS_MS, nowMs)) {
      const found = await findExtensions(this.#api, round.signal)
      if (found.ok) this.#extensions = { atMs: nowMs, known: found.extensions }
      else if (found.status === 0 || this.#extensions === undefined) round.trouble = troubleWords(found)
    }
    return this.#extensions?.known
  }

  /** Lets gangs start that fit, and takes back those that got a part of their nodes only. */
  async #tendGangs(orders: readonly KubernetesOrder[], round: Round): Promise<void> {
    const gangs = orders.flatMap(({ kind, key }) => {
      const { job, pods } = round.sights.get(key) as KubernetesSight
      const count = job === undefined ? 0 : parallelismOf(job)
      const isOurs = job !== undefined && kind !== 'stop' && !isOver(job) && !isBarred(job) && !isDeleting(job)
      return isOurs && count > 1 ? [{ key, job, pods, count }] : []
    })
    let isTrying = false
    for (const { key, job, pods, count } of gangs) {
      if (!(await this.#makeWhole(key, job, count, round))) {
        if (round.trouble !== undefined) return
        continue
      }
      if (queueOf(job) !== undefined || isSuspended(job)) continue
      const bound = pods.filter((pod) => nodeOfPod(pod) !== '' && !isDeleting(pod)).length
      if (bound < count) isTrying = true
      await this.#takeBack(key, job, bound, count, round)
    }
    for (const { key, job, count } of gangs) {
      if (!isSuspended(job) || !this.#whole.has(key)) continue
      if (queueOf(job) !== undefined) continue
      const { queue } = this.#k8s
      if (queue !== undefined) {
        await this.#patch(job, { metadata: { labels: { [QUEUE_LABEL]: queue } } }, round)
        if (round.trouble !== undefined) return
        continue
      }
      const wish = wishOf(job, count, this.#k8s)
      const hasPodGroup = templateOf(job).schedulingGroup !== undefined
      const why = hasPodGroup ? this.#pauseWords(key) : await this.#whyNotYet(key, wish, isTrying, round)
      if (round.trouble !== undefined) return
      if (why !== undefined) round.waits.set(key, { why })
      else if (await this.#patch(job, { spec: { suspend: false } }, round)) isTrying = true
    }
  }

  /** Its Service and its PodGroup. False: not now; why is in `waits` or in `trouble`. */
  async #makeWhole(key: string, job: JsonRecord, count: number, round: Round): Promise<boolean> {
    if (this.#whole.has(key)) return true
    const { name, uid } = metadataOf(job)
    const ownerReferences = [{ apiVersion: 'batch/v1', kind: 'Job', name, uid, controller: false }]
    const version =
      templateOf(job).schedulingGroup === undefined ? undefined : (await this.#findExtensions(round))?.podGroup
    const objects = [serviceObject(key), ...(version === undefined ? [] : [podGroupObject(key, count, version)])]
    for (const object of objects) {
      const owned = { ...object, metadata: { ...object.metadata, ownerReferences } }
      const answer = await this.#post(owned, round.namespace, round.signal)
      if (answer.ok) continue
      if (answer.status === 409) {
        const why = await this.#whyNotOurs(object, job, round)
        if (why === undefined && round.trouble === undefined) continue
        if (why !== undefined) round.waits.set(key, { why })
      } else if (/exceeded quota/.test(answer.message)) round.waits.set(key, { why: createWords(answer.message) })
      else if (isOwnFault(answer))
        round.waits.set(key, { why: `Kubernetes refuses the ${object.kind} of this gang: ${answer.message}` })
      else round.trouble = troubleWords(answer)
      return false
    }
    this.#whole.add(key)
    return true
  }

  /** An object of this name may be somebody else's, who would receive the bundles' traffic. Undefined: it belongs to the job. */
  async #whyNotOurs(object: KubernetesObject, job: JsonRecord, round: Round): Promise<string | undefined> {
    const { namespace, signal } = round
    const { kind, metadata } = object
    const { uid } = metadataOf(job)
    const path = objectsPath(object, namespace)
    const found = await this.#api.request('GET', `${path}/${encodeURIComponent(metadata.name)}`, { signal })
    if (!found.ok && found.status !== 404) round.trouble = troubleWords(found)
    if (!found.ok) return 'leftovers of an earlier job are being deleted'
    const owners = list(metadataOf(found.body).ownerReferences)
    if (owners.some((owner) => owner.uid === uid)) return undefined
    // Kubernetes deletes it some time after its job.
    if (owners.some((owner) => owner.kind === 'Job' && owner.name === metadataOf(job).name))
      return 'leftovers of an earlier job are being deleted'
    return `the namespace ${namespace} has a ${kind} ${metadata.name} that is not Muster's. Delete it: kubectl delete ${kind.toLowerCase()} ${metadata.name}`
  }

  async #takeBack(key: string, job: JsonRecord, bound: number, count: number, round: Round): Promise<void> {
    const nowMs = this.#clock.now()
    const known = this.#patience.get(key) ?? { boundMs: nowMs, tries: 0, untilMs: 0 }
    if (bound >= count || bound === 0) known.boundMs = nowMs
    this.#patience.set(key, known)
    if (bound >= count || bound === 0 || !hasPassed(known.boundMs, BIND_MS, nowMs)) return
    if (!(await this.#patch(job, { spec: { suspend: true } }, round))) return
    known.untilMs = nowMs + Math.min(LAST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** known.tries)
    known.tries += 1
    round.reports.set(key, 'waiting')
  }

  #pauseWords(key: string): string | undefined {
    const { untilMs = 0 } = this.#patience.get(key) ?? {}
    const restMs = untilMs - this.#clock.now()
    if (restMs <= 0) return undefined
    return `only some of its bundles got a node, so it gave the nodes back; it tries again in ${Math.ceil(restMs / 1000)} s`
  }

  /** Undefined: it may start now, and its room is reserved. `isTrying`: another gang may still get nodes. */
  async #whyNotYet(key: string, wish: GangWish, isTrying: boolean, round: Round): Promise<string | undefined> {
    const pause = this.#pauseWords(key)
    if (pause !== undefined) return pause
    const free = await this.#freeRoom(round)
    // Without the right to list nodes, gangs are tried one after the other.
    if (free === undefined) return isTrying ? 'another gang is being placed first' : undefined
    const fit = takeGang(free, wish)
    if (fit >= wish.count) return undefined
    const where = { STRICT_PACK: ' on one node', STRICT_SPREAD: ' on different nodes' }[wish.strategy] ?? ''
    return `all of its ${wish.count} bundles must fit at once${where}; now there is room for ${fit}`
  }

  /** False: it has not been changed. */
  async #patch(
    job: JsonRecord,
    change: { readonly metadata?: JsonRecord; readonly spec?: JsonRecord },
    round: Round,
  ): Promise<boolean> {
    const { name, uid } = metadataOf(job)
    const path = apiPath('batch/v1', 'namespaces', round.namespace, 'jobs', textOf(name))
    const body = { ...change, metadata: { ...change.metadata, uid } }
    const answer = await this.#api.request('PATCH', path, { body, signal: round.signal })
    if (!answer.ok && answer.status !== 404 && answer.status !== 409) round.trouble = troubleWords(answer)
    return answer.ok
  }

  /** What is free on nodes, without what gangs that have just been let go will take; undefined: nodes may not be read. */
  async #freeRoom(round: Pick<Round, 'namespace' | 'signal' | 'trouble'>): Promise<FreeRoom | undefined> {
    const nowMs = this.#clock.now()
    if (this.#room !== undefined && !hasPassed(this.#room.atMs, ROOM_MS, nowMs)) return this.#room.free
    const { namespace, signal } = round
    const gpus = gpuResourceOf(this.#k8s)
    const query = { fieldSelector: 'status.phase!=Succeeded,status.phase!=Failed' }
    const [nodes, pods] = await Promise.all([
      listObjects(this.#api, apiPath('v1', 'nodes'), (node) => nodeRoomOf(node, gpus, this.#k8s.pod), { signal }),
      listObjects(this.#api, apiPath('v1', 'pods'), (pod) => podClaimOf(pod, gpus, namespace), { signal, query }),
    ])
    const refusal = nodes.ok ? (pods.ok ? undefined : pods) : nodes
    if (refusal !== undefined && refusal.status !== 403) {
      round.trouble = troubleWords(refusal)
      return undefined
    }
    const free = nodes.ok && pods.ok ? freeRoom(nodes.items.values(), pods.items.values()) : undefined
    if (free !== undefined && pods.ok) reserveUnbound(free, pods.items.values())
    this.#room = { atMs: nowMs, free }
    return free
  }

  /** Why jobs wait that nothing else explains. */
  async #explain(orders: readonly KubernetesOrder[], round: Round): Promise<void> {
    const silent = orders.flatMap(({ key }) => {
      const { job, pods } = round.sights.get(key) as KubernetesSight
      if (round.reports.get(key) !== 'waiting' || round.waits.has(key) || job === undefined) return []
      const queue = queueOf(job)
      if (isSuspended(job) && queue !== undefined)
        round.waits.set(key, { why: `waiting in the queue ${plainWords(queue)} of Kueue` })
      if (isSuspended(job)) return []
      const words = pods.flatMap((pod) => (isDeleting(pod) ? [] : (podWaitWords(pod) ?? [])))
      // The others wait for the same thing as the first.
      const [why] = words
      const isShort = pods.length < parallelismOf(job)
      if (why !== undefined) round.waits.set(key, { why })
      return isShort ? [key] : []
    })
    if (silent.length === 0) return
    const path = apiPath('v1', 'namespaces', round.namespace, 'events')
    const query = { fieldSelector: 'involvedObject.kind=Job,reason=FailedCreate' }
    const names = new Set(silent.map(objectName))
    const eventOfThem = (object: JsonRecord) => {
      const event = eventOf(object)
      return names.has(event.name) ? event : undefined
    }
    const events = await listObjects(this.#api, path, eventOfThem, { query, signal: round.signal })
    if (!events.ok) return
    const latest = new Map(inOrderOfTime(events.items.values()).map((one) => [one.name, one]))
    for (const key of silent) {
      const event = latest.get(objectName(key))
      if (event !== undefined) round.waits.set(key, { why: createWords(event.message) })
      else if (!round.waits.has(key)) round.waits.set(key, { why: 'Kubernetes has not created its pods yet' })
    }
  }

  /** A piece of what a bundle printed. A string: why it cannot be read. Never rejects. */
  async log({ key, rank = 0, fromByte, mostBytes }: LogPiece, hosts: OpsHosts, signal: AbortSignal) {
    const namespace = await this.#open(hosts).namespace()
    if (!namespace.ok) return namespace.message
    const job = await this.#api.request('GET', this.#jobPath(key, namespace.name), { signal })
    if (!job.ok && job.status !== 404) return job.message
    const owner = job.ok ? job.body : undefined
    const labelSelector = `${KEY_LABEL}=${key},${INDEX_LABEL}=${rank}`
    const path = apiPath('v1', 'namespaces', namespace.name, 'pods')
    const nameOf = (pod: JsonRecord) => (isPodOf(pod, key, owner) ? nameAndTime(pod) : undefined)
    const pods = await listObjects(this.#api, path, nameOf, { query: { labelSelector }, signal })
    if (!pods.ok) return pods.message
    const [pod] = [...pods.items.values()].sort((one, other) => other.atMs - one.atMs)
    if (pod !== undefined) {
      const piece = { namespace: namespace.name, pod, key: `${key} ${rank}`, fromByte, mostBytes }
      return await this.#logs.read(this.#api, piece, signal)
    }
    return owner !== undefined && !isOver(owner)
      ? new Uint8Array()
      : 'Kubernetes no longer has its pods, and with them their output'
  }

  #jobPath(key: string, namespace: string): string {
    return apiPath('batch/v1', 'namespaces', namespace, 'jobs', objectName(key))
  }

  /** Runs the program on this machine. Undefined: it could not run. Never rejects. */
  async searchOutput({ jobs, mostBytes, programOf }: LogSearch, hosts: OpsHosts, signal: AbortSignal) {
    const ends = new Map<string, Uint8Array>()
    await inParts(jobs, AT_ONCE, async ({ key, isGang }) => {
      const piece = { key, rank: isGang ? 0 : undefined, fromByte: -mostBytes, mostBytes }
      const end = await this.log(piece, hosts, signal)
      if (typeof end !== 'string') ends.set(key, end)
    })
    return await runWithFiles(ends, programOf, signal)
  }

  /** The manifest, what the API server says of it, and whether it fits now. Never rejects. */
  async tryOut(start: KubernetesStart, hosts: OpsHosts, signal: AbortSignal) {
    const { spec } = start
    const isQueued = this.#k8s.queue !== undefined
    const job = jobObject(start, this.#k8s, { isSuspended: isQueued, hasPodGroup: false, isQueued })
    const objects = [job, ...(spec.bundles > 1 ? [serviceObject(start.key)] : [])]
    const script = objects.map((object) => stringify(object)).join('---\n')
    const namespace = await this.#open(hosts).namespace()
    if (!namespace.ok) return { script, trouble: namespace.message }
    for (const object of objects) {
      const answer = await this.#post(object, namespace.name, signal, { dryRun: 'All' })
      if (!answer.ok && answer.status !== 409) return { script, ...refusedTrial(answer) }
    }
    const round = { namespace: namespace.name, signal, trouble: undefined as string | undefined }
    const free = await this.#freeRoom(round)
    if (round.trouble !== undefined) return { script, trouble: round.trouble }
    if (free === undefined)
      return { script, words: 'Kubernetes accepts it; whether it fits now is unknown, because you may not list nodes' }
    const wish = { request: spec.request, count: spec.bundles, strategy: strategyOf(start) }
    const fit = takeGang(free, wish)
    if (fit >= wish.count) return { script, words: 'Kubernetes accepts it, and it fits now' }
    const words =
      wish.count === 1 ? 'no node has room for it now' : `now there is room for ${fit} of its ${wish.count} bundles`
    return { script, words: `Kubernetes accepts it; ${words}` }
  }

  /** Rejects where `write` throws. */
  async tryDijob(
    start: KubernetesStart,
    write: (template: (line: string) => JsonRecord) => KubernetesObject,
    hosts: OpsHosts,
    signal: AbortSignal,
  ) {
    const dijob = write((line) => operatorTemplate(start, this.#k8s, DIJOB_CONTAINER, line))
    const object = { ...dijob, metadata: { ...dijob.metadata, ...defined({ namespace: this.#k8s.namespace }) } }
    const script = stringify(object, { aliasDuplicateObjects: false, lineWidth: 0 })
    const namespace = await this.#open(hosts).namespace()
    if (!namespace.ok) return { script, trouble: namespace.message }
    const round = { namespace: namespace.name, signal, trouble: undefined as string | undefined }
    const extensions = await this.#findExtensions(round)
    if (round.trouble !== undefined) return { script, trouble: round.trouble }
    if (extensions?.dijob === undefined) {
      const words = "the cluster does not know DIJobs: the CRD of DI-engine's operator is not installed"
      return { script, isNever: true, words }
    }
    const query = { dryRun: 'All', fieldValidation: 'Strict' }
    const answer = await this.#post({ ...object, metadata: dijob.metadata }, namespace.name, signal, query)
    if (answer.ok) return { script, words: 'Kubernetes accepts it' }
    if (answer.status !== 409) return { script, ...refusedTrial(answer) }
    const words = `the namespace ${namespace.name} already has a DIJob ${dijob.metadata.name}. Choose another name: --name NAME`
    return { script, isNever: true, words }
  }

  /** The first answer. Never rejects. */
  async usage(hosts: OpsHosts, signal: AbortSignal): Promise<KubernetesUsage | string> {
    const answered = Promise.withResolvers<KubernetesUsage | string>()
    using _abort = onAbort(signal, () => answered.resolve('stopped'))
    using _watch = this.watchUsage(hosts, this.#clock, answered.resolve)
    return await answered.promise
  }

  watchUsage(hosts: OpsHosts, clock: Clock, onUsage: (usage: KubernetesUsage | string) => void): Disposable {
    const options = { clock, gpuResource: gpuResourceOf(this.#k8s), random: Math.random }
    return watchKubernetesUsage(this.#open(hosts), options, onUsage)
  }

  /** `user`: the namespace. Never rejects. */
  async details({ id, user }: { readonly id: string; readonly user: string }, hosts: OpsHosts, signal: AbortSignal) {
    const { api } = this.#open(hosts)
    this.#actions ??= new WorkloadActions(api, this.#clock)
    const actions = this.#actions
    const found = await readWorkload(api, user, id, { gpuResource: gpuResourceOf(this.#k8s), signal })
    if (!found.ok)
      return found.status === 404
        ? 'it is neither a pod nor a Job: look at what created its pods, such as a ReplicaSet'
        : found.message
    const { workload } = found
    const { kind, because } = workload
    return {
      title: plainWords(`${kind} ${id} in ${user}`),
      because,
      events: eventLines(workload),
      actions: await actions.allowed(workload, signal),
      async act(action: WorkloadAction, signal: AbortSignal) {
        const answer = await actions.act(action, workload, signal)
        return answer.ok ? undefined : answer.message
      },
    }
  }

  #forget(orders: readonly KubernetesOrder[]): void {
    const keys = new Set(orders.map(({ key }) => key))
    for (const own of [this.#known, this.#whole, this.#patience, this.#stuck])
      for (const key of own.keys()) if (!keys.has(key)) own.delete(key)
  }
}

const objectsPath = ({ apiVersion, kind }: KubernetesObject, namespace: string): string =>
  apiPath(apiVersion, 'namespaces', namespace, `${kind.toLowerCase()}s`)

/** Of Kueue. */
function queueOf(job: JsonRecord): string | undefined {
  const queue = labelsIn(job)[QUEUE_LABEL]
  return queue === undefined ? undefined : textOf(queue)
}

const templateOf = (job: JsonRecord): JsonRecord => record(record(record(job.spec)?.template)?.spec) ?? {}

/** What a gang needs, from its own job. */
function wishOf(job: JsonRecord, count: number, k8s: KubernetesSpec): GangWish {
  const { cpuMilli, memoryBytes, gpus } = podClaimOf({ spec: templateOf(job) }, gpuResourceOf(k8s), '') ?? NO_CLAIM
  const strategy = textOf(record(metadataOf(job).annotations)?.[STRATEGY])
  return { request: { cpuMilli, memoryBytes, gpuCount: gpus }, count, strategy }
}

/** How long a pod may take to end, in seconds. */
const graceOf = (pod: JsonRecord): number => numberOf(record(pod.spec)?.terminationGracePeriodSeconds) ?? 0

const NO_CLAIM = { cpuMilli: 0, memoryBytes: 0, gpus: 0 }

/** Anybody may give other pods the same labels. Without the Job, pods of an earlier one of this name are still ending. */
function isPodOf(pod: JsonRecord, key: string, job: JsonRecord | undefined): boolean {
  const { kind, name, uid } = ownerOf(pod)
  return job === undefined
    ? kind === 'Job' && name === objectName(key)
    : uid !== undefined && uid === metadataOf(job).uid
}

function nameAndTime(pod: JsonRecord) {
  const { name, uid, creationTimestamp } = metadataOf(pod)
  return { name: textOf(name), uid: textOf(uid), atMs: Date.parse(textOf(creationTimestamp)) || 0 }
}

/** The API server would refuse it at any time. */
const isOwnFault = ({ status, message }: KubernetesRefusal): boolean =>
  [400, 413, 422].includes(status) ||
  (status === 403 && !/cannot create resource|because it is being terminated/.test(message)) ||
  // What etcd says to what the API server has let through.
  (status >= 500 && /request is too large|larger than max/.test(message))

/** What a server-side dry run tells. */
function refusedTrial(refusal: KubernetesRefusal) {
  if (/exceeded quota/.test(refusal.message)) return { words: createWords(refusal.message) }
  if (isOwnFault(refusal)) return { isNever: true, words: `Kubernetes refuses it: ${refusal.message}` }
  return { trouble: troubleWords(refusal) }
}

function troubleWords({ status, message }: KubernetesRefusal): string {
  const [, ending = ''] = /in namespace "?([a-z0-9-]{1,63})"? because it is being terminated/.exec(message) ?? []
  if (ending !== '') return `the namespace ${ending} is being deleted`
  const [, namespace = ''] = /^namespaces "([^"]{1,63})" not found/.exec(message) ?? []
  if (status === 404 && namespace !== '')
    return `the namespace ${namespace} does not exist. Create it: kubectl create namespace ${namespace}`
  return message
}

async function inParts<T>(items: readonly T[], atOnce: number, each: (item: T) => Promise<void>): Promise<void> {
  for (let at = 0; at < items.length; at += atOnce) await Promise.all(items.slice(at, at + atOnce).map(each))
}
