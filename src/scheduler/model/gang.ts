/** Bundles that are placed together or not at all. */
import type { ResourceRequest } from './resources.ts'

/** As in Ray: PACK and SPREAD are preferences, the STRICT ones are conditions. */
export type Strategy = 'PACK' | 'SPREAD' | 'STRICT_PACK' | 'STRICT_SPREAD'

export type Gang = {
  readonly name: string
  readonly bundles: readonly ResourceRequest[]
  readonly strategy: Strategy
  readonly maxBundlesPerHost?: number
}
