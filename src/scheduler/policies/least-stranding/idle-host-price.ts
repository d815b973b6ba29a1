/**
 * What an idle host is worth, per GPU: a request opens it only where it would strand more elsewhere. It is worth little while
 * nothing leaves; more once requests leave, as those for many GPUs may wait as long as the oldest tenant stays; and most while
 * only such requests wait.
 */
import type { Cluster } from '../../model/cluster.ts'
import type { Shape } from '../../model/shape.ts'

const MILLI = { whileAllStay: 6.25, whileSomeLeave: 50, whileOnlyWideWait: 200 }
/** A refusal counts for this many changes of the cluster per GPU. */
const WIDE_COUNTS = 4
const NARROW_COUNTS = 1

export class IdleHostPrice {
  readonly #cluster: Cluster
  #isLeaving = false
  #wideRefusedAt = Number.NEGATIVE_INFINITY
  #narrowRefusedAt = Number.NEGATIVE_INFINITY

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    cluster.watch((_, isTake) => {
      this.#isLeaving ||= !isTake
    })
  }

  noteChoice({ gpuCount }: Shape, isRefused: boolean): void {
    if (!isRefused) return
    if (gpuCount > 1) this.#wideRefusedAt = this.#cluster.changeCount
    else if (gpuCount === 1) this.#narrowRefusedAt = this.#cluster.changeCount
  }

  /** Per GPU of the host. */
  get milli(): number {
    if (!this.#isLeaving) return MILLI.whileAllStay
    const { changeCount, deviceLeftMilli } = this.#cluster
    const isWideWaiting = changeCount - this.#wideRefusedAt <= WIDE_COUNTS * deviceLeftMilli.length
    const isNarrowWaiting = changeCount - this.#narrowRefusedAt <= NARROW_COUNTS * deviceLeftMilli.length
    return isWideWaiting && !isNarrowWaiting ? MILLI.whileOnlyWideWait : MILLI.whileSomeLeave
  }
}
