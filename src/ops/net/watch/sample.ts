/** What is known about a host at one second. Rates are per second; unknown values are left out, never 0. */

export type CardTraffic = { readonly name: string; readonly receivedBytes: number; readonly sentBytes: number }

export type GpuSample = {
  /** `0` */
  readonly id: string
  readonly name: string
  /** 0 to 1 */
  readonly busy?: number
  readonly usedBytes?: number
  readonly totalBytes?: number
  readonly celsius?: number
  readonly watts?: number
  /** Process ids. */
  readonly processes?: readonly number[]
}

/** Sum of all mounts: bytes on the network, and READ, WRITE and GETATTR requests with their mean round trip. */
export type NfsTraffic = {
  readonly readBytes: number
  readonly writtenBytes: number
  readonly operations: number
  readonly roundTripMs?: number
}

export type Sample = {
  /** By this machine's clock, milliseconds since the epoch. */
  readonly atMs: number
  /** Since the host started. Rates are means since the previous sample. */
  readonly upSeconds?: number
  readonly cores: number
  /** 0 to 1, of all cores. */
  readonly cpu: number
  /** Of the last minute. */
  readonly load?: number
  readonly memoryBytes: number
  readonly memoryUsedBytes: number
  readonly swapBytes: number
  readonly swapUsedBytes: number
  /** Pages a second, in and out. */
  readonly swapped?: number
  readonly readBytes?: number
  readonly writtenBytes?: number
  /** Of the busiest disk, 0 to 1. */
  readonly diskBusy?: number
  /** The fullest local file system. */
  readonly fullest?: { readonly point: string; readonly used: number }
  /** All cards of the machine together. */
  readonly receivedBytes?: number
  readonly sentBytes?: number
  readonly cards: readonly CardTraffic[]
  readonly nfs?: NfsTraffic
  readonly gpus: readonly GpuSample[]
}
