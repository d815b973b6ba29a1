/** `muster job work`: drives the queue of this cluster until it is stopped; what runs goes on. */
import { hostname, userInfo } from 'node:os'
import { systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { type DriverEvent, driveJobs, LEASE_MS } from '../../scheduler/jobs/driver.ts'
import { isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { type CliContext, EXIT } from '../context.ts'
import { connectHosts } from './hosts.ts'
import { driverHost, type JobOptions, openQueue } from './open-queue.ts'

export type WorkOptions = JobOptions & { readonly untilEmpty?: boolean; readonly preempt?: boolean }

export async function workQueue(options: WorkOptions, context: CliContext): Promise<number> {
  using queue = await openQueue(options, context)
  const { store, inventory } = queue
  const here = `${userInfo().username}@${hostname()}, process `
  const isGone = (owner: string) => owner.startsWith(here) && !isAlive(Number(owner.slice(here.length)))
  const lease = store.takeLease(`${here}${process.pid}`, context.now(), LEASE_MS, isGone)
  if (lease === undefined)
    throw new MusterError(
      'configuration',
      `this queue is driven by ${store.driver(context.now()) ?? 'another Muster'}`,
      {
        hint: `One that was lost with its machine gives way after ${LEASE_MS / 1000} s.`,
      },
    )
  const told = new Map<number, string>()
  /** Of a gang each bundle makes an event; people want to know what became of the job. */
  const isNews = ({ id, state, attempt }: Job) => {
    const word = `${state.kind} ${attempt}`
    if (told.get(id) === word) return false
    if (isFinal(state)) told.delete(id)
    else told.set(id, word)
    return true
  }
  try {
    using hosts = await connectHosts(inventory, options, context)
    await driveJobs({
      store,
      lease,
      hosts: inventory.hosts.map(driverHost),
      port: hosts,
      clock: systemClock,
      signal: context.signal,
      isPreempting: options.preempt ?? false,
      isUntilEmpty: options.untilEmpty ?? false,
      onEvent: (event) => {
        if (event.kind === 'job' && !isNews(event.job)) return
        const line = options.json ? eventJson(event, context.now()) : eventLine(event)
        if (line !== undefined) context.stdout.write(`${line}\n`)
      },
    })
  } finally {
    store.giveLease(lease)
  }
  return context.signal.aborted ? EXIT.interrupted : EXIT.ok
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

function detailOf({ state }: Job): string {
  if ('reason' in state && state.reason !== undefined) return ` (${state.reason})`
  if (state.kind === 'queued' && state.last !== undefined) return ` again (${state.last})`
  if ('places' in state && state.places !== undefined)
    return ` on ${foldHostSet([...new Set(state.places.map(({ host }) => host))])}`
  return ''
}
