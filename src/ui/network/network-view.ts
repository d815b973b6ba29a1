/** The views of the Network tab: the newest covers the others, and Esc goes back to the one below. */
import type { TestConclusion } from '../../ops/net/kept-test.ts'
import type { NfsRecord } from '../../ops/net/nfs/measure-nfs.ts'
import type { PairRecord } from '../../ops/net/pair/pair-record.ts'
import type { PaneView, Rect, Theme } from '../compositor/scene.ts'
import type { PictureState } from './mesh-picture.ts'
import type { MeshRun } from './mesh-run.ts'
import { FIRST_RESULTS, type ResultsState } from './results-table.ts'

/** Measurements that are drawn second by second. */
export type LiveTestId = 'pair' | 'nfs'

export type NetworkViewId = LiveTestId | 'live' | 'mesh' | 'results' | 'kept' | 'kept-test'

/** `record` is filled by the events of the measurement. */
export type LiveRun<R> = {
  readonly record: R
  readonly isMeasuring: boolean
  /** How long it takes, if that is known. */
  readonly seconds?: number | undefined
  /** Set at the end; undefined if nothing could be measured. */
  readonly conclusion: TestConclusion | undefined
}

export type NetworkState = {
  /** The last one is shown; the first is always `live`. */
  readonly views: readonly NetworkViewId[]
  /** Hosts that are marked in the table, in the order in which they were marked. */
  readonly marked: ReadonlySet<string>
  /** The last mesh that was planned or measured. */
  readonly mesh: MeshRun | undefined
  readonly pair: LiveRun<PairRecord> | undefined
  readonly nfs: LiveRun<NfsRecord> | undefined
  readonly results: ResultsState
  /** The kept mesh that is open. */
  readonly kept: PictureState | undefined
  /** The kept pair or NFS mount that is open. */
  readonly keptTest: TestConclusion | undefined
}

export const FIRST_NETWORK: NetworkState = {
  views: ['live'],
  marked: new Set(),
  mesh: undefined,
  pair: undefined,
  nfs: undefined,
  results: FIRST_RESULTS,
  kept: undefined,
  keptTest: undefined,
}

/** `m[1-2] --time 10 --one-way`: what is before the first option, and the words of the options. */
export function splitOrder(text: string): { readonly target: string; readonly words: readonly string[] } {
  const [target = '', ...rest] = text.trim().split(/\s+(?=--)/)
  return { target, words: rest.flatMap((part) => part.split(/\s+/)) }
}

export interface NetworkView extends Disposable {
  /** It is shown, perhaps again. */
  open(): void
  panes(rect: Rect, theme: Theme): readonly PaneView[]
  /** `leave`: show the view below. False: the key does nothing here. */
  handleKey(label: string): boolean | 'leave'
  /** As of a page. */
  isAnswer?(label: string): boolean
  /** Down if positive. */
  scrollBy(rows: number): void
  /** As of a page. */
  keepRow?(): void
}
