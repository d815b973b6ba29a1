/** `muster job work`: drives the queue of this cluster until it is stopped, or stands by while another one does; what runs goes on. */
import { printable } from '../../base/printable.ts'
import type { DriverEvent } from '../../scheduler/jobs/driver.ts'
import { isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { hostsText } from '../../scheduler/jobs/job-columns.ts'
import { type CliContext, EXIT } from '../command-line/context.ts'
import { driveQueue } from './drive-queue.ts'
import { driverEngines, openEngines } from './engines.ts'
import { connectHosts } from './hosts.ts'
import { type Hooks, Notifier } from './notify.ts'
import { type JobOptions, openQueue } from './open-queue.ts'

export type WorkOptions = JobOptions & {
  readonly untilEmpty?: boolean
  readonly preempt?: boolean
  readonly keep?: number
  readonly install?: boolean
  readonly uninstall?: boolean
} & Hooks

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
  await driveQueue({
    queue,
    port: hosts,
    engines: driverEngines(await openEngines(inventory, context), hosts.ops),
    signal: context.signal,
    now: context.now,
    isPreempting: options.preempt ?? false,
    isUntilEmpty: options.untilEmpty ?? false,
    ...(options.keep === undefined ? {} : { keepDays: options.keep }),
    onEvent,
    say: (text) => context.stderr.write(`muster: ${text}\n`),
  })
  await notifier.finish()
  return context.signal.aborted ? EXIT.interrupted : EXIT.ok
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
  const where = hostsText(job)
  return where === undefined ? '' : ` on ${where}`
}
