/**
 * Predicts which hosts Ray chooses for a placement group, after
 * src/ray/raylet/scheduling/policy/{bundle_scheduling_policy,scorer}.cc: hosts are sums, so [0.5, 0.5] looks as if it held
 * 0.8. Where Ray depends on the order of a hash map, the lowest host number wins here. Custom resources are not predicted.
 */

import { gpuOf, sumOf } from '../gangs/place-gang.ts'
import type { Cluster, Placement } from '../model/cluster.ts'
import { spotOn } from '../model/fits.ts'
import type { Gang } from '../model/resources.ts'
import type { Shape } from '../model/shape.ts'

/** Takes places for all bundles as Ray would, the largest first, or none: undefined. */
export function placeAsRay(cluster: Cluster, gang: Gang): readonly Placement[] | undefined {
  const shapes = gang.bundles
    .map((bundle) => cluster.shapeOf(bundle))
    .sort(
      (one, other) => gpuOf(other) - gpuOf(one) || other.memoryBytes - one.memoryBytes || other.cpuMilli - one.cpuMilli,
    )
  const hosts = chooseHosts(new HostSums(cluster), gang, shapes)
  if (hosts === undefined) return undefined
  return cluster.attempt(() => {
    const taken: Placement[] = []
    for (const [index, shape] of shapes.entries()) {
      const spot = spotOn(cluster, shape, hosts[index] as number)
      if (spot === undefined) return undefined
      taken.push(cluster.take(shape, spot))
    }
    return taken
  })
}

function chooseHosts(sums: HostSums, { strategy }: Gang, shapes: readonly Shape[]): readonly number[] | undefined {
  if (strategy === 'PACK') return pack(sums, shapes)
  if (strategy !== 'STRICT_PACK') return spread(sums, shapes, strategy === 'SPREAD')
  const host = sums.best(shapes)
  return host === undefined ? undefined : shapes.map(() => host)
}

function pack(sums: HostSums, shapes: readonly Shape[]): readonly number[] | undefined {
  const chosen: number[] = []
  const swept = new Set<number>()
  for (const [index, shape] of shapes.entries()) {
    if (chosen[index] !== undefined) continue
    const host = sums.best([shape], (one) => !swept.has(one))
    if (host === undefined) return undefined
    swept.add(host)
    for (const [later, other] of shapes.entries())
      if (chosen[later] === undefined && sums.take(other, host)) chosen[later] = host
  }
  return chosen
}

function spread(sums: HostSums, shapes: readonly Shape[], mayShare: boolean): readonly number[] | undefined {
  const used = new Set<number>()
  const chosen: number[] = []
  for (const shape of shapes) {
    const host =
      sums.best([shape], (one) => !used.has(one)) ?? (mayShare ? sums.best([shape], (one) => used.has(one)) : undefined)
    if (host === undefined) return undefined
    used.add(host)
    sums.take(shape, host)
    chosen.push(host)
  }
  return chosen
}

type Amounts = readonly [cpuMilli: number, memoryBytes: number, gpuMilli: number]

class HostSums {
  readonly #cluster: Cluster
  readonly #left: Amounts[]

  constructor(cluster: Cluster) {
    this.#cluster = cluster
    this.#left = cluster.hosts.map((_, host) => [
      cluster.cpuLeftMilli[host] as number,
      cluster.memoryLeftBytes[host] as number,
      cluster.gpuLeftMilli[host] as number,
    ])
  }

  take(shape: Shape, host: number): boolean {
    if (this.#score([shape], host) === undefined) return false
    const [cpu, memory, gpu] = this.#left[host] as Amounts
    this.#left[host] = [cpu - shape.cpuMilli, memory - shape.memoryBytes, gpu - gpuOf(shape)]
    return true
  }

  /** For all of the shapes together: the highest score, of equals the lowest host number. */
  best(shapes: readonly Shape[], allowed = (_: number) => true): number | undefined {
    let best: number | undefined
    let bestScore = Number.NEGATIVE_INFINITY
    for (let host = 0; host < this.#left.length; host++) {
      const score = allowed(host) ? this.#score(shapes, host) : undefined
      if (score === undefined || score <= bestScore) continue
      best = host
      bestScore = score
    }
    return best
  }

  #score(shapes: readonly Shape[], host: number): number | undefined {
    if (this.#cluster.isClosed[host] === 1 || shapes.some(({ allowedOn }) => allowedOn[host] !== 1)) return undefined
    const left = this.#left[host] as Amounts
    let score = 0
    for (const [index, asked] of Object.values(sumOf(shapes)).entries()) {
      const available = left[index] as number
      if (available < asked) return undefined
      if (asked > 0) score += (available - asked) / available
    }
    return score
  }
}
