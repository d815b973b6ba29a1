/** `muster hosts --check`: who answers, on the real wires, with questions on the terminal. */
import { systemClock } from '../../base/clock.ts'
import { checkHosts as checkAll } from '../../ssh/check-hosts.ts'
import { fanOutFor } from '../connect/fan-out.ts'
import { createWires } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import type { CheckHosts } from './hosts.ts'

export const checkHosts: CheckHosts = async function* (endpoints, options, context) {
  const dialog = new TtyDialog()
  using wires = createWires({
    dialog,
    reviewer: dialog,
    environment: context.environment,
    // Whether somebody can log in is asked here.
    persist: 0,
    onWarning: (message) => context.stderr.write(`muster: ${message}\n`),
  })
  for await (const check of checkAll(endpoints, {
    ...wires,
    clock: systemClock,
    fanOut: fanOutFor(endpoints.length, options, context),
    signal: context.signal,
  })) {
    const { failure } = check
    const reason = failure === undefined ? undefined : withHint(failure.reason, failure.hint)
    yield {
      host: check.host,
      outcome: check.outcome,
      durationMs: check.durationMs,
      ...(reason === undefined ? {} : { reason }),
    }
  }
}

function withHint(reason: string, hint: string | undefined): string {
  return hint === undefined ? reason : `${reason}${/[.!?]$/.test(reason) ? '' : '.'} ${hint}`
}
