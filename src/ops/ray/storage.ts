/** Whether a directory of results is the same one on all nodes of a Ray cluster: training fails at its first report otherwise. */
import { printable } from '../../base/printable.ts'
import { checkSharedDirectory, directoryProblem, type SharedDirectoryOptions } from '../nfs/shared-directory.ts'
import { inside } from './place.ts'
import { nodeOf, type RayWanted } from './wanted.ts'

/** A sentence with its fix. `isUnsure`: the host could not be asked. Printable. */
type StorageProblem = { readonly words: string; readonly isUnsure: boolean }

/** `nodes`: hosts of hosts.yaml, or what Ray calls others. Never rejects; empty: it is one directory. */
export async function proveRayStorage(
  wanted: RayWanted,
  path: string,
  nodes: readonly string[],
  options: Omit<SharedDirectoryOptions, 'wrap'>,
): Promise<readonly StorageProblem[]> {
  const byName = new Map(nodes.map((name) => [name, nodeOf(wanted, name)] as const))
  const strangers = nodes.filter((name) => byName.get(name) === undefined)
  if (strangers.length > 0)
    return strangers.map((name) => ({
      words: printable(`${name} is a node of Ray, but no host of ray: in hosts.yaml, so its ${path} cannot be checked`),
      isUnsure: false,
    }))
  const wrap = (host: string, script: string): string => {
    const node = byName.get(host)
    return node === undefined ? script : inside(wanted, node, script, 'whole')
  }
  const findings = await checkSharedDirectory(path, nodes, { ...options, wrap })
  return findings.map(directoryProblem)
}
