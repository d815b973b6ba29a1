/** What the console's tabs read of the queue and write to it: short calls, each far below the time of a frame. */

import { setImmediate } from 'node:timers/promises'
import { systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { MusterError } from '../../base/errors.ts'
import { JOBS_DIRECTORY } from '../../base/left.ts'
import { fileTitle, type Inventory } from '../../inventory/inventory.ts'
import type { OpsHosts } from '../../ops/kernel/host-port.ts'
import { placeByPolicy } from '../../scheduler/gangs/place-by-policy.ts'
import { findGang } from '../../scheduler/gangs/place-gang.ts'
import { joinReasons, whyNotGang } from '../../scheduler/gangs/why-not.ts'
import { delaysOf, victimsFor } from '../../scheduler/jobs/effects.ts'
import { type EngineUsage, placeTitle } from '../../scheduler/jobs/engine.ts'
import { hasBegun, isFinal, type Job, type JobEvent, requestsOf } from '../../scheduler/jobs/job.ts'
import { bundleKey, jobsInEngine } from '../../scheduler/jobs/orders.ts'
import { type DeviceHold, holdsOf, packHosts } from '../../scheduler/jobs/packing.ts'
import { occupy } from '../../scheduler/jobs/plan-jobs.ts'
import { failedRanks, ranksOf } from '../../scheduler/jobs/ranks.ts'
import type { Sweep } from '../../scheduler/jobs/results.ts'
import { changeJobs, continueStudy, stopStudy } from '../../scheduler/jobs/study-change.ts'
import { rankBounds } from '../../scheduler/launch/rank-bounds.ts'
import type { Cluster } from '../../scheduler/model/cluster.ts'
import { WorkloadMix } from '../../scheduler/model/mix.ts'
import type { Gang } from '../../scheduler/model/resources.ts'
import { createPolicy } from '../../scheduler/policies/policies.ts'
import { placeAsRay } from '../../scheduler/ray/ray-placement.ts'
import {
  type ClusterSource,
  type EngineLog,
  type EnginePlace,
  type JobAction,
  type JobDetails,
  LOG_BYTES,
  LOG_IS_CUT,
  LOG_IS_GONE,
  LOG_IS_OTHER,
  type QueueChanges,
  type QueueStatus,
  type SubmitWords,
} from '../../ui/jobs/queue-view.ts'
import type { StudyReading } from '../../ui/jobs/study-view.ts'
import { enginePicture } from '../../ui/packing/engine-picture.ts'
import { gangOfWhatIf, type TryOut, type WhatIf } from '../../ui/packing/what-if.ts'
import type { CliContext, GlobalOptions } from '../command-line/verb.ts'
import { ConsoleStudies, linesOf } from './console-studies.ts'
import { type Engine, engineLog, openEngines } from './engines.ts'
import { GroupExtents } from './group-extents.ts'
import { changedSinceStart, hostsOf, type OpenQueue, readQueue, unknownWords, withEnough } from './open-queue.ts'
import { pollUsage } from './poll-usage.ts'
import { freeOf, whyWaiting } from './why-waiting.ts'

/** Jobs that are changed before the console gets its turn. */
const CHUNK = 200
const NOT_THE_SAME = 'the queue was moved or replaced meanwhile, so these jobs were not changed'
const MOST_GROUPS = 200
const MOST_WAITING = 32
/** The console waits no longer for other writers: keys are waiting. */
const BUSY_MS = 100

export interface ConsoleQueue extends Disposable {
  /** Its file was moved, deleted or replaced. */
  readonly isAway: boolean
  /** `shown`: the submission that a page shows, however old it is. */
  read(shown?: number): QueueStatus | undefined
  tryOut(whatIf: WhatIf, away: readonly string[]): TryOut
  details(id: number): JobDetails | undefined
  sweep(id: number): Sweep | undefined
  study(id: number): StudyReading | undefined
  members(spec: number, kinds: readonly string[]): readonly number[]
  clusters(hosts: OpsHosts): readonly ClusterSource[]
  /** As `log` of an engine. */
  readLog(log: EngineLog, hosts: OpsHosts, signal: AbortSignal): Promise<Uint8Array | string>
  /** As `typedWords`. */
  submitWords(): Promise<SubmitWords>
  /** As `submitTyped`. */
  submit(text: string): Promise<readonly string[]>
}

const eventOf = (action: JobAction): JobEvent =>
  action === 'cancel' ? { kind: 'stop', reason: 'cancelled' } : { kind: action }

/** What is on stderr begins on a line of its own. */
const ON_ITS_OWN_LINE = '[ $f = err ] || [ ! -s err ] || [ -z "$(tail -c 1 out 2>/dev/null)" ] || echo'

/** Where the end of what bundle 0 writes is read, and how. */
function logOf(job: Job, { store }: OpenQueue): JobDetails['log'] {
  const places = ('places' in job.state && job.state.places) || []
  if (places.length > 0 && job.spec.engine !== undefined) return { job: job.id, attempt: job.attempt }
  // What a launcher starts in bundles has files of its own there.
  const [failed] = job.spec.launch?.ranks === undefined ? failedRanks(job, ranksOf(job)) : []
  const first = rankBounds(job.spec, places.length).isChosen ? 'bundle 0' : 'rank 0'
  const { bundle, title } = failed ?? { bundle: 0, title: first }
  const host = places[bundle]?.host
  if (host === undefined) return undefined
  const directory = `${JOBS_DIRECTORY}/${bundleKey(store.id, job, bundle)}`
  // A job may have put a FIFO or a device in place of a file, which would block its reader.
  const read = `for f in out err; do if [ -f $f ]; then tail -c ${LOG_BYTES} $f; elif [ -e $f ]; then exit ${LOG_IS_OTHER}; fi; ${ON_ITS_OWN_LINE}; done`
  const judge = `[ -f $f ] && [ "$(wc -c <$f)" -gt ${LOG_BYTES} ] && exit ${LOG_IS_CUT}`
  const gone = isFinal(job.state) && hasBegun(job.state) ? LOG_IS_GONE : 0
  const program = `cd ${directory} 2>/dev/null || exit ${gone}; ${read}; for f in out err; do ${judge}; done; exit 0`
  return { host, program, ...(places.length > 1 ? { whose: `${title} on ${host}` } : {}) }
}

function clusterOf(engine: Engine, { store }: OpenQueue, hosts: OpsHosts): readonly ClusterSource[] {
  const { name, usage: read, watchUsage } = engine
  if (read === undefined) return []
  const place: EnginePlace = `@${name}`
  const watch = watchUsage ?? ((_, clock, onUsage) => pollUsage((signal) => read(hosts, signal), clock, onUsage))
  const pictureOf = (usage: EngineUsage | string) =>
    typeof usage === 'string'
      ? usage
      : enginePicture(usage, placeTitle(place), jobsInEngine(store.id, name, store.active()))
  const { details } = engine
  return [
    {
      place,
      watch: (onPicture) => watch(hosts, systemClock, (usage) => onPicture(pictureOf(usage))),
      ...(details && { details: (job, signal) => details(job, hosts, signal) }),
    },
  ]
}

/** Waiting jobs from which a policy learns the mix of requests. */
const MIX_JOBS = 200

/** Named in a what-if. */
const MOST_NAMED = 8

function tryOut(whatIf: WhatIf, away: readonly string[], queue: OpenQueue, nowMs: number): TryOut {
  const { store } = queue
  const active = store.active()
  const hosts = withEnough(hostsOf(queue)).map((host) =>
    away.includes(host.name) ? { ...host, isDrained: true } : host,
  )
  const { cluster } = occupy(hosts, active)
  const gang = gangOfWhatIf(whatIf)
  const places = placeBy(whatIf.by, cluster, gang, () =>
    WorkloadMix.of([
      ...[...active, ...store.queued(MIX_JOBS)].flatMap(({ spec }) => requestsOf(spec)),
      ...gang.bundles,
    ]),
  )
  const nameOf = (job: number) => ({ job, name: store.get(job)?.spec.name ?? '' })
  const isHere = (job: Job | undefined) => job?.spec.engine === undefined
  const effects = {
    ...{ hosts, gang, nowMs, runTimes: store.accounting.runTimes() },
    active: active.filter(isHere),
    lines: store.waiting(nowMs).filter((line) => isHere(line.at(0))),
  }
  if (places === undefined) {
    const why = whyNotGang(cluster, gang)?.lines ?? ['this policy finds no place for it']
    return { places, why, victims: victimsFor(effects)?.map(nameOf) }
  }
  const later = delaysOf(effects, places)
    .slice(0, MOST_NAMED)
    .map(({ job, fromS, toS }) => ({ ...nameOf(job), fromMs: fromS * 1000, toMs: toS && toS * 1000 }))
  const named = places.map(({ host, devices }) => ({ host: cluster.hosts[host]?.name ?? '', devices }))
  return { places: named, why: [], later, ...defined({ unknown: unknownWords(queue, whatIf.request, named) }) }
}

/** Takes nothing where it finds nothing. */
function placeBy(by: WhatIf['by'], cluster: Cluster, gang: Gang, mixOf: () => WorkloadMix) {
  if (by === 'muster') return findGang(cluster.copy(), gang)
  if (by === 'ray') return placeAsRay(cluster.copy(), gang)
  return placeByPolicy(cluster, gang, createPolicy(by, cluster, mixOf()))
}

const PAST_MS = 600_000
const MOST_ENDED = 500

/** What jobs held that ended in the last ten minutes; each reading asks only for those that ended since the one before. */
class PastHolds {
  readonly #store: OpenQueue['store']
  readonly #holds = new Map<string, readonly DeviceHold[]>()
  #lastMs = 0

  constructor(store: OpenQueue['store']) {
    this.#store = store
  }

  read(nowMs: number): readonly DeviceHold[] {
    const sinceMs = nowMs - PAST_MS
    for (const job of this.#store.endedSince(Math.max(sinceMs, this.#lastMs), MOST_ENDED)) {
      const holds = holdsOf(job)
      const [toMs = 0] = holds.flatMap((hold) => hold.toMs ?? [])
      this.#lastMs = Math.max(this.#lastMs, toMs)
      if (holds.length > 0) this.#holds.set(`${job.id} ${job.attempt}`, holds)
    }
    for (const [key, [hold]] of this.#holds) if ((hold?.toMs ?? 0) < sinceMs) this.#holds.delete(key)
    return [...this.#holds.values()].flat()
  }
}

/** `inventory`: what hosts.yaml declares now, which changes while the console is open. */
export async function openConsoleQueue(
  options: GlobalOptions,
  context: CliContext,
  inventory?: () => Inventory,
): Promise<ConsoleQueue> {
  const queue = await readQueue(options, context, BUSY_MS)
  if (inventory === undefined) return await consoleQueueOf(queue, context)
  const current = {
    ...queue,
    get inventory() {
      return inventory()
    },
  }
  return await consoleQueueOf(current, context)
}

/** Disposing closes the queue. */
export async function consoleQueueOf(queue: OpenQueue, context: CliContext): Promise<ConsoleQueue> {
  const { store } = queue
  const engines = await openEngines(queue.inventory, context)
  const studies = new ConsoleStudies(store)
  const past = new PastHolds(store)
  const extents = new GroupExtents(store)
  let seen = ''
  let declared = queue.inventory
  let isClosed = false
  /** Own writes do not change the file's version, but what is shown. */
  const beginChange = (): void => {
    if (isClosed || store.file.isAway) throw new MusterError('configuration', NOT_THE_SAME)
    seen = ''
    studies.forgetVersion()
  }
  const changes: QueueChanges = {
    async change(action, ids) {
      const event = eventOf(action)
      let count = 0
      for (let at = 0; at < ids.length; at += CHUNK) {
        beginChange()
        count += changeJobs(store, ids.slice(at, at + CHUNK), event, context.now()).filter(Boolean).length
        await setImmediate()
      }
      return count
    },
    async changeStudy(id, change) {
      beginChange()
      const study = store.studies.get(id)
      if (study === undefined) return
      if (change.kind === 'stop') stopStudy(store, study, change, context.now())
      else continueStudy(store, study, change.trials, context.now())
    },
  }
  const expectedOf = (text: string | undefined) => (text === undefined ? undefined : Date.parse(text))
  return {
    get isAway() {
      return store.file.isAway
    },
    read(shown) {
      const driver = queue.driver()
      const state = `${store.file.version()} ${driver} ${shown}`
      if (state === seen && declared === queue.inventory) return undefined
      // Until all is read: a reading that fails is tried again, so that its trouble stays in view.
      seen = ''
      declared = queue.inventory
      const { down = {} } = store.report() ?? {}
      const active = store.active()
      const { groups: known, isCut } = store.groups(MOST_GROUPS, shown)
      const ran = extents.of(known, active, context.now())
      const groups = known.flatMap((group) => {
        const lead = store.get(group.first)
        return lead === undefined ? [] : [{ ...group, lead, extent: ran.extents.get(group.spec) }]
      })
      let cluster: Cluster | undefined
      const free = () => {
        cluster ??= freeOf(queue)
        return cluster
      }
      const { lines, isComplete } = studies.lines(MOST_GROUPS)
      const status = {
        storeId: store.id,
        hosts: packHosts(hostsOf(queue), active),
        down,
        active,
        waiting: store.queuedGroups(MOST_WAITING).map(({ job, ...rest }) => {
          const { why, expected } = whyWaiting(job, queue, context.now(), free)
          return { job, ...rest, why: joinReasons(why), expectedMs: expectedOf(expected) }
        }),
        groups: linesOf(groups, lines),
        isCut,
        counts: store.counts(),
        past: past.read(context.now()),
        driver,
        changed: changedSinceStart(queue),
        command: queue.command,
        changes,
      }
      if (isComplete && ran.isComplete) seen = state
      return status
    },
    tryOut: (whatIf, away) => tryOut(whatIf, away, queue, context.now()),
    details(id) {
      const job = store.get(id)
      if (job === undefined) return undefined
      const { why, expected } = whyWaiting(job, queue, context.now())
      return { job, storeId: store.id, why, expectedMs: expectedOf(expected), log: logOf(job, queue) }
    },
    sweep(id) {
      const [job, group] = [store.get(id), store.groupOf(id)]
      return job && group !== undefined ? store.results.sweep(group, job.spec) : undefined
    },
    study: (id) => studies.study(id),
    members: (spec, kinds) => store.idsOf(spec, kinds),
    clusters: (hosts) => [...engines.values()].flatMap((engine) => clusterOf(engine, queue, hosts)),
    async readLog({ job: id, attempt, rank = 0 }, hosts, signal) {
      const job = store.get(id)
      const read = job?.attempt === attempt ? engineLog(engines, store.id, job, rank) : undefined
      const piece = { fromByte: -LOG_BYTES, mostBytes: LOG_BYTES }
      return (await read?.(piece, hosts, signal)) ?? `${fileTitle(queue.inventory)} no longer declares its engine`
    },
    submitWords: async () => (await import('./submit-typed.ts')).typedWords(queue),
    async submit(text) {
      const said = await (await import('./submit-typed.ts')).submitTyped(text, queue, context)
      seen = ''
      return said
    },
    [Symbol.dispose]() {
      isClosed = true
      engines[Symbol.dispose]()
      queue[Symbol.dispose]()
    },
  }
}
