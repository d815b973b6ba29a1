/** `muster fetch` without a command line: files of many hosts into a directory of this machine for each. */
import type { Endpoint } from '../../inventory/host.ts'
import { bytePathOf, joinPath } from './byte-path.ts'
import { fetchFromHost } from './fetch-from-host.ts'
import { type CopyWires, onEachHost } from './on-each-host.ts'

export type FetchRequest = {
  /** Of a host: relative to its home directory. */
  sourcesOf(endpoint: Endpoint): readonly string[]
  /** Absolute; each host's files go into a directory of its name there. */
  readonly directory: string
  readonly isDryRun: boolean
}

/** Never throws: how it went on each host is its `result` event. */
export async function fetchFromHosts(
  endpoints: readonly Endpoint[],
  { sourcesOf, directory, isDryRun }: FetchRequest,
  wires: CopyWires,
): Promise<void> {
  await onEachHost(endpoints, wires, async ({ remote, endpoint }, report) => {
    await fetchFromHost(remote, {
      sources: sourcesOf(endpoint).map(bytePathOf),
      directory: joinPath(bytePathOf(directory), directoryNameOf(endpoint.host)),
      isDryRun,
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
