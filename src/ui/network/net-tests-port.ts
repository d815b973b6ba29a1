/** What the Network tab measures between hosts: the code of the verbs, over the connections of the shells. */
import type { ChangeEnd, ChangeHandlers } from '../../ops/kernel/change.ts'
import type { KeptTest, TestConclusion } from '../../ops/net/kept-test.ts'
import type { KeptMesh, MeshConclusion } from '../../ops/net/mesh/kept-mesh.ts'
import type { MeshEvent, MeshHost, MeshOptions, MeshReport } from '../../ops/net/mesh/measure-mesh.ts'
import type { NfsOptions, NfsRecord } from '../../ops/net/nfs/measure-nfs.ts'
import type { PairOptions } from '../../ops/net/pair/measure-pair.ts'
import type { PairRecord } from '../../ops/net/pair/pair-record.ts'
import type { MeshOrder } from './mesh-run.ts'

export interface NetTestsPort {
  /** Reads options as `muster net mesh` takes them, such as `--time 10 --serial`. @throws MusterError */
  meshOptions(words: readonly string[], hosts: readonly string[]): MeshOptions
  /** The programs and addresses of each host. */
  survey(order: MeshOrder, signal: AbortSignal): Promise<readonly MeshHost[]>
  /** Installs iperf on the hosts of the order that lack it, as `muster net mesh --install` does: shows the plan, and asks. */
  installIperf(order: MeshOrder, signal: AbortSignal, handlers: ChangeHandlers): Promise<ChangeEnd['kind']>
  /** Measures, judges, compares with the last result, and keeps the new one. */
  measureMesh(
    order: MeshOrder,
    signal: AbortSignal,
    onEvent: (event: MeshEvent) => void,
  ): Promise<MeshConclusion & { readonly report: MeshReport }>
  /** As `muster net pair` takes them. @throws MusterError */
  pairOptions(words: readonly string[], hosts: readonly string[]): PairOptions
  /**
   * Fills the record, and calls `changed` after each change. When both directions have ended, or after the signal, judges the
   * result, compares it with the last one of the same kind, and keeps it.
   */
  measurePair(
    record: PairRecord,
    options: PairOptions,
    signal: AbortSignal,
    changed: () => void,
  ): Promise<TestConclusion>
  /** `--time S` as `muster net nfs` takes it. @throws MusterError */
  nfsSeconds(words: readonly string[]): number
  /** As `measurePair`. */
  measureNfs(record: NfsRecord, options: NfsOptions, signal: AbortSignal, changed: () => void): Promise<TestConclusion>
  /** Paths of kept results, newest first. */
  keptResults(): readonly string[]
  readKept(path: string): KeptMesh | KeptTest | undefined
  /** Returns the absolute path; undefined: the file exists and is left alone, unless `overwrites`. @throws MusterError */
  save(path: string, text: string, overwrites: boolean): string | undefined
}
