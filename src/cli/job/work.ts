/** `muster job work`: runs the scheduler of this cluster's queue until it is stopped, or stands by while another one does. Running jobs continue. */

import { spawn } from 'node:child_process'
import { setTimeout as sleep } from 'node:timers/promises'
import { InvalidArgumentError } from 'commander'
import { systemClock } from '../../base/clock.ts'
import { counted } from '../../base/counted.ts'
import { defined } from '../../base/defined.ts'
import { MusterError, messageOf } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { loadInventory } from '../../inventory/load-inventory.ts'
import { type DriverEvent, type DriverOptions, driveJobs, isEmpty, LEASE_MS } from '../../scheduler/jobs/driver.ts'
import { placeTitle } from '../../scheduler/jobs/engine.ts'
import { isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { hostsText } from '../../scheduler/jobs/job-columns.ts'
import { hasEnded, isQueueFull, type LeaseToken, ownName, watchStore } from '../../scheduler/jobs/queue-file.ts'
import { wholeNumber } from '../command-line/options.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { inventorySource } from '../connect/endpoints.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { AfterQuestions } from '../output/after-questions.ts'
import { writeEvent } from '../output/json-lines.ts'
import { notice } from '../output/notices.ts'
import { checkpointPort } from '../study/checkpoints.ts'
import { openSamplerOn } from '../study/optuna.ts'
import { programSocket, servePrograms } from '../study/program-socket.ts'
import { callPython, readSourceWith } from '../study/python-program.ts'
import { driverHost, watchDeclared } from './declared-hosts.ts'
import { driverEngines, hostStorage, openEngines, sharedHostsWords } from './engines.ts'
import { connectHosts } from './hosts.ts'
import { linkSpeedsOf, type OpenQueue, openQueue } from './open-queue.ts'
import { otherQueuesWords } from './other-queues.ts'
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
  const output = new AfterQuestions()
  using hosts = await connectHosts(inventory, options, context, output.watch(new TtyDialog()))
  using engines = await openEngines(inventory, context)
  const reported = new Map<number, string>()
  /** Each bundle of a gang makes an event; the user wants to know about the job. */
  const isNews = ({ id, state, attempt }: Job) => {
    const word = `${state.kind} ${attempt}`
    if (reported.get(id) === word) return false
    if (isFinal(state)) reported.delete(id)
    else reported.set(id, word)
    return true
  }
  for (const words of [...sharedHostsWords(inventory), ...otherQueuesWords(inventory, context)])
    notice(context, `muster: ${words}\n`)
  const notifier = new Notifier(options, context)
  const onEvent = (event: DriverEvent) => {
    if (event.kind === 'job') {
      if (!isNews(event.job)) return
      notifier.notify(event.job)
    }
    if (options.json) writeEvent(eventObject(event), context)
    else output.write(context.stdout, `${eventLine(event)}\n`)
  }
  const say = (text: string) => output.write(context.stderr, `muster: ${text}\n`)
  using _watch = watchDeclared(inventory, () => loadInventory(inventorySource(options, context)), say)
  await driveQueue({
    queue,
    port: hosts,
    addresses: hosts.addresses,
    engines: driverEngines(engines, hosts.ops),
    checkpoints: checkpointPort(hosts),
    proveStorage: hostStorage(inventory, hosts.ops, context),
    readSource: readSourceWith(callPython(() => hosts.ops, context)),
    signal: context.signal,
    now: context.now,
    isPreempting: options.preempt ?? false,
    isUntilEmpty: options.untilEmpty ?? false,
    ...defined({ keepDays: options.keep }),
    linkSpeeds: linkSpeedsOf(inventory, context),
    onEvent,
    say,
  })
  await notifier.finish()
  if (!context.signal.aborted) return EXIT.ok
  const running = store.active().length
  const jobs = running === 0 ? 'no job is running' : `${counted(running, 'job continues', 'jobs continue')}`
  const next = queue.driver() === undefined ? 'and none starts until a scheduler runs' : 'and another scheduler runs'
  notice(context, `muster: stopped; ${jobs}, ${next}\n`)
  return EXIT.interrupted
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

type DriveRequest = Omit<
  DriverOptions,
  'store' | 'lease' | 'hosts' | 'openSampler' | 'clock' | 'watchStore' | 'servePrograms'
> & {
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
      if (error instanceof MusterError && error.code === 'interrupted' && !signal.aborted) continue
      if (!isQueueFull(error)) throw error
      if (full.isNews(sinceMs, now()))
        say(`${messageOf(error)}: running jobs continue, and new ones start when there is room`)
      await sleep(FULL_MS, undefined, { signal }).catch(() => undefined)
    }
  }
}

async function drive({ queue, ...rest }: DriveRequest, lease: LeaseToken): Promise<void> {
  const { store, inventory } = queue
  const { path } = store.file
  try {
    await driveJobs({
      ...rest,
      store,
      lease,
      hosts: inventory.hosts.map(driverHost),
      openSampler: openSamplerOn(rest.port, systemClock),
      clock: systemClock,
      watchStore: (onWrite) => watchStore(path, onWrite),
      servePrograms: (desk) => servePrograms(programSocket(path), desk, rest.say),
    })
  } finally {
    store.lease.give(lease)
  }
}

/** Waits until no other scheduler runs; undefined: stopped before that, or nothing left to do. */
async function becomeDriver({ queue, isUntilEmpty, signal, now, say }: DriveRequest): Promise<LeaseToken | undefined> {
  const { store } = queue
  const own = ownName()
  // A lease under this process's own name was left by a run that could not give it back.
  const isGone = (owner: string) => owner === own || hasEnded(owner)
  let reported = ''
  while (!signal.aborted) {
    const lease = store.lease.take(own, now(), LEASE_MS, isGone)
    if (lease !== undefined) return lease
    if (isUntilEmpty && isEmpty(store)) return undefined
    const driver = printable(store.lease.owner(now()) ?? 'unknown')
    if (driver !== reported) say(`another scheduler is running: ${driver}. This one takes over when it ends.`)
    reported = driver
    await sleep(STANDBY_MS, undefined, { signal }).catch(() => undefined)
  }
  return undefined
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

const AT_ONCE = 4
const LIMIT_MS = 60_000

export class Notifier {
  readonly #hooks: Pick<WorkOptions, 'onEnd' | 'onFail'>
  readonly #context: Pick<CliContext, 'stderr' | 'environment'>
  readonly #waiting: (readonly [command: string, job: Job])[] = []
  #running = 0
  #idle = Promise.withResolvers<void>()

  constructor(hooks: Pick<WorkOptions, 'onEnd' | 'onFail'>, context: Pick<CliContext, 'stderr' | 'environment'>) {
    this.#hooks = hooks
    this.#context = context
  }

  notify(job: Job): void {
    if (!isFinal(job.state)) return
    const { onEnd, onFail } = this.#hooks
    if (onEnd !== undefined) this.#waiting.push([onEnd, job])
    if (onFail !== undefined && job.state.kind !== 'done') this.#waiting.push([onFail, job])
    this.#next()
  }

  /** Resolves when all commands have run. */
  async finish(): Promise<void> {
    while (this.#running > 0 || this.#waiting.length > 0) await this.#idle.promise
  }

  #next(): void {
    while (this.#running < AT_ONCE) {
      const next = this.#waiting.shift()
      if (next === undefined) return
      this.#running++
      void this.#run(...next).then(() => {
        this.#running--
        this.#next()
        if (this.#running > 0) return
        this.#idle.resolve()
        this.#idle = Promise.withResolvers()
      })
    }
  }

  /** Never rejects. */
  #run(command: string, job: Job): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    const child = spawn('/bin/sh', ['-c', command], {
      env: { ...this.#context.environment, ...variablesOf(job) },
      stdio: 'ignore',
      timeout: LIMIT_MS,
    })
    const complain = (why: string) =>
      this.#context.stderr.write(`muster: the --on-end or --on-fail command of job ${job.id}: ${printable(why)}\n`)
    child.once('error', (error) => {
      complain(messageOf(error))
      resolve()
    })
    child.once('exit', (code, signal) => {
      if (code !== 0) complain(signal === null ? `exit ${code}` : `ended by ${signal}`)
      resolve()
    })
    return promise
  }
}

function variablesOf({ id, user, attempt, state, spec }: Job): Record<string, string> {
  return {
    MUSTER_JOB: String(id),
    MUSTER_JOB_STATE: state.kind,
    MUSTER_JOB_NAME: printable(spec.name),
    MUSTER_JOB_USER: printable(user),
    MUSTER_JOB_ATTEMPT: String(attempt),
    MUSTER_JOB_REASON: isFinal(state) ? printable(state.reason ?? '') : '',
  }
}
