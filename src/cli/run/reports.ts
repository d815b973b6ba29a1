/** The ways to show a run: lines as they come, folded groups, or JSON. */
import { foldHostSet } from '../../inventory/host-set.ts'
import { formatResult, formatSummaryLine } from '../../ops/run/json-result.ts'
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
import { unifiedDiff } from '../../ops/run/unified-diff.ts'
import type { LiveScreen } from '../output/live-screen.ts'

export interface RunReport {
  onOutput?(host: string, stream: 'stdout' | 'stderr', bytes: Uint8Array): void
  /** May wait for room on stdout; called for one host after the other. */
  onEnd(host: string, outcome: RunOutcome, durationMs: number): void | Promise<void>
  /** At most `limit` lines about the progress, for a terminal. */
  live?(limit: number): readonly string[]
  /** After the last host. */
  finish(summary: RunSummary): Promise<void>
}

export type ReportOptions = {
  readonly screen: LiveScreen
  readonly store: OutputStore
  /** stdout, stderr are terminals: what hosts print must not act on them. */
  readonly isStdoutTerminal: boolean
  readonly isStderrTerminal: boolean
  readonly isBold: boolean
}

/** Lines as they come, each with its host's name. */
export function streamReport({ screen, isStdoutTerminal, isStderrTerminal }: ReportOptions): RunReport {
  const prefixers = new Map<string, Record<'stdout' | 'stderr', LinePrefixer>>()
  const of = (host: string) => {
    let pair = prefixers.get(host)
    if (pair === undefined) {
      const prefix = `${host}: `
      pair = {
        stdout: new LinePrefixer({ prefix, isSanitized: isStdoutTerminal }),
        stderr: new LinePrefixer({ prefix, isSanitized: isStderrTerminal }),
      }
      prefixers.set(host, pair)
    }
    return pair
  }
  const write = (stream: 'stdout' | 'stderr', lines: Buffer | undefined) => {
    if (lines === undefined) return
    if (stream === 'stdout') screen.out(lines)
    else screen.err(lines)
  }
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
export function jsonReport({ screen, store }: ReportOptions): RunReport {
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
export function foldReport(
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
  const { stdout, stderr } = store.of(hosts[0] ?? '')
  await writeStream(stdout, isStdoutTerminal, (bytes) => screen.out(bytes), screen)
  await writeStream(stderr, isStderrTerminal, (bytes) => screen.err(bytes), screen)
}

async function writeStream(
  stream: StreamStore,
  isTerminal: boolean,
  write: (bytes: Uint8Array) => void,
  screen: LiveScreen,
) {
  const prefixer = new LinePrefixer({ prefix: '', isSanitized: isTerminal })
  for (const bytes of stream.read()) {
    const lines = prefixer.push(bytes)
    if (lines === undefined) continue
    write(lines)
    await screen.room()
  }
  const last = prefixer.flush()
  if (last !== undefined) write(last)
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
