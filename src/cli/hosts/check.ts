/** `muster hosts --check`: which hosts answer, with questions on the terminal. */
import { systemClock } from '../../base/clock.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { checkHosts as checkAll } from '../../ssh/check-hosts.ts'
import { withHint } from '../../ssh/transport.ts'
import type { CliContext, GlobalOptions } from '../command-line/context.ts'
import { fanOutFor } from '../connect/fan-out.ts'
import { createVerbWires } from '../connect/transports.ts'

/** Whether a host answers, as `muster hosts --check` reports it. */
export type HostCheck = {
  readonly host: string
  readonly outcome: 'ok' | 'unreachable' | 'refused'
  readonly durationMs: number
  /** Why not, printable, one line. */
  readonly reason?: string
}

/** Tries every host and yields each as soon as it is known. */
export type CheckHosts = (
  endpoints: readonly Endpoint[],
  options: GlobalOptions,
  context: CliContext,
) => AsyncIterable<HostCheck>

export const checkHosts: CheckHosts = async function* (endpoints, options, context) {
  // A connection that is kept open would not show whether the user can log in.
  using wires = createVerbWires(context, 0)
  const fanOut = fanOutFor(endpoints.length, options, context)
  const checks = checkAll(endpoints, { ...wires, clock: systemClock, fanOut, signal: context.signal })
  for await (const { host, outcome, durationMs, failure } of checks) {
    const reason = failure === undefined ? {} : { reason: withHint(failure) }
    yield { host, outcome, durationMs, ...reason }
  }
}
