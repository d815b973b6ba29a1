/** `muster job work`: runs the scheduler of this cluster's queue until it is stopped, or stands by while another one does. Running jobs continue. */
import { InvalidArgumentError } from 'commander'
import { defined } from '../../base/defined.ts'
import { printable } from '../../base/printable.ts'
import type { DriverEvent } from '../../scheduler/jobs/driver.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { hostsText } from '../../scheduler/jobs/job-columns.ts'
import { type CliContext, EXIT } from '../command-line/context.ts'
import { wholeNumber } from '../command-line/options.ts'
import type { VerbCode } from '../command-line/verb.ts'
import { writeEvent } from '../output/json-lines.ts'
import { driveQueue } from './drive-queue.ts'
import { driverEngines, openEngines } from './engines.ts'
import { connectHosts } from './hosts.ts'
import { Notifier } from './notify.ts'
import { openQueue } from './open-queue.ts'
import type { WorkOptions } from './service/install.ts'

export const verb: VerbCode = {
  define: (command) =>
    command
      .option('--until-empty', 'exit when no job waits or runs')
      .option('--preempt', 'stop preemptible jobs for those of higher priority')
      .option(
        '--keep <days>',
        'delete job files older than DAYS days from the hosts (default: keep them)',
        wholeNumber(1),
      )
      .option(
        '--on-end <command>',
        'run this with sh, here, when a job ends: MUSTER_JOB, MUSTER_JOB_STATE and more are set',
      )
      .option('--on-fail <command>', 'run this with sh, here, when a job ends without success')
      .option('--install', 'run the scheduler as a service of this machine, with these options; asks first')
      .option('--uninstall', 'remove the service; running jobs continue')
      .option('--dry-run', 'with --install or --uninstall: show the plan, without applying it'),
  help: `
Examples:
  muster job work                    run the scheduler until Ctrl-C; jobs continue without it
  muster job work --until-empty      until no job waits or runs
  muster job work --install          as a service of this machine, without a terminal

A second scheduler of the same queue waits, and takes over when the first one ends.
`,
  async run(options: WorkOptions, context: CliContext) {
    const { install = false, uninstall = false, dryRun = false } = options
    if (install && uninstall) throw new InvalidArgumentError('--install and --uninstall cannot be used together')
    if (install || uninstall) {
      const { changeService } = await import('./service/install.ts')
      return await changeService(install ? 'up' : 'down', options, context)
    }
    if (dryRun) throw new InvalidArgumentError('--dry-run needs --install or --uninstall: nothing was done')
    return await workQueue(options, context)
  },
}

async function workQueue(options: WorkOptions, context: CliContext): Promise<number> {
  using queue = await openQueue(options, context)
  const { store, inventory } = queue
  store.file.checkWhole()
  using hosts = await connectHosts(inventory, options, context)
  const reported = new Map<number, string>()
  /** Each bundle of a gang makes an event; the user wants to know about the job. */
  const isNews = ({ id, state, attempt }: Job) => {
    const word = `${state.kind} ${attempt}`
    if (reported.get(id) === word) return false
    if (isFinal(state)) reported.delete(id)
    else reported.set(id, word)
    return true
  }
  const notifier = new Notifier(options, context)
  const onEvent = (event: DriverEvent) => {
    if (event.kind === 'job') {
      if (!isNews(event.job)) return
      notifier.notify(event.job)
    }
    if (options.json) writeEvent(eventObject(event), context)
    else context.stdout.write(`${eventLine(event)}\n`)
  }
  await driveQueue({
    queue,
    port: hosts,
    engines: driverEngines(await openEngines(inventory, context), hosts.ops),
    signal: context.signal,
    now: context.now,
    isPreempting: options.preempt ?? false,
    isUntilEmpty: options.untilEmpty ?? false,
    ...defined({ keepDays: options.keep }),
    onEvent,
    say: (text) => context.stderr.write(`muster: ${text}\n`),
  })
  await notifier.finish()
  return context.signal.aborted ? EXIT.interrupted : EXIT.ok
}

function eventObject(event: DriverEvent): object {
  if (event.kind === 'host') return { type: 'host', host: event.host, trouble: event.trouble ?? null }
  const { id, state, attempt } = event.job
  return { type: 'job', job: id, state: state.kind, attempt }
}

function eventLine(event: DriverEvent): string {
  if (event.kind === 'host') return printable(`${placeTitle(event.host)}: ${event.trouble ?? 'answers'}`)
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
