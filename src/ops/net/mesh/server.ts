/** A server for one measurement: starts on a free port, is used once it listens, and is stopped when it is not needed. */
import type { Clock } from '../../../base/clock.ts'
import { type OpsHosts, reasonOfResult, type ScriptResult } from '../../kernel/host-port.ts'
import { formatOutcome } from '../../run/outcome.ts'

/** From asking to listening. */
const START_MS = 15_000
const MAX_TRIES = 20

export type ServerEnd = { readonly result: ScriptResult; readonly text: string }

export type RunningServer = {
  readonly kind: 'listening'
  readonly port: number
  readonly ended: Promise<ServerEnd>
  stop(): void
}

export type ServerStart = RunningServer | { readonly kind: 'failed'; readonly reason: string; readonly isAway: boolean }

export type StartOptions = {
  readonly host: string
  script(port: number): string
  /** The ports to try, in order. */
  readonly ports: readonly number[]
  readonly limitMs: number
  readonly signal: AbortSignal
  readonly clock: Clock
  onTaken(port: number): void
  /** What it prints, as it comes. */
  onText?(text: string): void
}

export async function startServer(hosts: OpsHosts, options: StartOptions): Promise<ServerStart> {
  for (const port of options.ports.slice(0, MAX_TRIES)) {
    const start = await tryPort(hosts, port, options)
    if (start !== 'taken') return start
    options.onTaken(port)
  }
  const [first, last] = [options.ports[0], options.ports[Math.min(MAX_TRIES, options.ports.length) - 1]]
  return { kind: 'failed', reason: `all ports tried from ${first} to ${last} are taken`, isAway: false }
}

async function tryPort(
  hosts: OpsHosts,
  port: number,
  { host, script, limitMs, signal, clock, onText }: StartOptions,
): Promise<ServerStart | 'taken'> {
  const own = new AbortController()
  let text = ''
  const listening = Promise.withResolvers<'listening'>()
  const ended = hosts
    .exec(host, script(port), {
      timeoutMs: limitMs,
      signal: AbortSignal.any([signal, own.signal]),
      onOutput(_stream, more) {
        text = (text + more).slice(-65_536)
        if (text.includes('Server listening')) listening.resolve('listening')
        onText?.(more)
      },
    })
    .then((result): ServerEnd => ({ result, text }))
  using _deadline = clock.after(START_MS, () => own.abort())
  const first = await Promise.race([listening.promise, ended])
  if (first === 'listening') return { kind: 'listening', port, ended, stop: () => own.abort() }
  if (/address already in use/i.test(first.text)) return 'taken'
  const { outcome } = first.result
  const isAway = outcome.kind === 'unreachable'
  const reason = own.signal.aborted
    ? `its server did not start to listen within ${START_MS / 1000} s`
    : reasonOfResult(first.result, formatOutcome)
  return { kind: 'failed', reason, isAway }
}
