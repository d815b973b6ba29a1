/** The lowest host number that holds it. */
import type { Cluster } from '../model/cluster.ts'
import { spotOn } from '../model/fits.ts'
import type { PlacementPolicy } from './policy.ts'

export function createFirstFit(cluster: Cluster): PlacementPolicy {
  return {
    name: 'first-fit',
    choose(shape, allowed) {
      for (let host = 0; host < cluster.hostCount; host++) {
        const spot = (allowed === undefined || allowed(host)) && spotOn(cluster, shape, host)
        if (spot) return spot
      }
      return undefined
    },
  }
}
