/** A planned run from the first connection to the exit code, and the ways to show it: lines as they come, folded groups, or JSON. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { resolve } from 'node:path'
import { onAbort } from '../../base/abort.ts'
import { systemClock } from '../../base/clock.ts'
import { getOrMake } from '../../base/collections.ts'
import { defined } from '../../base/defined.ts'
import { MusterError, messageOf, notKept } from '../../base/errors.ts'
import { printable } from '../../base/printable.ts'
import { keepHeapSmall } from '../../base/small-heap.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { formatResult, formatSummaryLine } from '../../ops/run/json-result.ts'
import { LinePrefixer, showLine } from '../../ops/run/line-prefixer.ts'
import {
  type FoldedGroup,
  type FoldedHost,
  foldHosts,
  formatOutcome,
  formatSummary,
  isSuccess,
  type RunOutcome,
  type RunSummary,
  summarize,
} from '../../ops/run/outcome.ts'
import { OutputStore, type StreamStore } from '../../ops/run/output-store.ts'
import { HostRun, type RunEvent } from '../../ops/run/run-hosts.ts'
import { unifiedDiff } from '../../ops/run/unified-diff.ts'
import { createHostExec } from '../../ssh/exec/host-exec.ts'
import { type CliContext, EXIT } from '../command-line/verb.ts'
import { createWires, fanOutFor } from '../connect/transports.ts'
import { askSudoOnce, TtyDialog } from '../connect/tty-dialog.ts'
import { painterOf } from '../output/colour.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { OutputDirectory } from './exec-files.ts'
import { lastRunFile, type RunPlan, type RunVerbOptions, writeLastRun } from './plan-run.ts'

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
  const report = chooseReport(options, names, {
    screen,
    store,
    isStdoutTerminal: context.stdout.isTTY === true,
    isStderrTerminal: context.stderr.isTTY === true,
    isBold: painterOf(options, context) !== undefined,
  })
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

interface RunReport {
  onOutput?(host: string, stream: 'stdout' | 'stderr', bytes: Uint8Array): void
  /** May wait for room on stdout; called for one host after the other. */
  onEnd(host: string, outcome: RunOutcome, durationMs: number): void | Promise<void>
  /** At most `limit` lines about the progress, for a terminal. */
  live?(limit: number): readonly string[]
  /** After the last host. */
  finish(summary: RunSummary): Promise<void>
}

type ReportOptions = {
  readonly screen: LiveScreen
  readonly store: OutputStore
  /** stdout, stderr are terminals: what hosts print must not act on them. */
  readonly isStdoutTerminal: boolean
  readonly isStderrTerminal: boolean
  readonly isBold: boolean
}

/** Lines as they come, each with its host's name. */
function streamReport({ screen, isStdoutTerminal, isStderrTerminal }: ReportOptions): RunReport {
  const prefixers = new Map<string, Record<'stdout' | 'stderr', LinePrefixer>>()
  const of = (host: string) =>
    getOrMake(prefixers, host, () => ({
      stdout: new LinePrefixer({ prefix: `${host}: `, isSanitized: isStdoutTerminal }),
      stderr: new LinePrefixer({ prefix: `${host}: `, isSanitized: isStderrTerminal }),
    }))
  const write = writeLines.bind(undefined, screen)
  return {
    onOutput: (host, stream, bytes) => write(stream, of(host)[stream].push(bytes)),
    onEnd: (host, outcome) => {
      const pair = prefixers.get(host)
      write('stdout', pair?.stdout.flush())
      write('stderr', pair?.stderr.flush())
      prefixers.delete(host)
      sayOutcome(screen, host, outcome)
    },
    finish: async () => {},
  }
}

/** One object for each host as soon as it has ended. */
function jsonReport({ screen, store }: ReportOptions): RunReport {
  return {
    async onEnd(host, outcome, durationMs) {
      let line = ''
      for (const piece of formatResult(host, outcome, store.of(host), durationMs)) {
        line += piece
        if (line.length < 2 ** 16) continue
        screen.out(line)
        line = ''
        await screen.room()
      }
      screen.out(line)
      await screen.room()
      store.forget(host)
    },
    async finish(summary) {
      screen.out(formatSummaryLine(summary))
    },
  }
}

/** Groups of hosts with equal output, at the end; with `isDiff` what differs from the largest group. */
function foldReport(
  options: ReportOptions & { readonly isDiff: boolean; readonly order: readonly string[] },
): RunReport {
  const { screen, store, isDiff, order } = options
  const ended = new Map<string, RunOutcome>()
  /** Hosts that have something to show. */
  const hostsOf = (outcomeOf: (host: string) => RunOutcome | undefined): readonly FoldedHost[] =>
    order.flatMap((host): FoldedHost[] => {
      const outcome = outcomeOf(host)
      if (outcome === undefined) return []
      const { stdout, stderr } = store.of(host)
      const isSilent = stdout.sizeBytes === 0 && stderr.sizeBytes === 0
      if (isSilent && (outcome === RUNNING || isSuccess(outcome) || isAway(outcome))) return []
      return [{ host, outcome, digest: stdout.digest() + stderr.digest() }]
    })
  return {
    onEnd: (host, outcome) => {
      ended.set(host, outcome)
      if (isAway(outcome)) sayOutcome(screen, host, outcome)
    },
    live: (limit) => {
      const groups = foldHosts(hostsOf((host) => ended.get(host) ?? RUNNING))
      const shown = groups.length > limit ? groups.slice(0, Math.max(0, limit - 1)) : groups
      const lines = shown.map((group) => formatLive(group, store))
      return shown.length < groups.length ? [...lines, `… and ${groups.length - shown.length} more groups`] : lines
    },
    async finish() {
      const groups = foldHosts(hostsOf((host) => ended.get(host)))
      const [majority] = groups
      for (const group of groups) {
        screen.out(formatHeader(group, options.isBold))
        if (isDiff && majority !== undefined && group !== majority) await writeDiff(majority, group, options)
        else await writeGroup(group, options)
      }
    },
  }
}

const RULE = '---------------'

/** Stands for the end of a host that has none yet. */
const RUNNING: RunOutcome = { kind: 'cancelled' }

function isAway({ kind }: RunOutcome): boolean {
  return kind === 'unreachable' || kind === 'refused'
}

/** `m[8-10] (3)` */
function formatNames({ hosts }: FoldedGroup): string {
  return hosts.length === 1 ? (hosts[0] ?? '') : `${foldHostSet(hosts)} (${hosts.length})`
}

function formatLive(group: FoldedGroup, store: OutputStore): string {
  const { stdout, stderr } = store.of(group.hosts[0] ?? '')
  const state = group.outcome === RUNNING ? '…' : isSuccess(group.outcome) ? 'ok' : formatOutcome(group.outcome)
  return `${formatNames(group)} ${state}  ${showLine(Buffer.from(stdout.lastLine() || stderr.lastLine()))}`
}

function formatHeader(group: FoldedGroup, isBold: boolean): string {
  const names = formatNames(group)
  const title = isSuccess(group.outcome) ? names : `${names}: ${formatOutcome(group.outcome)}`
  return `${RULE}\n${isBold ? `\x1b[1m${title}\x1b[22m` : title}\n${RULE}\n`
}

async function writeGroup(
  { hosts }: FoldedGroup,
  { screen, store, isStdoutTerminal, isStderrTerminal }: ReportOptions,
) {
  for (const name of ['stdout', 'stderr'] as const) {
    const isSanitized = name === 'stdout' ? isStdoutTerminal : isStderrTerminal
    const prefixer = new LinePrefixer({ prefix: '', isSanitized })
    for (const bytes of store.of(hosts[0] ?? '')[name].read()) {
      const lines = prefixer.push(bytes)
      if (lines === undefined) continue
      writeLines(screen, name, lines)
      await screen.room()
    }
    writeLines(screen, name, prefixer.flush())
  }
}

function writeLines(screen: LiveScreen, stream: 'stdout' | 'stderr', lines: Uint8Array | undefined): void {
  if (lines === undefined) return
  if (stream === 'stdout') screen.out(lines)
  else screen.err(lines)
}

/** Of each output, what is compared. */
const DIFF_BYTES = 2 ** 20

async function writeDiff(
  majority: FoldedGroup,
  group: FoldedGroup,
  { screen, store, isStdoutTerminal }: ReportOptions,
) {
  const before = store.of(majority.hosts[0] ?? '')
  const after = store.of(group.hosts[0] ?? '')
  const lines = (['stdout', 'stderr'] as const).flatMap((name) => {
    const hunks = unifiedDiff(linesOf(before[name]), linesOf(after[name]))
    if (hunks.length === 0) return []
    const suffix = name === 'stderr' ? ' (stderr)' : ''
    return [`--- ${foldHostSet(majority.hosts)}${suffix}`, `+++ ${foldHostSet(group.hosts)}${suffix}`, ...hunks]
  })
  if ([before, after].some(({ stdout, stderr }) => Math.max(stdout.sizeBytes, stderr.sizeBytes) > DIFF_BYTES)) {
    lines.push(`[… only the first ${DIFF_BYTES} bytes were compared]`)
  }
  for (const line of lines) screen.out(`${isStdoutTerminal ? showLine(Buffer.from(line)) : line}\n`)
  await screen.room()
}

function linesOf(stream: StreamStore): readonly string[] {
  const text = stream.head(DIFF_BYTES).toString()
  if (text === '') return []
  return text.endsWith('\n')
    ? text.slice(0, -1).split('\n')
    : [...text.split('\n').slice(0, -1), `${text.split('\n').at(-1)} (no line break at the end)`]
}

/** What went wrong on a host, on stderr. */
function sayOutcome(screen: LiveScreen, host: string, outcome: RunOutcome): void {
  if (!isSuccess(outcome)) screen.err(`muster: ${host}: ${formatOutcome(outcome)}\n`)
}
