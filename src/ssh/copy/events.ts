/** What copying to or from hosts tells while it goes on, and how it ended on each host. */

export type CopyAction = 'copied' | 'identical' | 'failed' | 'would-copy'

export type CopyEvent =
  /** Everything that will be looked at is known. */
  | { readonly type: 'begin'; readonly host: string; readonly files: number; readonly totalBytes: number }
  /** Bytes that have arrived, or need not be sent, since the last of these events. */
  | { readonly type: 'progress'; readonly host: string; readonly bytes: number }
  | {
      readonly type: 'file'
      readonly host: string
      /** Where it is after the copy; printable. */
      readonly path: string
      readonly action: CopyAction
      readonly sizeBytes: number
      /** Of an earlier, cut copy. */
      readonly resumedBytes?: number
      readonly reason?: string
    }
  /** The host finds the files of another host at its destination: that one writes, this one checks. */
  | {
      readonly type: 'shared'
      readonly host: string
      readonly with: string
      /** The directory that they share, as that one knows it; printable. */
      readonly path: string
    }
  | { readonly type: 'result'; readonly host: string; readonly result: HostResult }

export type HostResult = {
  readonly outcome: 'ok' | 'failed' | 'unreachable' | 'refused' | 'cancelled'
  /** Why nothing (more) could be done. */
  readonly reason?: string
  readonly copied: number
  readonly identical: number
  readonly failed: number
  /** That went over the wire from here. */
  readonly sentBytes: number
  /** That came from another host; undefined: none. */
  readonly passedOnBytes?: number
  readonly durationMs: number
}

export type CopyVia = 'direct' | 'chain' | 'auto'

/** The path of large files, once it is known, and each time a host is bypassed. */
export type PathEvent =
  | {
      readonly via: 'chain'
      /** In the order in which they pass files on. */
      readonly hosts: readonly string[]
      readonly betweenBitsPerSecond: number
      /** To all hosts together. */
      readonly hereBitsPerSecond: number
    }
  | { readonly via: 'direct'; readonly reason: string }
  /** `from`: undefined for this machine. */
  | { readonly via: 'detour'; readonly host: string; readonly from?: string; readonly reason: string }
