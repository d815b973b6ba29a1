/** `muster net nfs HOST [DIRECTORY]`: throughput and latency of an NFS mount, from its client. */
import { systemClock } from '../../base/clock.ts'
import { MusterError } from '../../base/errors.ts'
import { formatBytes } from '../../base/format-bytes.ts'
import { printable } from '../../base/printable.ts'
import { concludeTest, nfsTest } from '../../ops/net/kept-test.ts'
import {
  measureNfs,
  type NfsEvent,
  newNfsRecord,
  nfsPlace,
  nfsSummary,
  silentText,
  takeNfsEvent,
} from '../../ops/net/nfs/measure-nfs.ts'
import { type CliContext, EXIT, type VerbCode } from '../command-line/verb.ts'
import { selectEndpoints } from '../connect/endpoints.ts'
import { openOpsHosts } from '../connect/ops-hosts.ts'
import { writeEvent } from '../output/json-lines.ts'
import { printConclusion } from './conclude.ts'
import { addNfsOptions, type NfsLinkOptions } from './options.ts'

export const verb: VerbCode = {
  define: (command) =>
    addNfsOptions(
      command
        .argument('<host>', 'the client that has the mount')
        .argument('[directory]', 'measure this directory (default: its first NFS mount)'),
    ),
  help: `
Examples:
  muster net nfs m8                            the first NFS mount of m8: write and read rates, and the time for a small file
  muster net nfs m8 /data --time 20
  muster net nfs m10 /srv/data                 the same directory on the server itself: is the disk slow, or the network?

Each block of 4 MiB is committed on the server before the next one. Reads bypass the client's cache if possible.
It writes at most 64 MiB, to a new directory .muster-nfs-… that is removed at the end.
Exit codes: 0 measured, 1 could not be measured, 4 the host could not be reached, 130 interrupted.
`,
  async run(host: string, directory: string | undefined, options: NfsLinkOptions, context: CliContext) {
    const { endpoints } = await selectEndpoints(host, options, context)
    const [endpoint] = endpoints
    if (endpoint === undefined || endpoints.length !== 1)
      throw new MusterError('usage', `name one host, not ${printable(host)}`)
    using opened = openOpsHosts([endpoint], options, context)
    const { stdout, stderr, signal } = context
    const record = newNfsRecord(endpoint.host)
    let failure: Extract<NfsEvent, { type: 'failed' }> | undefined
    await measureNfs(
      endpoint.host,
      { directory, seconds: options.time },
      {
        hosts: opened.hosts,
        signal,
        clock: systemClock,
        onEvent(event) {
          const rate = takeNfsEvent(record, event)
          if (event.type === 'failed') failure = event
          if (options.json === true) writeEvent(nfsEvent(event), context)
          else if (event.type === 'directory') stdout.write(`${printable(nfsPlace(record))}\n`)
          else if (event.type === 'block' && rate !== undefined)
            stdout.write(
              `${event.does === 'write' ? record.writes.length : record.reads.length} s  ${event.does}  ${formatBytes(rate)}/s\n`,
            )
          else if (event.type === 'silent') stderr.write(`muster: ${event.host}: ${printable(silentText(record))}\n`)
          else if (event.type === 'failed') stderr.write(`muster: ${event.host}: ${printable(event.reason)}\n`)
        },
      },
    )
    if (options.json !== true) for (const line of nfsSummary(record)) stdout.write(`${line}\n`)
    const nowMs = context.now()
    printConclusion(concludeTest(context.environment, nfsTest(record, nowMs), nowMs), options, context)
    if (signal.aborted) return EXIT.interrupted
    return failure === undefined ? EXIT.ok : failure.isAway ? EXIT.unreachable : EXIT.failed
  },
}

function nfsEvent(event: NfsEvent): object {
  switch (event.type) {
    case 'directory':
      return {
        type: 'nfs-directory',
        host: event.host,
        directory: event.directory,
        source: event.mount?.source,
        nfsVersion: event.mount?.version,
      }
    case 'block':
      return { ...event, type: 'nfs-block' }
    case 'small-file':
      return { ...event, type: 'nfs-small-file' }
    case 'cached':
      return { ...event, type: 'nfs-cached' }
    case 'silent':
      return { ...event, type: 'nfs-silent' }
    case 'failed':
      return { type: 'nfs-failed', host: event.host, isAway: event.isAway, reason: event.reason }
  }
}
