/** `muster job work`: drives the queue of this cluster until it is stopped, or stands by while another one does; what runs goes on. */
import { hostname, userInfo } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { systemClock } from '../../base/clock.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { type DriverEvent, driveJobs, isEmpty, LEASE_MS } from '../../scheduler/jobs/driver.ts'
import type { Lease } from '../../scheduler/jobs/driver-lease.ts'
import { isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { isQueueFull } from '../../scheduler/jobs/queue-errors.ts'
import { watchStore } from '../../scheduler/jobs/store-watch.ts'
import { placeWords } from '../../ui/jobs/job-words.ts'
import { type CliContext, EXIT } from '../context.ts'
import { connectHosts } from './hosts.ts'
import { type Hooks, Notifier } from './notify.ts'
import { driverHost, type JobOptions, type OpenQueue, openQueue } from './open-queue.ts'
import { createRayEngine, rayOf } from './ray-engine.ts'
import { TroubleSpell } from './trouble-spell.ts'

export type WorkOptions = JobOptions & {
  readonly untilEmpty?: boolean
  readonly preempt?: boolean
  readonly keep?: number
} & Hooks

/** Between two tries of one that stands by. */
const STANDBY_MS = 500
const FULL_MS = 2_000
/** Whoever has written for so long has room again. */
const ROOM_MS = 10_000

export async function workQueue(options: WorkOptions, context: CliContext): Promise<number> {
  using queue = await openQueue(options, context)
  const { store, inventory } = queue
  store.file.checkWhole()
  using hosts = await connectHosts(inventory, options, context)
  const told = new Map<number, string>()
  /** Of a gang each bundle makes an event; people want to know what became of the job. */
  const isNews = ({ id, state, attempt }: Job) => {
    const word = `${state.kind} ${attempt}`
    if (told.get(id) === word) return false
    if (isFinal(state)) told.delete(id)
    else told.set(id, word)
    return true
  }
  const notifier = new Notifier(options, context)
  const onEvent = (event: DriverEvent) => {
    if (event.kind === 'job') {
      if (!isNews(event.job)) return
      notifier.tell(event.job)
    }
    const line = options.json ? eventJson(event, context.now()) : eventLine(event)
    if (line !== undefined) context.stdout.write(`${line}\n`)
  }
  const ray = await rayOf(inventory, context)
  const isUntilEmpty = options.untilEmpty ?? false
  const drive = async (lease: Lease): Promise<void> => {
    try {
      await driveJobs({
        store,
        lease,
        hosts: inventory.hosts.map(driverHost),
        port: hosts,
        ...(ray === undefined ? {} : { ray: createRayEngine(ray, hosts.ops) }),
        clock: systemClock,
        signal: context.signal,
        isPreempting: options.preempt ?? false,
        isUntilEmpty,
        onEvent,
        watchStore: (onWrite) => watchStore(queue.path, onWrite),
        ...(options.keep === undefined ? {} : { keepDays: options.keep }),
      })
    } finally {
      store.lease.give(lease)
    }
  }
  const full = new TroubleSpell(ROOM_MS)
  for (;;) {
    const sinceMs = context.now()
    try {
      const lease = await becomeDriver(queue, isUntilEmpty, context)
      if (lease !== undefined) await drive(lease)
      break
    } catch (error) {
      // It was silent for too long, and another one has taken over: this one stands by.
      if (isLeaseLost(error, context)) continue
      if (!isQueueFull(error)) throw error
      if (full.meet(sinceMs, context.now()))
        context.stderr.write(`muster: ${messageOf(error)}: what runs goes on, the rest when there is room\n`)
      await sleep(FULL_MS, undefined, { signal: context.signal }).catch(() => undefined)
    }
  }
  await notifier.finish()
  return context.signal.aborted ? EXIT.interrupted : EXIT.ok
}

/** When nobody else drives; undefined: it was stopped before, or there is nothing left to do. */
async function becomeDriver(
  { store }: OpenQueue,
  isUntilEmpty: boolean,
  context: CliContext,
): Promise<Lease | undefined> {
  const here = `${userInfo().username}@${hostname()}, process `
  // What is held under this process's own name it could not give back.
  const isGone = (owner: string) => {
    const pid = Number(owner.slice(here.length))
    return owner.startsWith(here) && (pid === process.pid || !isAlive(pid))
  }
  let told = ''
  while (!context.signal.aborted) {
    const lease = store.lease.take(`${here}${process.pid}`, context.now(), LEASE_MS, isGone)
    if (lease !== undefined) return lease
    if (isUntilEmpty && isEmpty(store)) return undefined
    const driver = printable(store.lease.owner(context.now()) ?? 'another Muster')
    if (driver !== told)
      context.stderr.write(`muster: this queue is driven by ${driver}; this one takes over when that one is gone\n`)
    told = driver
    await sleep(STANDBY_MS, undefined, { signal: context.signal }).catch(() => undefined)
  }
  return undefined
}

function isLeaseLost(error: unknown, { signal }: CliContext): boolean {
  return error instanceof MusterError && error.code === 'interrupted' && !signal.aborted
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH'
  }
}

function eventJson(event: DriverEvent, nowMs: number): string {
  const time = new Date(nowMs).toISOString()
  if (event.kind === 'host')
    return JSON.stringify({ type: 'host', host: event.host, trouble: event.trouble ?? null, time })
  const { id, state, attempt } = event.job
  return JSON.stringify({ type: 'job', job: id, state: state.kind, attempt, time })
}

function eventLine(event: DriverEvent): string | undefined {
  if (event.kind === 'host')
    return event.trouble === undefined ? `${event.host}: answers` : printable(`${event.host}: ${event.trouble}`)
  const { id, state, spec } = event.job
  return printable(`job ${id}: ${state.kind}${detailOf(event.job)}  ${spec.name}`)
}

function detailOf(job: Job): string {
  const { state } = job
  if ('reason' in state && state.reason !== undefined) return ` (${state.reason})`
  if (state.kind === 'queued' && state.last !== undefined) return ` again (${state.last})`
  const where = placeWords(job)
  return where === undefined ? '' : ` on ${where}`
}
