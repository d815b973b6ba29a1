/**
 * Conservative back-fill: every job has a place in the plan from its submission on, and begins earlier only if that moves
 * nobody's place. When a job ends early, all places are given out anew in the order of submission.
 */
import { FreeProfile } from './free-profile.ts'
import type { QueuedJob, QueuePolicy, QueueState } from './job.ts'

export class ConservativeBackfill implements QueuePolicy {
  readonly #startsS = new Map<number, number>()
  #profile: FreeProfile | undefined

  choose(state: QueueState): readonly QueuedJob[] {
    const { nowS, waiting } = state
    const isOverdue = waiting.some(({ order }) => (this.#startsS.get(order) ?? nowS) < nowS)
    if (this.#profile === undefined || state.hasEndedEarly || isOverdue) {
      this.#startsS.clear()
      this.#profile = new FreeProfile(nowS, state.free, state.running)
    } else this.#profile.advance(nowS)
    for (const job of waiting) if (!this.#startsS.has(job.order)) this.#plan(job, this.#profile)
    let left = state.free
    const chosen = waiting.filter(({ order, width }) => {
      if (this.#startsS.get(order) !== nowS || width > left) return false
      left -= width
      return true
    })
    for (const { order } of chosen) this.#startsS.delete(order)
    return chosen
  }

  #plan({ order, width, estimateS }: QueuedJob, profile: FreeProfile): void {
    const startS = profile.earliest(width, estimateS)
    if (startS === undefined) return
    profile.take(startS, estimateS, width)
    this.#startsS.set(order, startS)
  }
}
