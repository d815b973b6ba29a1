/** How a copy is told: a block of progress on a terminal, a line a host, the files that failed; or JSON lines. */
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { textWidth } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set-fold.ts'
import type { CopyEvent, HostResult } from '../../ssh/copy/events.ts'
import type { PathEvent } from '../../ssh/copy/passing.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/context.ts'
import { writeEvent } from '../output/json-lines.ts'

type HostState = {
  totalBytes: number
  doneBytes: number
  result: HostResult | undefined
  failures: { path: string; reason: string }[]
}

const REDRAW_MS = 100
const HOSTS_SHOWN = 12
const FAILURES_SHOWN = 5
const PATH_HOSTS = 12

export type CopyReportOptions = GlobalOptions & { readonly dryRun?: boolean }

export class CopyReport {
  readonly #context: CliContext
  readonly #options: CopyReportOptions
  readonly #hosts: ReadonlyMap<string, HostState>
  readonly #isLive: boolean
  /** By the host that writes: the directory, and the hosts that check. */
  readonly #shared = new Map<string, { readonly path: string; readonly hosts: readonly string[] }>()
  #blockLines = 0
  #drawnAtMs = Number.NEGATIVE_INFINITY

  constructor(hosts: readonly string[], options: CopyReportOptions, context: CliContext) {
    this.#context = context
    this.#options = options
    this.#isLive = context.stderr.isTTY === true
    this.#hosts = new Map(hosts.map((host) => [host, { totalBytes: 0, doneBytes: 0, result: undefined, failures: [] }]))
  }

  handle(event: CopyEvent): void {
    const state = this.#hosts.get(event.host)
    if (state === undefined) return
    if (event.type === 'begin') state.totalBytes = event.totalBytes
    if (event.type === 'progress') state.doneBytes += event.bytes
    if (event.type === 'file') this.#handleFile(event, state)
    if (event.type === 'shared') this.#handleShared(event)
    if (event.type === 'result') {
      state.result = event.result
      this.#print(
        { type: 'result', host: event.host, ...event.result },
        describeResult(event.host, state, this.#options.dryRun === true),
      )
    }
    this.#draw(event.type === 'result')
  }

  /** The last lines; returns the exit code. */
  finish(problems: readonly { readonly path: string; readonly reason: string }[]): number {
    this.#erase()
    const results = [...this.#hosts.values()].flatMap(({ result }) => result ?? [])
    const count = (...outcomes: readonly HostResult['outcome'][]) =>
      results.filter(({ outcome }) => outcomes.includes(outcome)).length
    const [ok, unreachable, cancelled] = [count('ok'), count('unreachable', 'refused'), count('cancelled')]
    const failed = results.length - ok - unreachable - cancelled
    const sentBytes = results.reduce((sum, result) => sum + result.sentBytes, 0)
    if (this.#options.json === true) {
      this.#json({ type: 'summary', hosts: this.#hosts.size, ok, failed, unreachable, cancelled, sentBytes })
    } else if (this.#hosts.size > 1) {
      for (const [writer, { path, hosts }] of this.#shared) this.#message(this.#sharedLine(path, [writer, ...hosts]))
      const parts = [
        `${ok} of ${this.#hosts.size} hosts well`,
        ...(failed > 0 ? [`${failed} failed`] : []),
        ...(unreachable > 0 ? [`${unreachable} not reached`] : []),
        ...(cancelled > 0 ? [`${cancelled} cancelled`] : []),
      ]
      this.#context.stderr.write(`muster: ${parts.join(', ')}; ${formatBytes(sentBytes)} in all\n`)
    }
    if (this.#context.signal.aborted) return EXIT.interrupted
    if (unreachable > 0) return EXIT.unreachable
    return failed > 0 || problems.length > 0 ? EXIT.failed : EXIT.ok
  }

  /** Something on this machine that is left out. */
  problem({ path, reason }: { readonly path: string; readonly reason: string }): void {
    this.#context.stderr.write(`muster: ${path}: ${reason}\n`)
    if (this.#options.json === true) this.#json({ type: 'problem', path, reason })
  }

  /** Which way large files go. */
  path(event: PathEvent): void {
    if (this.#options.json === true) this.#json({ type: 'path', ...event })
    else this.#message(`muster: ${describePath(event)}\n`)
  }

  #handleShared(event: Extract<CopyEvent, { type: 'shared' }>): void {
    if (this.#options.json === true) return this.#json(event)
    const { hosts = [] } = this.#shared.get(event.with) ?? {}
    this.#shared.set(event.with, { path: event.path, hosts: [...hosts, event.host] })
  }

  #sharedLine(path: string, hosts: readonly string[]): string {
    const isWhole = hosts.every((host) => this.#hosts.get(host)?.result?.outcome === 'ok')
    return `muster: ${foldHostSet(hosts)} share ${path}${isWhole ? ': written once, checked on each' : ''}\n`
  }

  #handleFile(event: Extract<CopyEvent, { type: 'file' }>, state: HostState): void {
    const { host, path, action, sizeBytes, reason = '' } = event
    if (this.#options.json === true) return this.#json(event)
    if (action === 'failed') {
      state.failures.push({ path, reason })
      if (state.failures.length <= FAILURES_SHOWN) this.#message(`${host}: ${path}: ${reason}\n`)
      return
    }
    const isTold = action === 'would-copy' || (this.#options.verbose === true && action === 'copied')
    if (isTold) this.#print(event, `${host}: ${action.replace('-', ' ')} ${path} (${formatBytes(sizeBytes)})`)
  }

  #json(event: object): void {
    writeEvent(event, this.#context)
  }

  #print(event: object, line: string): void {
    if (this.#options.json === true) return this.#json(event)
    this.#erase()
    this.#context.stdout.write(`${line}\n`)
  }

  #message(text: string): void {
    this.#erase()
    this.#context.stderr.write(text)
  }

  #erase(): void {
    if (this.#blockLines > 0) this.#context.stderr.write(`\u001b[${this.#blockLines}A\r\u001b[J`)
    this.#blockLines = 0
    this.#drawnAtMs = Number.NEGATIVE_INFINITY
  }

  #draw(isDue: boolean): void {
    if (!this.#isLive) return
    const nowMs = this.#context.now()
    if (!isDue && nowMs - this.#drawnAtMs < REDRAW_MS) return
    this.#erase()
    const columns = this.#context.stdout.columns ?? 80
    const running = [...this.#hosts].filter(([, { result, totalBytes }]) => result === undefined && totalBytes > 0)
    if (running.length > 0) {
      const lines = running.slice(0, HOSTS_SHOWN).map(([host, state]) => `${host}: ${formatShare(state)}`)
      if (running.length > HOSTS_SHOWN) lines.push(`and ${running.length - HOSTS_SHOWN} more`)
      const all = [...this.#hosts.values()]
      const total = {
        totalBytes: all.reduce((sum, { totalBytes }) => sum + totalBytes, 0),
        doneBytes: all.reduce((sum, { doneBytes }) => sum + doneBytes, 0),
      }
      const ended = all.filter(({ result }) => result !== undefined).length
      lines.push(`${ended} of ${all.length} hosts done, ${formatShare(total)}`)
      const shown = lines.map(printable).map((line) => (textWidth(line) < columns ? line : line.slice(0, columns - 1)))
      this.#context.stderr.write(shown.map((line) => `${line}\n`).join(''))
      this.#blockLines = shown.length
    }
    this.#drawnAtMs = nowMs
  }
}

function describeResult(host: string, { result, failures }: HostState, isDryRun: boolean): string {
  if (result === undefined) return host
  const { outcome, reason, copied, identical, failed, sentBytes, passedOnBytes = 0, durationMs } = result
  if (outcome !== 'ok' && reason !== undefined) {
    return `${host}: ${outcome}${outcome === reason ? '' : `: ${reason}`}${copied > 0 ? ` (${copied} copied before)` : ''}`
  }
  const parts = [
    isDryRun ? `${copied} would be copied` : `${copied} copied`,
    ...(identical > 0 ? [`${identical} identical`] : []),
    ...(failed > 0 ? [`${failed} failed`] : []),
  ]
  const unsaid = failures.length - FAILURES_SHOWN
  const more = unsaid > 0 ? ` (${unsaid} more failures not shown; --json shows all)` : ''
  const amount = isDryRun ? '' : `, ${formatBytes(sentBytes + passedOnBytes)} in ${(durationMs / 1000).toFixed(1)} s`
  return `${host}: ${parts.join(', ')}${amount}${more}`
}

export function describePath(event: PathEvent): string {
  if (event.via === 'direct') return `path: this machine to every host: ${event.reason}`
  if (event.via === 'detour')
    return `${event.host} takes the rest from ${event.from ?? 'this machine'}: ${event.reason}`
  const { hosts, betweenBitsPerSecond, hereBitsPerSecond } = event
  const names = hosts.length > PATH_HOSTS ? [...hosts.slice(0, PATH_HOSTS - 1), '…', ...hosts.slice(-1)] : hosts
  const path = ['this machine', ...names].join(' → ')
  return `path: ${path} (measured ${formatRate(betweenBitsPerSecond)} between hosts, ${formatRate(hereBitsPerSecond)} from here)`
}

/** `94 Mbit/s` */
function formatRate(bitsPerSecond: number): string {
  const [value, unit] = bitsPerSecond >= 1e9 ? [bitsPerSecond / 1e9, 'Gbit/s'] : [bitsPerSecond / 1e6, 'Mbit/s']
  return `${value >= 10 ? Math.round(value) : value.toFixed(1)} ${unit}`
}

function formatShare({ doneBytes, totalBytes }: { doneBytes: number; totalBytes: number }): string {
  const share = totalBytes === 0 ? 100 : Math.min(100, Math.floor((100 * doneBytes) / totalBytes))
  return `${String(share).padStart(3)} %  ${formatBytes(doneBytes)} of ${formatBytes(totalBytes)}`
}
