/** A random host that holds it; a share on a random GPU that holds it. The same seed gives the same choices. */
import type { Cluster } from '../model/cluster.ts'
import { holdsPart, spotOn } from '../model/fits.ts'
import { WHOLE_MILLI } from '../model/resources.ts'
import type { PlacementPolicy } from './scored-policy.ts'

export function createRandom(cluster: Cluster, seed: number): PlacementPolicy {
  const random = createRandomNumbers(seed)
  return {
    choose(shape, allowed) {
      let chosen: ReturnType<typeof spotOn>
      let count = 0
      for (let host = 0; host < cluster.hostCount; host++) {
        if (allowed && !allowed(host)) continue
        const spot = spotOn(cluster, shape, host)
        if (spot && random() * ++count < 1) chosen = spot
      }
      if (chosen === undefined || shape.gpuCount !== 1 || shape.gpuMilli === WHOLE_MILLI) return chosen
      const first = cluster.deviceStart[chosen.host] as number
      const devices: number[] = []
      for (let device = first; device < (cluster.deviceStart[chosen.host + 1] as number); device++)
        if (holdsPart(cluster, shape, device)) devices.push(device - first)
      return { host: chosen.host, devices: [devices[Math.floor(random() * devices.length)] as number] }
    },
  }
}

/** Numbers from 0 to below 1 (mulberry32). */
export function createRandomNumbers(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let bits = Math.imul(state ^ (state >>> 15), 1 | state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32
  }
}
