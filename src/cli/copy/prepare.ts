/** What copy and fetch share before the first connection: paths, hosts and wires. */
import { systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import type { CopyWires } from '../../ssh/copy/on-each-host.ts'
import type { CliContext } from '../command-line/context.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { fanOutFor } from '../connect/fan-out.ts'
import { createVerbWires } from '../connect/transports.ts'
import { TtyDialog } from '../connect/tty-dialog.ts'
import { CopyReport, type CopyReportOptions } from './report.ts'

/**
 * Sources, and the last path. An empty one is a variable that was never set: as the current directory it would copy all of that.
 * @throws MusterError `usage`
 */
export function splitPaths(paths: readonly string[], last: string, example: string): [readonly string[], string] {
  const end = paths.at(-1)
  if (end === undefined || paths.length < 2)
    throw new MusterError('usage', `copying needs a source and a ${last}`, { hint: `Example: ${example}` })
  if (paths.includes(''))
    throw new MusterError('usage', 'a path is empty', {
      hint: 'Is a variable not set? Write . for the current directory, and ~ for the home directory of a host.',
    })
  return [paths.slice(0, -1), end]
}

export type PreparedCopy = Disposable & {
  readonly endpoints: readonly Endpoint[]
  readonly wires: Omit<CopyWires, 'onEvent'>
  readonly report: CopyReport
}

/** @throws MusterError `usage` or `configuration` */
export async function prepareCopy(
  target: string,
  options: CopyReportOptions,
  context: CliContext,
): Promise<PreparedCopy> {
  const { endpoints } = await selectEndpoints(target, options, context)
  if (endpoints.length === 0) throw new MusterError('usage', 'the target names no host')
  const fanOut = fanOutFor(endpoints.length, options, context)
  const hosts = endpoints.map(({ host }) => host)
  const report = new CopyReport(hosts, options, context)
  const wires = createVerbWires(context, options.persist, report.quietly(new TtyDialog()))
  return {
    endpoints,
    wires: { ...wires, clock: systemClock, fanOut, signal: context.signal },
    report,
    [Symbol.dispose]() {
      report[Symbol.dispose]()
      wires[Symbol.dispose]()
    },
  }
}
