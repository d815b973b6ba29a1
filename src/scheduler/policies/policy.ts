/** The one interface of all placement policies. */
import type { Spot } from '../model/cluster.ts'
import type { Shape } from '../model/shape.ts'

/** Which hosts may be looked at; a gang's planner leaves some out. */
export type HostFilter = (host: number) => boolean

export interface PlacementPolicy {
  readonly name: string
  /** The best spot for it now, without taking it; undefined only when no (allowed) host holds it. */
  choose(shape: Shape, allowed?: HostFilter): Spot | undefined
}
