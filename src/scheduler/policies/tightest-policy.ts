/** Policies that score a host as a whole, and put a share on the device of it that the share fills most. */
import type { Cluster } from '../model/cluster.ts'
import { tightestDevice } from '../model/fits.ts'
import type { Shape } from '../model/shape.ts'
import { NO_FIT } from './score-index.ts'
import { type HostScorer, ScoredPolicy } from './scored-policy.ts'

/** `device`: within the host, of a share; 0 otherwise. */
type ScoreHost = (shape: Shape, host: number, device: number) => number

export function createTightestPolicy(name: string, cluster: Cluster, scoreHost: ScoreHost): ScoredPolicy {
  const scorer: HostScorer = {
    device: 0,
    score(shape, host) {
      this.device = tightestDevice(cluster, shape, host)
      return this.device < 0 ? NO_FIT : scoreHost(shape, host, this.device)
    },
  }
  return new ScoredPolicy(name, cluster, scorer)
}
