/** The ways to show a run: lines as they come, folded groups, or JSON. */
import { getOrMake } from '../../base/collections.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { formatResult } from '../../ops/run/json-result.ts'
import { LinePrefixer, showLine } from '../../ops/run/line-prefixer.ts'
import {
  type FoldedGroup,
  type FoldedHost,
  foldHosts,
  formatOutcome,
  isSuccess,
  type RunOutcome,
  type RunSummary,
} from '../../ops/run/outcome.ts'
import type { OutputStore, StreamStore } from '../../ops/run/output-store.ts'
import type { RunEvent } from '../../ops/run/run-hosts.ts'
import { unifiedDiff } from '../../ops/run/unified-diff.ts'
import type { CliContext } from '../command-line/verb.ts'
import { foldFailures, type HostFailure } from '../output/fold-failures.ts'
import { jsonLine } from '../output/json-lines.ts'
import type { LiveScreen } from '../output/live-screen.ts'
import { OUTPUT_VERSION } from '../schemas/shape.ts'
import type { RunVerbOptions } from './plan-run.ts'

export interface RunReport {
  onOutput?(host: string, stream: 'stdout' | 'stderr', bytes: Uint8Array): void
  /** May wait for room on stdout; called for one host after the other. */
  onEnd(host: string, outcome: RunOutcome, durationMs: number): void | Promise<void>
  onRetry?(retry: RetryEvent): void
  /** At most `limit` lines about the progress, for a terminal. */
  live?(limit: number): readonly string[]
  /** After the last host of each batch. */
  endBatch?(): Promise<void>
  /** After the last host. */
  finish?(summary: RunSummary): void
}

type RetryEvent = Extract<RunEvent, { readonly type: 'retry' }>

type ReportOptions = {
  readonly screen: LiveScreen
  readonly store: OutputStore
  addressOf(host: string): string
  /** stdout, stderr are terminals: long lines are cut. */
  readonly isStdoutTerminal: boolean
  readonly isStderrTerminal: boolean
  readonly isBold: boolean
  readonly selection: CliContext['selection']
}

export function chooseReport(options: RunVerbOptions, order: readonly string[], parts: ReportOptions): RunReport {
  if (options.json === true) return jsonReport(parts)
  const isDiff = options.diff === true
  const isFolded = options.fold ?? (parts.isStdoutTerminal && order.length > 1 && options.out === undefined)
  if (isDiff || isFolded) return foldReport({ ...parts, isDiff, order })
  const stream = streamReport(parts)
  // With --out the files hold the output; what went wrong is still said.
  return options.out === undefined ? stream : { onEnd: stream.onEnd, onRetry: stream.onRetry }
}

/** Lines as they come, each with its host's name. */
function streamReport({
  screen,
  isStdoutTerminal,
  isStderrTerminal,
}: ReportOptions): RunReport & Required<Pick<RunReport, 'onRetry'>> {
  const prefixers = new Map<string, Record<'stdout' | 'stderr', LinePrefixer>>()
  const of = (host: string) =>
    getOrMake(prefixers, host, () => ({
      stdout: new LinePrefixer({ prefix: `${host}: `, isCut: isStdoutTerminal }),
      stderr: new LinePrefixer({ prefix: `${host}: `, isCut: isStderrTerminal }),
    }))
  const write = writeLines.bind(undefined, screen)
  const flush = (host: string): void => {
    const pair = prefixers.get(host)
    write('stdout', pair?.stdout.flush())
    write('stderr', pair?.stderr.flush())
    prefixers.delete(host)
  }
  return {
    onOutput: (host, stream, bytes) => write(stream, of(host)[stream].push(bytes)),
    onEnd: (host, outcome) => {
      flush(host)
      sayOutcome(screen, host, outcome)
    },
    onRetry: ({ host, outcome, delayMs }) => {
      flush(host)
      screen.notice(`muster: ${host}: ${formatOutcome(outcome)}; next attempt in ${Math.round(delayMs / 1000)} s\n`)
    },
  }
}

/** One object for each host as soon as it has ended. */
function jsonReport({ screen, store, selection }: ReportOptions): RunReport {
  const write = (event: object) => screen.out(jsonLine(event, { selection }))
  return {
    async onEnd(host, { kind, ...details }, durationMs) {
      if (selection?.types.has('result') === false) return store.forget(host)
      const head = { version: OUTPUT_VERSION, type: 'result', host, outcome: kind, ...details }
      let line = ''
      for (const piece of formatResult(head, store.of(host), durationMs, selection?.fields)) {
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
    onRetry: ({ host, outcome: { kind, ...details }, failures, delayMs }) =>
      write({ type: 'retry', host, outcome: kind, ...details, failures, delayMs }),
    finish: (summary) => write({ type: 'summary', ...summary }),
  }
}

/** Groups of hosts with equal output, at the end of each batch; with `isDiff` what differs from the largest group of the first. */
function foldReport(
  options: ReportOptions & { readonly isDiff: boolean; readonly order: readonly string[] },
): RunReport {
  const { screen, store, addressOf, isDiff, order } = options
  const ended = new Map<string, RunOutcome>()
  /** Hosts of this batch that could not be reached. */
  const away: HostFailure[] = []
  /** Of batches that are over. */
  const written = new Set<string>()
  let majority: FoldedGroup | undefined
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
      if (isAway(outcome)) away.push({ host, address: addressOf(host), reason: formatOutcome(outcome) })
    },
    live: (limit) => {
      const groups = foldHosts(hostsOf((host) => (written.has(host) ? undefined : (ended.get(host) ?? RUNNING))))
      const shown = groups.length > limit ? groups.slice(0, Math.max(0, limit - 1)) : groups
      const lines = shown.map((group) => formatLive(group, store))
      return shown.length < groups.length ? [...lines, `… and ${groups.length - shown.length} more groups`] : lines
    },
    async endBatch() {
      const groups = foldHosts(hostsOf((host) => ended.get(host)))
      for (const host of ended.keys()) written.add(host)
      ended.clear()
      majority ??= groups[0]
      for (const group of groups) {
        screen.out(formatHeader(group, options.isBold))
        if (isDiff && majority !== undefined && group !== majority) await writeDiff(majority, group, options)
        else await writeGroup(group, options)
      }
      if (away.length > 0) screen.err(foldFailures(away.splice(0)))
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
    const isCut = name === 'stdout' ? isStdoutTerminal : isStderrTerminal
    const prefixer = new LinePrefixer({ prefix: '', isCut })
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

async function writeDiff(majority: FoldedGroup, group: FoldedGroup, { screen, store }: ReportOptions) {
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
  for (const line of lines) screen.out(`${showLine(Buffer.from(line))}\n`)
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
