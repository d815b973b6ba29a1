/** What the Network tab measures between hosts: the code of the verbs, over the connections of the shells. */
import type { KeptMesh, MeshConclusion } from '../../ops/net/mesh/kept-mesh.ts'
import type { MeshEvent, MeshHost, MeshOptions, MeshReport } from '../../ops/net/mesh/measure-mesh.ts'
import type { NfsEvent, NfsOptions } from '../../ops/net/nfs/measure-nfs.ts'
import type { PairEvent, PairOptions } from '../../ops/net/pair/measure-pair.ts'
import type { MeshOrder } from './mesh-run.ts'

export interface NetTestsPort {
  /** Reads options as `muster net mesh` takes them, such as `--time 10 --serial`. @throws MusterError */
  meshOptions(words: readonly string[], hosts: readonly string[]): MeshOptions
  /** The programs and addresses of each host. */
  survey(order: MeshOrder, signal: AbortSignal): Promise<readonly MeshHost[]>
  /** Measures, judges, compares with the last result, and keeps the new one. */
  measureMesh(
    order: MeshOrder,
    signal: AbortSignal,
    onEvent: (event: MeshEvent) => void,
  ): Promise<MeshConclusion & { readonly report: MeshReport }>
  /** As `muster net pair` takes them. @throws MusterError */
  pairOptions(words: readonly string[], hosts: readonly string[]): PairOptions
  /** Resolves when both directions have ended, or after the signal. */
  measurePair(
    first: string,
    second: string,
    options: PairOptions,
    signal: AbortSignal,
    onEvent: (event: PairEvent) => void,
  ): Promise<void>
  /** `--time S` as `muster net nfs` takes it. @throws MusterError */
  nfsSeconds(words: readonly string[]): number
  measureNfs(host: string, options: NfsOptions, signal: AbortSignal, onEvent: (event: NfsEvent) => void): Promise<void>
  /** Paths of kept results, newest first. */
  keptMeshes(): readonly string[]
  readKept(path: string): KeptMesh | undefined
  /** Returns the absolute path; undefined: the file exists and is left alone, unless `overwrites`. @throws MusterError */
  save(path: string, text: string, overwrites: boolean): string | undefined
}
