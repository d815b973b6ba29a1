/** `muster fetch` without a command line: files of many hosts into a directory of this machine for each. */
import { MusterError } from '../../base/errors.ts'
import type { Endpoint } from '../../inventory/host.ts'
import { bytePathOf, joinPath } from './byte-path.ts'
import { ignoresCase } from './case-probe.ts'
import { describeClash, findClashes, findRealClash } from './clashes.ts'
import { fetchFromHost } from './fetch-from-host.ts'
import { type CopyWires, onEachHost } from './on-each-host.ts'

export type FetchRequest = {
  /** Of a host: relative to its home directory. */
  sourcesOf(endpoint: Endpoint): readonly string[]
  /** Absolute; each host's files go into a directory of its name there. */
  readonly directory: string
  readonly isDryRun: boolean
  /** Set-id and sticky bits of what belongs to the same user there and here; not unless given. */
  readonly keepsSpecialBits?: boolean
}

/**
 * How it went on each host is its `result` event.
 * @throws MusterError `usage`: the files of two hosts would come into one directory
 */
export async function fetchFromHosts(
  endpoints: readonly Endpoint[],
  { sourcesOf, directory, isDryRun, keepsSpecialBits = false }: FetchRequest,
  wires: CopyWires,
): Promise<void> {
  const directoryOf = (host: string) => joinPath(bytePathOf(directory), directoryNameOf(host))
  const placed = endpoints.map(({ host }) => ({
    target: directoryOf(host),
    source: bytePathOf(host),
    isDirectory: false,
  }))
  const clash = await findRealClash(findClashes(placed), async (path) => !isDryRun && ignoresCase(path))
  if (clash !== undefined) {
    throw new MusterError('usage', describeClash(clash), { hint: 'Fetch from one host after the other.' })
  }
  await onEachHost(endpoints, wires, async ({ remote, endpoint }, report) => {
    await fetchFromHost(remote, {
      sources: sourcesOf(endpoint).map(bytePathOf),
      directory: directoryOf(endpoint.host),
      isDryRun,
      keepsSpecialBits,
      ...report,
    })
    return undefined
  })
}

/** A host's name that is a single directory and no other one. */
function directoryNameOf(host: string): string {
  const name = bytePathOf(host).replaceAll('/', '_')
  return name === '.' || name === '..' ? `_${name}` : name
}
