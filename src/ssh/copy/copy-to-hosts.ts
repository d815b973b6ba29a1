/** `muster copy` without a command line: files of this machine to many hosts, directly or from host to host. */
import { onAbort } from '../../base/abort.ts'
import { MusterError } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { connectLimits } from '../connect-limits.ts'
import { bytePathOf, joinPath } from './byte-path.ts'
import { CHAIN_BYTES, Chain, FEWEST } from './chain.ts'
import { type Clash, describeClash, findClashes } from './clashes.ts'
import { HostCopy } from './copy-to-host.ts'
import type { CopyEvent, CopyVia, PathEvent } from './events.ts'
import { type CopyWires, onEachHost } from './on-each-host.ts'
import { RemoteHelper } from './remote-helper.ts'
import { SharedTargets } from './shared-targets.ts'
import { SmallFiles } from './small-files.ts'
import { SourceReader, type SourceTree } from './source.ts'

export type CopyRequest = {
  readonly tree: SourceTree
  /** Relative to the home directory of the host. */
  destinationOf(endpoint: Endpoint): string
  readonly isDryRun: boolean
  /**
   * True: below the destination, a link in place of a directory is replaced, even if root owns it. By default, a link that belongs to
   * the account or to root is followed, and any other link is refused.
   */
  readonly replacesLinks?: boolean
  /** Whether hosts relay large files; by default (`auto`) where that is measured to be faster. */
  readonly via?: CopyVia
  /** False: use only the shell, as on hosts without Python. */
  readonly hasHelpers?: boolean
  onPath?(event: PathEvent): void
}

/** Each host ends with a `result` event. Returns the bytes read here. @throws MusterError `usage`: two sources would be one file */
export async function copyToHosts(
  endpoints: readonly Endpoint[],
  request: CopyRequest,
  wires: CopyWires,
): Promise<number> {
  const { tree, isDryRun, replacesLinks = false, via = 'auto', hasHelpers = true } = request
  const { clock, signal } = wires
  const hosts = endpoints.map(({ host }) => host)
  const clashes = clashesIn(tree)
  const reader = new SourceReader()
  const files = tree.entries.filter((entry) => entry.kind === 'file')
  const totalBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0)
  const smallFiles = new SmallFiles(files, reader)
  const isChain =
    via !== 'direct' &&
    !isDryRun &&
    endpoints.length >= FEWEST[via] &&
    files.some(({ sizeBytes }) => sizeBytes >= CHAIN_BYTES)
  const needsHelper = hasHelpers && (isChain || smallFiles.batches.length > 0)
  // After an abort, no host takes another path.
  const onPath = (event: PathEvent) => signal.aborted || request.onPath?.(event)
  using chain = isChain ? new Chain({ via, clock, hosts, onPath }) : undefined
  const shared =
    endpoints.length < 2 || isDryRun
      ? undefined
      : new SharedTargets({
          hosts,
          clock,
          onShared: (host, writer) => {
            chain?.exclude(host)
            wires.onEvent({ type: 'shared', host, with: writer.host, path: writer.directory })
          },
        })
  const onEvent = (event: CopyEvent) => {
    if (event.type === 'result') {
      shared?.handleArrival(event.host)
      chain?.exclude(event.host)
    }
    wires.onEvent(event)
  }
  await onEachHost(endpoints, { ...wires, onEvent }, async ({ remote, connection, endpoint }, report) => {
    const { host, address } = endpoint
    report.onBegin(files.length, totalBytes)
    const destination = bytePathOf(request.destinationOf(endpoint))
    const startLimitMs = connectLimits(endpoint).shellStartMs
    const helper = needsHelper ? RemoteHelper.start(connection, { clock, startLimitMs, signal }) : undefined
    const joining = helper?.then((started) => {
      if (started !== undefined) chain?.add(host, address, started)
      return started
    })
    const close = async () => (await helper)?.close()
    const aborting = onAbort(signal, () => void close())
    const end = () => {
      aborting[Symbol.dispose]()
      return close()
    }
    try {
      await new HostCopy(remote, {
        clock,
        tree,
        clashes,
        shared,
        host,
        reader,
        destination,
        isDryRun,
        replacesLinks,
        smallFiles,
        ...(joining === undefined ? {} : { helper: joining }),
        ...(chain && { joinRelay: (file, path, have) => chain.join(host, file, path, have, report.onPassedOn) }),
        ...report,
      }).run()
    } catch (error) {
      await end()
      throw error
    }
    return async () => {
      await chain?.released(host)
      await end()
      // Hosts that connect later look for the proof file of this one, which is removed when its connection closes.
      if (endpoints.length <= wires.fanOut) await remote.orLost(shared?.everyone ?? Promise.resolve()).catch(() => {})
    }
  })
  return reader.readBytes
}

/** Clashes that depend on the host's file system. @throws MusterError for a certain one */
function clashesIn({ names, entries }: SourceTree): readonly Clash[] {
  const placed = entries.map(({ root, below, path, kind }) => ({
    target: joinPath(names.length > 1 ? (names[root] ?? '') : '', below),
    source: path.replace('/./', '/'),
    isDirectory: kind === 'directory',
  }))
  const clashes = findClashes(placed)
  const certain = clashes.find(({ ifCaseIgnoredIn }) => ifCaseIgnoredIn === undefined)
  if (certain === undefined) return clashes
  throw new MusterError('usage', describeClash(certain), { hint: 'Copy them one at a time, to different names.' })
}
