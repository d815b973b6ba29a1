/**
 * How scarce each GPU model is for requests that accept only some models: their part of the workload, as milli of what is free in
 * the cluster, spread over the models that they accept as evenly as possible. Requests that accept any model do not count, as
 * they can give way.
 */
import { getOrMake } from '../../../base/collections.ts'
import type { Cluster } from '../../model/cluster.ts'
import type { WorkloadMix } from '../../model/mix.ts'

/** Placements and releases between two computations. */
const CHANGES_BETWEEN = 64
const FIRST_SWEEPS = 40
const LATER_SWEEPS = 3

type Demand = { readonly models: readonly number[]; readonly part: number; readonly load: Float64Array }

export class ModelTension {
  /** By model: demand over what is free. */
  readonly #tension: Float64Array
  readonly #freeMilli: Float64Array
  readonly #load: Float64Array
  #demands: readonly Demand[] = []
  #changes = 0

  constructor(cluster: Cluster) {
    const count = cluster.models.length
    this.#tension = new Float64Array(count)
    this.#freeMilli = new Float64Array(count)
    this.#load = new Float64Array(count)
    cluster.deviceModel.forEach((model, device) => {
      this.#freeMilli[model] = (this.#freeMilli[model] as number) + (cluster.deviceLeftMilli[device] as number)
    })
    cluster.watch(({ shape, host, devices }, isTake) => {
      if (shape.gpuCount === 0) return
      const start = cluster.deviceStart[host] as number
      for (const device of devices) {
        const model = cluster.deviceModel[start + device] as number
        this.#freeMilli[model] = (this.#freeMilli[model] as number) + (isTake ? -shape.gpuMilli : shape.gpuMilli)
      }
      if (++this.#changes % CHANGES_BETWEEN === 0) this.#spread(LATER_SWEEPS)
    })
  }

  learn(cluster: Cluster, mix: WorkloadMix): void {
    const byModels = new Map<string, { models: readonly number[]; milli: number }>()
    let total = 0
    for (const { request, count } of mix.entries()) {
      const milli = count * request.gpuCount * request.gpuMilli
      total += milli
      const wanted = request.gpuModels ?? []
      const models = cluster.models.flatMap((model, number) => (wanted.includes(model) ? [number] : []))
      if (milli === 0 || models.length === 0 || models.length === cluster.models.length) continue
      getOrMake(byModels, models.join(), () => ({ models, milli: 0 })).milli += milli
    }
    this.#demands = [...byModels.values()].map(({ models, milli }) => ({
      models,
      part: milli / total,
      load: new Float64Array(models.length),
    }))
    this.#load.fill(0)
    this.#spread(FIRST_SWEEPS)
  }

  /** False while every request accepts any model; then each tension is 0. */
  get isAny(): boolean {
    return this.#demands.length > 0
  }

  of(model: number): number {
    return this.#tension[model] as number
  }

  hasFree(model: number): boolean {
    return (this.#freeMilli[model] as number) > 0
  }

  /** Takes each demand out in turn and pours it in again, which converges to the most even load. */
  #spread(sweeps: number): void {
    if (this.#demands.length === 0) return
    const free = this.#freeMilli.reduce((sum, milli) => sum + milli, 0)
    for (let sweep = 0; sweep < sweeps; sweep++)
      for (const demand of this.#demands) this.#pour(demand, demand.part * free)
    for (let model = 0; model < this.#tension.length; model++) this.#tension[model] = this.#level(model)
  }

  #pour({ models, load }: Demand, amount: number): void {
    models.forEach((model, index) => {
      this.#load[model] = Math.max(0, (this.#load[model] as number) - (load[index] as number))
    })
    const rising = models.toSorted((one, other) => this.#level(one) - this.#level(other))
    // The water level over the lowest models that carries the whole amount without reaching the next model.
    let loads = amount
    let room = 0
    let level = 0
    for (const model of rising) {
      if (room > 0 && level <= this.#level(model)) break
      loads += this.#load[model] as number
      room += this.#room(model)
      level = loads / room
    }
    models.forEach((model, index) => {
      const poured = Math.max(0, level * this.#room(model) - (this.#load[model] as number))
      load[index] = poured
      this.#load[model] = (this.#load[model] as number) + poured
    })
  }

  #level(model: number): number {
    return (this.#load[model] as number) / this.#room(model)
  }

  #room(model: number): number {
    return (this.#freeMilli[model] as number) + 1
  }
}
