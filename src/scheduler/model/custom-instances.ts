/** What is free of one custom resource by host: a pool is one instance of the whole amount, units are instances of 1000. */
import { type CustomCapacity, WHOLE_MILLI } from './resources.ts'

type HostInstances = { readonly isUnit: boolean; readonly left: number[] }

export class CustomInstances {
  readonly #byHost = new Map<number, HostInstances>()

  add(host: number, capacity: CustomCapacity): void {
    const isUnit = capacity.kind === 'unit'
    const left = isUnit ? new Array<number>(capacity.count).fill(WHOLE_MILLI) : [capacity.amount]
    this.#byHost.set(host, { isUnit, left })
  }

  fits(host: number, amount: number): boolean {
    return this.choose(host, amount) !== undefined
  }

  /** In pool units, or in milli over all instances. */
  leftOn(host: number): number {
    return this.#byHost.get(host)?.left.reduce((sum, left) => sum + left, 0) ?? 0
  }

  /** The instances that would hold the amount (the tightest one for a share); undefined: it does not fit. */
  choose(host: number, amount: number): readonly number[] | undefined {
    const instances = this.#byHost.get(host)
    if (instances === undefined) return undefined
    const { isUnit, left } = instances
    if (!isUnit) return (left[0] ?? 0) >= amount ? [0] : undefined
    if (amount < WHOLE_MILLI) {
      let best: number | undefined
      left.forEach((free, index) => {
        if (free >= amount && (best === undefined || free < (left[best] ?? 0))) best = index
      })
      return best === undefined ? undefined : [best]
    }
    if (amount % WHOLE_MILLI !== 0) return undefined
    const idle = left.flatMap((free, index) => (free === WHOLE_MILLI ? [index] : []))
    return idle.length * WHOLE_MILLI >= amount ? idle.slice(0, amount / WHOLE_MILLI) : undefined
  }

  /** Adds `amount` (negative to take), spread evenly over the instances. */
  apply(host: number, instances: readonly number[], amount: number): void {
    const left = this.#byHost.get(host)?.left ?? []
    for (const index of instances) left[index] = (left[index] ?? 0) + amount / instances.length
  }

  copyFrom(other: CustomInstances): void {
    for (const [host, { left }] of other.#byHost) this.#byHost.get(host)?.left.splice(0, left.length, ...left)
  }

  keepLeast(other: CustomInstances): void {
    for (const [host, { left }] of this.#byHost) {
      const others = other.#byHost.get(host)?.left ?? []
      left.forEach((free, index) => {
        left[index] = Math.min(free, others[index] ?? 0)
      })
    }
  }
}
