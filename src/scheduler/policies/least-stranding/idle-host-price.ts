/**
 * What a host whose GPUs are all idle is worth, for each of them: whoever could go elsewhere opens it only where he would
 * strand more. While nothing leaves it is little. Once requests leave, who needs many GPUs side by side may have to wait for
 * as long as the oldest of some host's tenants stays, and it is more; most of all as long as only such requests wait, as all
 * others then find room on begun hosts.
 */
import type { Cluster } from '../../model/cluster.ts'
import type { Shape } from '../../model/shape.ts'

const MILLI = { whileAllStay: 6.25, whileSomeLeave: 50, whileOnlyWideWait: 200 }
/** A refusal counts for so many changes of the cluster for each of its GPUs. */
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

  /** For each GPU of the host. */
  get milli(): number {
    if (!this.#isLeaving) return MILLI.whileAllStay
    const { changeCount, deviceLeftMilli } = this.#cluster
    const isWideWaiting = changeCount - this.#wideRefusedAt <= WIDE_COUNTS * deviceLeftMilli.length
    const isNarrowWaiting = changeCount - this.#narrowRefusedAt <= NARROW_COUNTS * deviceLeftMilli.length
    return isWideWaiting && !isNarrowWaiting ? MILLI.whileOnlyWideWait : MILLI.whileSomeLeave
  }
}
