/**
 * The queue of the demo: a file in the directory of the embedded hosts. The scheduler of `muster job work` starts its jobs there as
 * real processes, and new ones are submitted while it is open. No other queue is touched.
 */
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { DisposableStore } from '../../base/disposable.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { Inventory } from '../../inventory/inventory.ts'
import { formatCleanProgram } from '../../scheduler/jobs/left.ts'
import { JobStore } from '../../scheduler/jobs/store.ts'
import type { CliContext } from '../command-line/verb.ts'
import { type ConsoleQueue, consoleQueueOf } from '../job/console-queue.ts'
import { type ConnectedHosts, connectEndpoints } from '../job/hosts.ts'
import { type OpenQueue, queueOn } from '../job/open-queue.ts'
import { driveQueue } from '../job/work.ts'
import { checkpointPort } from '../study/checkpoints.ts'
import { demoStudy, firstJobs, nextJob, STATE } from './demo-jobs.ts'

export type DemoQueueOptions = {
  /** Private; it goes with the demo. */
  readonly directory: string
  readonly inventory: Inventory
  readonly endpoints: readonly Endpoint[]
  readonly context: CliContext
}

/** `queue` for the console: its tabs say why when the driver has failed. Disposing ends the driver; what runs ends with its hosts. */
export type DemoQueue = AsyncDisposable & { readonly queue: ConsoleQueue }

/** Between two new jobs. */
const PACE_MS = 2_000
/** A new job is submitted while fewer wait and fewer run: each is a process of this machine. */
const MOST_WAITING = 2
const MOST_ACTIVE = 24
/** One of so many new jobs comes with a new study. */
const STUDY_EVERY = 10
const MOST_STUDIES = 200
/** How often files of ended jobs are deleted, and from which age on. */
const CLEAN_EVERY_MS = 300_000
const KEEP_DAYS = 1 / 48

/** The host keys are known: no question is asked. */
const NO_DIALOG = { ask: async () => undefined, review: async () => new Set<string>() }

export async function openDemoQueue(options: DemoQueueOptions): Promise<DemoQueue> {
  const { directory, inventory, endpoints } = options
  const stop = new AbortController()
  const { signal } = stop
  const context = { ...options.context, signal }
  const path = join(directory, STATE, 'muster', 'jobs', 'demo.db')
  const open = (): OpenQueue => queueOn(new JobStore(path), inventory, {}, context)
  const owned = new DisposableStore()
  try {
    const driven = owned.own(open())
    const coming = owned.own(open())
    const queue = owned.own(await consoleQueueOf(open(), context))
    const hosts = owned.own(connectEndpoints(endpoints, {}, context, NO_DIALOG))
    const { store } = driven
    store.submitAll(firstJobs(inventory.hosts), context.now())
    addStudy(store, context.now())
    const { now } = context
    let failure: unknown
    const running = Promise.all([
      driveQueue({
        queue: driven,
        port: hosts,
        addresses: new Map(inventory.hosts.map(({ name }) => [name, name])),
        checkpoints: checkpointPort(hosts),
        signal,
        now,
        isPreempting: false,
        isUntilEmpty: false,
        say() {},
      }),
      keepComing(coming, hosts, context),
    ]).catch((error: unknown) => {
      failure = error
      stop.abort()
    })
    return {
      queue: {
        ...queue,
        read(shown) {
          if (failure !== undefined) throw failure
          const status = queue.read(shown)
          return status && { ...status, commandsWork: 'in a shell of the demo' }
        },
        [Symbol.dispose]() {},
      },
      async [Symbol.asyncDispose]() {
        stop.abort()
        await running
        owned[Symbol.dispose]()
      },
    }
  } catch (error) {
    owned[Symbol.dispose]()
    throw error
  }
}

/** Another one, unless one is running. */
function addStudy(store: JobStore, nowMs: number): void {
  const known = store.studies.list(MOST_STUDIES)
  if (known.length >= MOST_STUDIES || known.some(({ state }) => state.kind === 'running')) return
  const names = new Set(known.map(({ name }) => name))
  for (let number = 1; ; number++) {
    const study = demoStudy(number)
    if (names.has(study.name)) continue
    store.together(() => store.studies.create(study, nowMs))
    return
  }
}

/** Until the signal. */
async function keepComing(
  { store, inventory }: OpenQueue,
  hosts: ConnectedHosts,
  { signal, now }: CliContext,
): Promise<void> {
  let [step, cleanedMs] = [0, now()]
  while (!signal.aborted) {
    await sleep(PACE_MS, undefined, { signal }).catch(() => undefined)
    if (signal.aborted) return
    if (store.queued(MOST_WAITING).length < MOST_WAITING && store.active().length < MOST_ACTIVE) {
      if (step % STUDY_EVERY === STUDY_EVERY - 1) addStudy(store, now())
      store.submit(nextJob(step++, inventory.hosts), now())
    }
    if (now() - cleanedMs < CLEAN_EVERY_MS) continue
    cleanedMs = now()
    const program = formatCleanProgram(store.id, { kept: store.keptDirectories(), storages: [] }, KEEP_DAYS)
    await Promise.all(inventory.hosts.map(({ name }) => hosts.exec(name, program, signal)))
  }
}
