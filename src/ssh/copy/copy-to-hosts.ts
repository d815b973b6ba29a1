/** `muster copy` without a command line: files of this machine to many hosts, each over its own connection. */
import type { Endpoint } from '../../inventory/host.ts'
import { bytePathOf } from './byte-path.ts'
import { copyToHost } from './copy-to-host.ts'
import { type CopyWires, onEachHost } from './on-each-host.ts'
import { SourceReader, type SourceTree } from './source.ts'

export type CopyRequest = {
  readonly tree: SourceTree
  /** Of a host: relative to its home directory. */
  destinationOf(endpoint: Endpoint): string
  readonly isDryRun: boolean
}

/** Never throws: how it went on each host is its `result` event. Returns how many bytes were read here. */
export async function copyToHosts(
  endpoints: readonly Endpoint[],
  request: CopyRequest,
  wires: CopyWires,
): Promise<number> {
  const { tree, isDryRun } = request
  const reader = new SourceReader()
  const files = tree.entries.filter((entry) => entry.kind === 'file')
  const totalBytes = files.reduce((sum, file) => sum + file.sizeBytes, 0)
  await onEachHost(endpoints, wires, async (remote, endpoint, report) => {
    report.onBegin(files.length, totalBytes)
    const destination = bytePathOf(request.destinationOf(endpoint))
    await copyToHost(remote, { tree, reader, destination, isDryRun, ...report })
  })
  return reader.readBytes
}
