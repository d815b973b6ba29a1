export type CopyAction = 'copied' | 'identical' | 'failed' | 'would-copy'

export type CopyEvent =
  | { readonly type: 'begin'; readonly host: string; readonly files: number; readonly totalBytes: number }
  /** Bytes that have arrived or need not be sent, since the previous event of this type. */
  | { readonly type: 'progress'; readonly host: string; readonly bytes: number }
  | {
      readonly type: 'file'
      readonly host: string
      /** Of the copy; printable. */
      readonly path: string
      readonly action: CopyAction
      readonly sizeBytes: number
      /** Kept from an interrupted copy. */
      readonly resumedBytes?: number
      readonly reason?: string
    }
  /** The host shares its destination with another one, which writes while this one only checks. */
  | {
      readonly type: 'shared'
      readonly host: string
      readonly with: string
      /** The shared directory, by its path on the writing host; printable. */
      readonly path: string
    }
  | { readonly type: 'result'; readonly host: string; readonly result: HostResult }

export type HostResult = {
  readonly outcome: 'ok' | 'failed' | 'unreachable' | 'refused' | 'cancelled'
  readonly reason?: string
  readonly copied: number
  readonly identical: number
  readonly failed: number
  /** Sent or received by this machine. */
  readonly sentBytes: number
  /** Relayed by another host; undefined: none. */
  readonly passedOnBytes?: number
  readonly durationMs: number
}

export type CopyVia = 'direct' | 'chain' | 'auto'

/** The path of large files, once it is known, and each time a host is bypassed. */
export type PathEvent =
  | {
      readonly via: 'chain'
      /** In relay order. */
      readonly hosts: readonly string[]
      readonly betweenBitsPerSecond: number
      /** To all hosts together. */
      readonly hereBitsPerSecond: number
    }
  | { readonly via: 'direct'; readonly reason: string }
  /** `from`: undefined for this machine. */
  | { readonly via: 'detour'; readonly host: string; readonly from?: string; readonly reason: string }
