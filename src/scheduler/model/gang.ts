/** Bundles that are placed together or not at all, and where they went. */
import type { ResourceRequest } from './resources.ts'

/** As in Ray: PACK and SPREAD are wishes, the STRICT ones conditions. */
export type Strategy = 'PACK' | 'SPREAD' | 'STRICT_PACK' | 'STRICT_SPREAD'

export type Gang = {
  readonly name: string
  readonly bundles: readonly ResourceRequest[]
  readonly strategy: Strategy
  /** Anti-affinity: at most so many of its bundles on one host. */
  readonly maxBundlesPerHost?: number
}
