/** A planned run from the first connection to the exit code. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { systemClock } from '../../base/clock.ts'
import { defined } from '../../base/defined.ts'
import { MusterError, messageOf, notKept } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { keepHeapSmall } from '../../base/small-heap.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { formatSummary, isSuccess, type RunOutcome, type RunSummary, summarize } from '../../ops/run/outcome.ts'
import { OutputStore } from '../../ops/run/output-store.ts'
import { type HostRun, type RunEvent, runOnHosts } from '../../ops/run/run-hosts.ts'
import { createHostExec } from '../../ssh/exec/host-exec.ts'
import { type CliContext, EXIT } from '../command-line/context.ts'
import { fanOutFor } from '../connect/fan-out.ts'
import { askSudoOnce } from '../connect/sudo-password.ts'
import { createWires } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { OutputDirectory } from './exec-files.ts'
import { lastRunFile, type RunPlan, type RunVerbOptions, writeLastRun } from './plan-run.ts'
import { foldReport, jsonReport, type ReportOptions, type RunReport, streamReport } from './reports.ts'

const MAX_LIVE_LINES = 12
/** From this many hosts on, memory is worth more than a fifth of the CPU. */
const MANY_HOSTS = 100

export async function executeRun(plan: RunPlan, options: RunVerbOptions, context: CliContext): Promise<number> {
  const names = plan.hosts.map(({ endpoint }) => endpoint.host)
  const byName = new Map(plan.hosts.map((host) => [host.endpoint.host, host]))
  const directory =
    options.out === undefined
      ? undefined
      : new OutputDirectory(resolve(context.workingDirectory, options.out), names, options.yes === true)
  using store = new OutputStore(directory?.path ?? tmpdir())
  const outcomes = new Map<string, RunOutcome>()
  let run: HostRun | undefined
  let isGone = false
  /** The reader, such as `head`, has seen enough: output that is left out then is not reported. */
  let isUnread = false
  using screen = new LiveScreen({
    stdout: context.stdout,
    stderr: context.stderr,
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
    onWarning: (message) => screen.err(`muster: ${message}\n`),
  })
  const report = chooseReport(options, names, { screen, store, ...terminalsOf(options, context) })
  const isKept = options.json === true || directory !== undefined || report.onOutput === undefined
  let reporting = Promise.resolve()
  /** Why output cannot be kept any more, as on a full disk: then everything stops. */
  let failure: unknown
  const giveUp = (error: unknown) => {
    failure ??= error
    run?.stop()
  }

  const heap = names.length >= MANY_HOSTS ? keepHeapSmall() : undefined
  const exec = createHostExec({ ...wires, clock: systemClock, token: randomBytes(8).toString('hex') })
  const sudoPassword = plan.isSudo ? askSudoOnce(dialog, names) : undefined
  const handleEvent = (event: RunEvent): void => {
    if (event.type === 'begin') return screen.refresh()
    const { host } = event
    if (event.type === 'end') {
      const { outcome, durationMs } = event
      outcomes.set(host, outcome)
      reporting = reporting
        .then(async () => {
          directory?.write(host, store.of(host))
          if (!isUnread || outcome.kind !== 'cancelled') await report.onEnd(host, outcome, durationMs)
        })
        .catch(giveUp)
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
  const running = runOnHosts(
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
      clock: systemClock,
      onEvent: handleEvent,
    },
  )
  run = running
  const stop = () => {
    screen.err('muster: stopping the command on the hosts (Ctrl-C again: exit at once)\n')
    running.stop()
  }
  if (context.signal.aborted) stop()
  context.signal.addEventListener('abort', stop, { once: true })
  await running.done
  context.signal.removeEventListener('abort', stop)
  await reporting
  run = undefined
  if (failure !== undefined) {
    const hint = `Make room in ${printable(directory?.path ?? tmpdir())}.`
    throw new MusterError('internal', `cannot keep the output: ${printable(messageOf(failure))}`, { hint })
  }
  const summary = summarize(outcomes.values())
  if (!isGone) await report.finish(summary)
  if (options.json !== true && !isUnread && (names.length > 1 || summary.exit0 < names.length))
    screen.err(`muster: ${formatSummary(summary)}\n`)
  const failed = names.filter((name) => !isSuccess(outcomes.get(name) ?? { kind: 'cancelled' }))
  await writeLastRun({ ...plan.record, failed }, context.environment).catch((error: unknown) =>
    screen.err(
      `muster: --retry-failed will not know about this run: ${notKept(lastRunFile(context.environment), error)}\n`,
    ),
  )
  return context.signal.aborted ? EXIT.interrupted : exitCodeOf(summary)
}

function exitCodeOf({ hosts, exit0, unreachable }: RunSummary): number {
  if (unreachable > 0) return EXIT.unreachable
  return exit0 === hosts ? EXIT.ok : EXIT.failed
}

function terminalsOf({ color }: RunVerbOptions, { stdout, stderr, environment }: CliContext) {
  const isStdoutTerminal = stdout.isTTY === true
  const isBold = color === 'always' || (color !== 'never' && isStdoutTerminal && !environment.NO_COLOR)
  return { isStdoutTerminal, isStderrTerminal: stderr.isTTY === true, isBold }
}

function chooseReport(options: RunVerbOptions, order: readonly string[], parts: ReportOptions): RunReport {
  if (options.json === true) return jsonReport(parts)
  const isDiff = options.diff === true
  const isFolded = options.fold ?? (parts.isStdoutTerminal && order.length > 1 && options.out === undefined)
  if (isDiff || isFolded) return foldReport({ ...parts, isDiff, order })
  const stream = streamReport(parts)
  // With --out the files hold the output; what went wrong is still said.
  return options.out === undefined ? stream : { onEnd: stream.onEnd, finish: stream.finish }
}

/** Enter on the terminal shows which hosts are still running. */
function onEnter({ stdin, stderr }: CliContext, show: () => void): Disposable & { pause(): void; resume(): void } {
  if (stdin.isTTY !== true || stderr.isTTY !== true || !isInForeground()) {
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
  const running = run.running.length > 0 ? foldHostSet(run.running) : 'none'
  return `muster: ${outcomes.size} of ${names.length} done, running: ${running}${waiting}\n`
}

function formatProgress(run: HostRun, outcomes: ReadonlyMap<string, RunOutcome>, count: number): string {
  const failed = [...outcomes.values()].filter((outcome) => !isSuccess(outcome)).length
  const failures = failed > 0 ? `, ${failed} failed` : ''
  return `${outcomes.size}/${count} done${failures}, running: ${foldHostSet(run.running)}`
}

/** A program in the background that reads its terminal is stopped (SIGTTIN). */
function isInForeground(): boolean {
  try {
    const stat = readFileSync('/proc/self/stat', 'latin1')
    // proc_pid_stat(5): after the name come state, ppid, pgrp, session, tty_nr, tpgid.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return fields[2] === fields[5]
  } catch {
    return false
  }
}
