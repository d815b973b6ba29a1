/** Bundles that are placed together or not at all, and where they went. */
import type { Cluster, Placement, Spot } from './cluster.ts'
import type { ResourceRequest } from './resources.ts'

/** As in Ray: PACK and SPREAD are wishes, the STRICT ones conditions. */
export type Strategy = 'PACK' | 'SPREAD' | 'STRICT_PACK' | 'STRICT_SPREAD'

export type Bundle = ResourceRequest

export type Gang = {
  readonly name: string
  readonly bundles: readonly Bundle[]
  readonly strategy: Strategy
  /** Anti-affinity: at most so many of its bundles on one host. */
  readonly maxBundlesPerHost?: number
}

/** One spot a bundle, in the order of the gang's bundles. */
export type GangSpots = readonly Spot[]

/**
 * Takes all the spots or, if one does not hold its bundle, none of them. Not for use within an attempt.
 * @throws MusterError 'internal' when a spot does not hold its bundle.
 */
export function takeGang(cluster: Cluster, gang: Gang, spots: GangSpots): readonly Placement[] {
  return (
    cluster.attempt(() =>
      gang.bundles.map((bundle, index) => cluster.take(cluster.shapeOf(bundle), spots[index] ?? NOWHERE)),
    ) ?? []
  )
}

const NOWHERE: Spot = { host: -1, devices: [] }
