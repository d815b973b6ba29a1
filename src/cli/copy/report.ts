/** What a copy prints: progress on a terminal, a line for each host, the files that failed; or JSON lines. */
import { formatBytes } from '../../base/format-bytes.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { CopyEvent, HostResult, PathEvent } from '../../ssh/copy/events.ts'
import { type CopyHost, describeResult, formatShare, reduceHost, totalOf, WAITING } from '../../ssh/copy/progress.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/verb.ts'
import { writeEvent } from '../output/json-lines.ts'
import { LiveScreen, type TerminalDialog } from '../output/live-screen.ts'
import { notice } from '../output/notices.ts'

const HOSTS_SHOWN = 12
const FAILURES_SHOWN = 5
const PATH_HOSTS = 12

export class CopyReport implements Disposable {
  readonly #context: CliContext
  readonly #moved: string
  readonly #options: GlobalOptions
  readonly #hosts: Map<string, CopyHost>
  readonly #screen: LiveScreen
  /** By the host that writes: the directory, and the hosts that check. */
  readonly #shared = new Map<string, { readonly path: string; readonly hosts: readonly string[] }>()

  /** `moved`: what became of the bytes that this machine sent or got, such as `received`. */
  constructor(hosts: readonly string[], moved: string, options: GlobalOptions, context: CliContext) {
    this.#context = context
    this.#moved = moved
    this.#options = options
    this.#hosts = new Map(hosts.map((host) => [host, WAITING]))
    this.#screen = new LiveScreen({ ...context, live: () => this.#progress() })
  }

  quietly(dialog: TerminalDialog): TerminalDialog {
    return this.#screen.quietly(dialog)
  }

  handle(event: CopyEvent): void {
    const known = this.#hosts.get(event.host)
    if (known === undefined) return
    const host = reduceHost(known, event)
    this.#hosts.set(event.host, host)
    if (event.type === 'file') this.#handleFile(event, host)
    if (event.type === 'shared') this.#handleShared(event)
    if (event.type === 'result')
      this.#print({ type: 'result', host: event.host, ...event.result }, this.#resultLine(event))
    this.#screen.refresh()
  }

  /** The last lines; returns the exit code. */
  finish(problems: readonly { readonly path: string; readonly reason: string }[]): number {
    this[Symbol.dispose]()
    const results = [...this.#hosts.values()].flatMap(({ result }) => result ?? [])
    const count = (wanted: HostResult['outcome']) => results.filter(({ outcome }) => outcome === wanted).length
    const [ok, unreachable, refused, cancelled] = [
      count('ok'),
      count('unreachable'),
      count('refused'),
      count('cancelled'),
    ]
    const failed = results.length - ok - unreachable - refused - cancelled
    const sentBytes = results.reduce((sum, result) => sum + result.sentBytes, 0)
    if (this.#options.json === true) {
      this.#json({ type: 'summary', hosts: this.#hosts.size, ok, failed, unreachable, refused, cancelled, sentBytes })
    } else if (this.#hosts.size > 1) {
      for (const [writer, { path, hosts }] of this.#shared)
        this.#screen.notice(this.#sharedLine(path, [writer, ...hosts]))
      const parts = [
        `${ok} of ${this.#hosts.size} hosts ok`,
        ...(failed > 0 ? [`${failed} failed`] : []),
        ...(unreachable > 0 ? [`${unreachable} not reached`] : []),
        ...(refused > 0 ? [`${refused} refused`] : []),
        ...(cancelled > 0 ? [`${cancelled} cancelled`] : []),
      ]
      notice(this.#context, `muster: ${parts.join(', ')}; ${formatBytes(sentBytes)} ${this.#moved}\n`)
    }
    if (cancelled > 0 && this.#options.json !== true)
      notice(this.#context, 'muster: The same command continues where it was cancelled.\n')
    if (this.#context.signal.aborted) return EXIT.interrupted
    if (unreachable + refused > 0) return EXIT.unreachable
    return failed > 0 || problems.length > 0 ? EXIT.failed : EXIT.ok
  }

  /** Something on this machine that is skipped. */
  problem({ path, reason }: { readonly path: string; readonly reason: string }): void {
    this.#screen.err(`muster: ${path}: ${reason}\n`)
    if (this.#options.json === true) this.#json({ type: 'problem', path, reason })
  }

  /** How large files travel. */
  path(event: PathEvent): void {
    if (this.#options.json === true) this.#json({ type: 'path', ...event })
    else this.#screen.notice(`muster: ${describePath(event)}\n`)
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

  #handleFile(event: Extract<CopyEvent, { type: 'file' }>, { failures }: CopyHost): void {
    const { host, path, action, sizeBytes, reason = '' } = event
    if (this.#options.json === true) return this.#json(event)
    if (action === 'failed') {
      if (failures.length <= FAILURES_SHOWN) this.#screen.err(`${host}: ${path}: ${reason}\n`)
      return
    }
    const isShown = action === 'would-copy' || (this.#options.verbose === true && action === 'copied')
    if (isShown) this.#print(event, `${host}: ${action.replace('-', ' ')} ${path} (${formatBytes(sizeBytes)})`)
  }

  #resultLine({ host, result }: Extract<CopyEvent, { type: 'result' }>): string {
    const unsaid = result.outcome === 'ok' || result.reason === undefined ? result.failed - FAILURES_SHOWN : 0
    const more = unsaid > 0 ? ` (${unsaid} more failures not shown; --json shows all)` : ''
    return `${host}: ${describeResult(result, this.#options.dryRun === true)}${more}`
  }

  #json(event: object): void {
    writeEvent(event, this.#context)
  }

  #print(event: object, line: string): void {
    if (this.#options.json === true) this.#json(event)
    else this.#screen.out(`${line}\n`)
  }

  #progress(): readonly string[] {
    const all = [...this.#hosts]
    const running = all.filter(([, { result, totalBytes }]) => result === undefined && totalBytes > 0)
    if (running.length === 0) return []
    const total = totalOf(this.#hosts.values())
    return [
      ...running.slice(0, HOSTS_SHOWN).map(([host, state]) => `${host}: ${formatShare(state)}`),
      ...(running.length > HOSTS_SHOWN ? [`and ${running.length - HOSTS_SHOWN} more`] : []),
      `${total.ended} of ${all.length} hosts done, ${formatShare(total)}`,
    ]
  }

  [Symbol.dispose](): void {
    this.#screen[Symbol.dispose]()
  }
}

export function describePath(event: PathEvent): string {
  if (event.via === 'direct') return `path: from this machine to every host: ${event.reason}`
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
