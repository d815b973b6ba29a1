/** A planned run from the first connection to the exit code. */
import { randomBytes } from 'node:crypto'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { onAbort } from '../../base/abort.ts'
import { systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { fileReason, notKept } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { isInForeground } from '../../base/processes.ts'
import { timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { replacedIn } from '../../ops/run/command-template.ts'
import { formatSummary, isSuccess, type RunOutcome, type RunSummary, summarize } from '../../ops/run/outcome.ts'
import { OutputStore } from '../../ops/run/output-store.ts'
import { HostRun, type RunEvent } from '../../ops/run/run-hosts.ts'
import { createHostExec } from '../../ssh/exec/host-exec.ts'
import { backOffMs } from '../../ssh/session-transition.ts'
import { type CliContext, EXIT } from '../command-line/verb.ts'
import { createWires, fanOutFor } from '../connect/transports.ts'
import { askSudoOnce, TtyDialog } from '../connect/tty-dialog.ts'
import { painterOf } from '../output/colour.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { OutputDirectory } from './exec-files.ts'
import { lastRunFile, type RunPlan, type RunVerbOptions, writeLastRun } from './plan-run.ts'
import { chooseReport } from './report.ts'
import { isPiped } from './unsent-stdin.ts'

const MAX_LIVE_LINES = 12
/** From this many hosts on, memory is worth more than a fifth of the CPU; the settings for that are the whole process's, and stay. */
export const MANY_HOSTS = 100

export async function executeRun(plan: RunPlan, options: RunVerbOptions, context: CliContext): Promise<number> {
  const names = plan.hosts.map(({ endpoint }) => endpoint.host)
  const byName = new Map(plan.hosts.map((host) => [host.endpoint.host, host]))
  const directory =
    options.out === undefined
      ? undefined
      : new OutputDirectory(resolve(context.workingDirectory, options.out), names, options.yes === true)
  using store = new OutputStore(directory?.path ?? tmpdir())
  const outcomes = new Map<string, RunOutcome>()
  const begun = new Set<string>()
  /** Since the last question. */
  const failures: string[] = []
  let run: HostRun | undefined
  let isGone = false
  /** The reader, such as `head`, has seen enough: output that is left out then is not reported. */
  let isUnread = false
  using screen = new LiveScreen({
    ...context,
    live: (rows) => {
      if (run === undefined || names.length < 2) return []
      const groups = report.live?.(Math.max(0, Math.min(MAX_LIVE_LINES, rows - 4))) ?? []
      return [...groups, formatProgress(run, outcomes, names.length)]
    },
    onFull: () => run?.pause(),
    onRoom: () => run?.resume(),
    onGone: ({ code }) => {
      isGone = true
      isUnread = code === 'EPIPE'
      run?.stop()
    },
  })
  using enter = onEnter(context, () => {
    if (run === undefined) return
    screen.noteLineBreak()
    screen.err(describeRunning(run, outcomes, names))
  })
  // While a question is open, nothing else reads from the terminal, so that a password goes where it belongs.
  const dialog = screen.quietly(new TtyDialog(), (isQuiet) => (isQuiet ? enter.pause() : enter.resume()))
  using wires = createWires({
    dialog,
    reviewer: dialog,
    environment: context.environment,
    persist: options.persist,
    ...defined({ kept: context.inKeeper?.connections(options.persist) }),
    onWarning: (message) => screen.err(`muster: ${message}\n`),
  })
  const report = chooseReport(options, names, {
    screen,
    store,
    addressOf: (host) => byName.get(host)?.endpoint.address ?? host,
    isStdoutTerminal: context.stdout.isTTY === true,
    isStderrTerminal: context.stderr.isTTY === true,
    isBold: painterOf(options, context) !== undefined,
    selection: context.selection,
  })
  const isKept = options.json === true || directory !== undefined || report.onOutput === undefined
  let reporting = Promise.resolve()
  /** Why output cannot be kept any more, as on a full disk: then everything stops. */
  let failure: unknown
  const giveUp = (error: unknown) => {
    if (failure !== undefined) return
    failure = error
    const place = printable(directory?.path ?? tmpdir())
    screen.err(`muster: cannot keep the output in ${place}: ${fileReason(error)}\n`)
    if (run !== undefined && run.running.length > 0) screen.err('muster: stopping the command on the hosts\n')
    run?.stop()
  }

  /** Hosts that printed something that no file has. */
  const unsaved: string[] = []
  const save = (files: OutputDirectory, host: string, isWhole: boolean): void => {
    const hasBegun = begun.has(host)
    try {
      if (isWhole && hasBegun) return files.write(host, store.of(host))
      // Empty files would say that the command printed nothing.
      files.remove(host)
    } catch (error) {
      giveUp(error)
    }
    if (hasBegun) unsaved.push(host)
  }

  const isNotStarted = (host: string) => outcomes.get(host)?.kind === 'cancelled' && !begun.has(host)

  const heap = names.length >= MANY_HOSTS ? (await import('../../base/small-heap.ts')).keepHeapSmall() : undefined
  const exec = createHostExec({ ...wires, clock: systemClock, token: randomBytes(8).toString('hex') })
  const sudoPassword = plan.isSudo ? askSudoOnce(dialog, names) : undefined
  const handleEvent = (event: RunEvent): void => {
    const { host } = event
    if (event.type === 'begin') {
      begun.add(host)
      return screen.refresh()
    }
    if (event.type === 'end') {
      const { outcome, durationMs } = event
      outcomes.set(host, outcome)
      if (!isSuccess(outcome)) failures.push(host)
      const isNamedLater = isNotStarted(host) && options.json !== true
      const isWhole = failure === undefined
      reporting = reporting
        .then(async () => {
          if (directory !== undefined) save(directory, host, isWhole)
          if (!isNamedLater && (!isUnread || outcome.kind !== 'cancelled'))
            await report.onEnd(host, outcome, durationMs)
        })
        .catch(giveUp)
      return
    }
    if (event.type === 'retry') {
      // The result has the output of the last attempt.
      store.forget(host)
      reporting = reporting.then(() => report.onRetry?.(event)).catch(giveUp)
      return
    }
    try {
      if (isKept && failure === undefined) store.of(host)[event.type].push(event.bytes)
    } catch (error) {
      giveUp(error)
    }
    report.onOutput?.(host, event.type, event.bytes)
    heap?.passed(event.bytes.length)
    screen.refresh()
  }
  const { lastAtMs, record } = plan
  if (lastAtMs !== undefined && options.json !== true) {
    const command = printable([record.script ?? [], record.command].flat().join(' '))
    const when = timeText(lastAtMs, context.now())
    screen.notice(`muster: repeating on ${foldHostSet(names)} what ended at ${when}: ${command}\n`)
  }
  const over = new AbortController()
  /** What is known of the batch is shown before the question. */
  const mayGoOn = async (left: readonly string[]): Promise<boolean> => {
    reporting = reporting.then(() => report.endBatch?.()).catch(giveUp)
    await reporting
    const failed = failures.splice(0)
    if (failure !== undefined) return false
    if (failed.length === 0 || options.yes === true) return true
    if (context.stderr.isTTY !== true) return false
    return (
      (await dialog.confirm(`Failed on ${foldHostSet(failed)}. Go on with ${foldHostSet(left)}?`, over.signal)) === true
    )
  }
  const running = new HostRun(
    names,
    {
      start(host, handlers) {
        const planned = byName.get(host)
        if (planned === undefined) throw new Error(`there is no host ${host}`)
        return exec.start(
          planned.endpoint,
          {
            command: planned.command,
            variables: plan.environment,
            ...defined({
              script: plan.script && { ...plan.script, args: planned.args },
              stdin: plan.stdin,
              sudoPassword,
            }),
          },
          handlers,
        )
      },
    },
    {
      fanOut: fanOutFor(names.length, options, context),
      ...(options.timeout === undefined ? {} : { timeoutMs: options.timeout * 1000 }),
      ...(options.serial === undefined ? {} : { serial: { size: options.serial(names.length), mayGoOn } }),
      ...(options.untilOk ? { retryDelayMs: (count: number) => backOffMs(count, Math.random()) } : {}),
      isFailFast: options.failFast === true,
      clock: systemClock,
      onEvent: handleEvent,
    },
  )
  run = running
  const stop = () => {
    screen.err('muster: stopping the command on the hosts (Ctrl-C again: exit at once)\n')
    running.stop()
  }
  using _abort = onAbort(context.signal, stop)
  await running.done
  over.abort()
  await reporting
  run = undefined
  const summary = summarize(outcomes.values())
  if (!isGone) {
    await report.endBatch?.()
    report.finish?.(summary)
  }
  if (options.json !== true && !isUnread && (names.length > 1 || summary.exit0 < names.length))
    screen.notice(`muster: ${formatSummary(summary)}\n`)
  const replaced = plan.record.isRaw ? undefined : replacedIn(plan.record.command)
  if (replaced !== undefined && options.json !== true && context.stderr.isTTY === true)
    screen.notice(`muster: ${replaced}\n`)
  if (plan.stdin === undefined && plan.record.stdinNames === undefined && isPiped(context))
    screen.err('muster: the command did not get what you piped into muster; pass --stdin - to send it\n')
  const failed = names.filter((name) => !isSuccess(outcomes.get(name) ?? { kind: 'cancelled' }))
  let isRecorded = false
  try {
    writeLastRun({ ...plan.record, failed }, context.environment)
    isRecorded = true
  } catch (error) {
    const reason = notKept(lastRunFile(context.environment), error)
    screen.err(`muster: --retry-failed will not know about this run: ${reason}\n`)
  }
  const notStarted = names.filter(isNotStarted)
  if (options.json !== true && !isUnread && notStarted.length > 0)
    screen.err(
      `muster: not started on ${foldHostSet(notStarted)}${isRecorded ? '; --retry-failed includes them' : ''}\n`,
    )
  if (unsaved.length > 0) screen.err(`muster: no output files for ${foldHostSet(unsaved)}: the output is incomplete\n`)
  if (context.signal.aborted) return EXIT.interrupted
  const code = exitCodeOf(summary)
  return code === EXIT.ok && failure !== undefined ? EXIT.failed : code
}

function exitCodeOf({ hosts, exit0, unreachable, refused }: RunSummary): number {
  if (unreachable + refused > 0) return EXIT.unreachable
  return exit0 === hosts ? EXIT.ok : EXIT.failed
}

/** Enter on the terminal shows which hosts are still running. */
function onEnter(
  { stdin, stderr, inKeeper }: CliContext,
  show: () => void,
): Disposable & { pause(): void; resume(): void } {
  // Where the keeper works, the user's process has looked.
  if (stdin.isTTY !== true || stderr.isTTY !== true || !(inKeeper !== undefined || isInForeground())) {
    return { pause() {}, resume() {}, [Symbol.dispose]() {} }
  }
  stdin.on('data', show)
  return {
    pause: () => stdin.pause(),
    resume: () => stdin.resume(),
    [Symbol.dispose]() {
      stdin.off('data', show)
      stdin.pause()
    },
  }
}

function describeRunning(run: HostRun, outcomes: ReadonlyMap<string, RunOutcome>, names: readonly string[]): string {
  const waiting = run.waitingCount > 0 ? `, ${run.waitingCount} waiting` : ''
  return `muster: ${outcomes.size} of ${names.length} done, ${describeTurns(run)}${waiting}\n`
}

function formatProgress(run: HostRun, outcomes: ReadonlyMap<string, RunOutcome>, count: number): string {
  const failed = [...outcomes.values()].filter((outcome) => !isSuccess(outcome)).length
  const failures = failed > 0 ? `, ${failed} failed` : ''
  return `${outcomes.size}/${count} done${failures}, ${describeTurns(run)}`
}

function describeTurns({ running, retrying }: HostRun): string {
  const later = retrying.length > 0 ? `, to be retried: ${foldHostSet(retrying)}` : ''
  return `running: ${running.length > 0 ? foldHostSet(running) : 'none'}${later}`
}
