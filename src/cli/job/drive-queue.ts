/** Runs the scheduler of an open queue until it is stopped, or stands by while another one runs. Jobs continue either way. */
import { hostname } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { accountName } from '../../base/account.ts'
import { systemClock } from '../../base/clock.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { isRunning } from '../../base/processes.ts'
import { type DriverOptions, driveJobs, isEmpty, LEASE_MS } from '../../scheduler/jobs/driver.ts'
import type { LeaseToken } from '../../scheduler/jobs/driver-lease.ts'
import { isQueueFull } from '../../scheduler/jobs/queue-errors.ts'
import { watchStore } from '../../scheduler/jobs/queue-file.ts'
import { driverHost, type OpenQueue } from './open-queue.ts'

export type DriveRequest = Omit<DriverOptions, 'store' | 'lease' | 'hosts' | 'clock' | 'watchStore'> & {
  readonly queue: OpenQueue
  now(): number
  /** One line for the user. */
  say(text: string): void
}

/** Between two tries to take over. */
const STANDBY_MS = 500
const FULL_MS = 2_000
/** After writing for this long without an error, the disk has room again. */
const ROOM_MS = 10_000

export async function driveQueue(request: DriveRequest): Promise<void> {
  const { signal, now, say } = request
  const full = new RepeatFilter(ROOM_MS)
  for (;;) {
    const sinceMs = now()
    try {
      const lease = await becomeDriver(request)
      if (lease !== undefined) await drive(request, lease)
      return
    } catch (error) {
      // It was silent for too long, and another scheduler has taken over: this one stands by.
      if (isLeaseLost(error, request)) continue
      if (!isQueueFull(error)) throw error
      if (full.isNews(sinceMs, now()))
        say(`${messageOf(error)}: running jobs continue, and new ones start when there is room`)
      await sleep(FULL_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

async function drive({ queue, ...rest }: DriveRequest, lease: LeaseToken): Promise<void> {
  const { store, inventory, path } = queue
  try {
    await driveJobs({
      ...rest,
      store,
      lease,
      hosts: inventory.hosts.map(driverHost),
      clock: systemClock,
      watchStore: (onWrite) => watchStore(path, onWrite),
    })
  } finally {
    store.lease.give(lease)
  }
}

/** Waits until no other scheduler runs; undefined: stopped before that, or nothing left to do. */
async function becomeDriver({ queue, isUntilEmpty, signal, now, say }: DriveRequest): Promise<LeaseToken | undefined> {
  const { store } = queue
  const here = `${accountName()}@${hostname()}, process `
  // A lease under this process's own name was left by a run that could not give it back.
  const isGone = (owner: string) => {
    const pid = Number(owner.slice(here.length))
    return owner.startsWith(here) && (pid === process.pid || !isRunning(pid))
  }
  let reported = ''
  while (!signal.aborted) {
    const lease = store.lease.take(`${here}${process.pid}`, now(), LEASE_MS, isGone)
    if (lease !== undefined) return lease
    if (isUntilEmpty && isEmpty(store)) return undefined
    const driver = printable(store.lease.owner(now()) ?? 'unknown')
    if (driver !== reported) say(`another scheduler is running: ${driver}. This one takes over when it ends.`)
    reported = driver
    await sleep(STANDBY_MS, undefined, { signal }).catch(() => undefined)
  }
  return undefined
}

function isLeaseLost(error: unknown, { signal }: DriveRequest): boolean {
  return error instanceof MusterError && error.code === 'interrupted' && !signal.aborted
}

/** Reports a lasting trouble once, and again only when it comes back after all went well for a while. */
export class RepeatFilter {
  readonly #overAfterMs: number
  #isReported = false

  constructor(overAfterMs: number) {
    this.#overAfterMs = overAfterMs
  }

  /** For each time that it happens. `wellSinceMs`: since when all had gone well. */
  isNews(wellSinceMs: number, nowMs: number): boolean {
    const isNews = !this.#isReported || nowMs - wellSinceMs >= this.#overAfterMs
    this.#isReported = true
    return isNews
  }
}
