/** The connections of `muster hosts`: which hosts answer (`--check`), and those that the background process keeps (`--persisted`, `--stop`). */

import { systemClock } from '../../base/clock.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { checkHosts as checkAll } from '../../ssh/check-hosts.ts'
import { keeperDirectory } from '../../ssh/persist/keeper-directory.ts'
import type { WarmConnection } from '../../ssh/persist/messages.ts'
import { findKeeper } from '../../ssh/persist/persist-transport.ts'
import { withHint } from '../../ssh/transport.ts'
import { type CliContext, EXIT, type GlobalOptions } from '../command-line/verb.ts'
import { createVerbWires, fanOutFor } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { jsonLine } from '../output/json-lines.ts'
import { LiveScreen } from '../output/live-screen.ts'
import { notice } from '../output/notices.ts'
import { formatTable, type TableOutput } from '../output/table.ts'

/** Lists connections to these hosts, or to all. With `isStop` it closes them, and lists them as they were. */
export async function showWarmHosts(
  endpoints: readonly Endpoint[] | undefined,
  { json, isStop }: GlobalOptions & { readonly isStop: boolean },
  context: CliContext,
): Promise<number> {
  using keeper = await findKeeper(keeperDirectory(context.environment))
  const isMeant = ({ user, address, port }: WarmConnection) =>
    endpoints === undefined ||
    endpoints.some((each) => each.user === user && each.address === address && each.port === port)
  const warm = isStop ? await keeper?.stop(endpoints) : (await keeper?.list())?.filter(isMeant)
  const nowMs = context.now()
  if (json) {
    for (const each of warm ?? []) context.stdout.write(jsonLine(warmEvent(each, isStop, nowMs), context))
    return EXIT.ok
  }
  if (warm === undefined || warm.length === 0) notice(context, 'muster: no connection is kept open\n')
  else context.stdout.write(formatWarm(warm, isStop, nowMs, context.stdout))
  return EXIT.ok
}

function warmEvent({ host, user, address, port, users, ...times }: WarmConnection, isStop: boolean, nowMs: number) {
  return {
    type: isStop ? 'stopped' : 'warm',
    host,
    time: new Date(nowMs).toISOString(),
    user,
    address,
    port,
    since: new Date(times.sinceMs).toISOString(),
    users,
    ...(times.endsAtMs === undefined ? {} : { remainingMs: Math.max(0, times.endsAtMs - nowMs) }),
  }
}

function formatWarm(warm: readonly WarmConnection[], isStop: boolean, nowMs: number, out: TableOutput): string {
  const rows = warm.map(({ host, user, address, port, sinceMs, users, endsAtMs }) => [
    host,
    address,
    String(port),
    user,
    seconds(nowMs - sinceMs),
    isStop ? 'stopped' : endsAtMs === undefined ? `in use (${users})` : seconds(endsAtMs - nowMs),
  ])
  return formatTable(['NAME', 'ADDRESS', 'PORT', 'USER', 'OPEN FOR', isStop ? '' : 'CLOSES IN'], rows, out)
}

const seconds = (ms: number): string => `${Math.max(0, Math.round(ms / 1000))} s`

/** Whether a host answers, as `muster hosts --check` reports it. */
export type HostCheck = {
  readonly host: string
  readonly outcome: 'ok' | 'unreachable' | 'refused'
  readonly durationMs: number
  /** Why not, printable, one line. */
  readonly reason?: string
}

export type CheckHosts = typeof checkHosts

/** Tries every host and yields each as soon as it is known. */
export async function* checkHosts(
  endpoints: readonly Endpoint[],
  options: GlobalOptions,
  context: CliContext,
): AsyncIterable<HostCheck> {
  let done = 0
  let failed = 0
  const live = () => [`${done}/${endpoints.length} checked${failed > 0 ? `, ${failed} failed` : ''}`]
  using screen = new LiveScreen({ ...context, live: () => (options.json ? [] : live()) })
  // A connection that is kept open would not show whether the user can log in.
  using wires = createVerbWires(context, 0, screen.quietly(new TtyDialog()))
  const fanOut = fanOutFor(endpoints.length, options, context)
  const checks = checkAll(endpoints, { ...wires, clock: systemClock, fanOut, signal: context.signal })
  for await (const { host, outcome, durationMs, failure } of checks) {
    done += 1
    if (outcome !== 'ok') failed += 1
    screen.refresh()
    const reason = failure === undefined ? {} : { reason: withHint(failure) }
    yield { host, outcome, durationMs, ...reason }
  }
}
