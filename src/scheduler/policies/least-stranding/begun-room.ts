/**
 * Usable room on shared GPUs of the whole cluster. A few percent help each share to find a good partner. Much more means that
 * shares are spread thinly; then opening idle GPUs becomes dearer. Once requests leave, room appears by itself, and less of it is
 * welcome.
 */
import type { Cluster } from '../../model/cluster.ts'
import { WHOLE_MILLI } from '../../model/resources.ts'
import type { ShareWaste } from './share-waste.ts'

/** As fractions of all GPUs: welcome room, and room per further level. */
const STEPS = { whileAllStay: { welcome: 0.04, level: 0.02 }, whileSomeLeave: { welcome: 0.01, level: 0.01 } }
const MAX_LEVEL = 10
/** A level is left only when the room has shrunk by this part of a level more. */
const HYSTERESIS = 0.5

export class BegunRoom {
  readonly #cluster: Cluster
  #waste: ShareWaste
  #roomMilli = 0
  #level = 0

  constructor(cluster: Cluster, waste: ShareWaste) {
    this.#cluster = cluster
    this.#waste = waste
    this.learn(waste)
    cluster.watch(({ shape, host, devices }, isTake) => {
      if (shape.gpuCount !== 1 || shape.gpuMilli === WHOLE_MILLI) return
      const after = cluster.deviceLeftMilli[(cluster.deviceStart[host] as number) + (devices[0] as number)] as number
      const before = isTake ? after + shape.gpuMilli : after - shape.gpuMilli
      this.#roomMilli += this.#usable(after) - this.#usable(before)
    })
  }

  learn(waste: ShareWaste): void {
    this.#waste = waste
    this.#roomMilli = this.#cluster.deviceLeftMilli.reduce((sum, left) => sum + this.#usable(left), 0)
  }

  /** From 0 (no more than is welcome) to 10. */
  level(isLeaving: boolean): number {
    const { welcome, level } = isLeaving ? STEPS.whileSomeLeave : STEPS.whileAllStay
    const exact = (this.#roomMilli / Math.max(1, this.#cluster.totalGpuMilli) - welcome) / level
    if (exact >= this.#level + 1 || exact < this.#level - HYSTERESIS)
      this.#level = Math.min(MAX_LEVEL, Math.max(0, Math.floor(exact)))
    return this.#level
  }

  #usable(leftMilli: number): number {
    return leftMilli === 0 || leftMilli === WHOLE_MILLI ? 0 : leftMilli - this.#waste.of(leftMilli)
  }
}
