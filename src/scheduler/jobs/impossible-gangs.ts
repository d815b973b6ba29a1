/** Which gangs not even idle hosts would hold: found once for the hosts as they are, as a queue may have thousands of them. */
import { findGang } from '../gangs/search-gang.ts'
import { Cluster } from '../model/cluster.ts'
import type { Gang } from '../model/gang.ts'
import type { HostSpec } from '../model/resources.ts'

/** Answers that are kept. */
const MOST = 10_000

export class ImpossibleGangs {
  #hosts: readonly HostSpec[] = []
  #text = ''
  readonly #known = new Map<string, boolean>()

  /** Hosts that are down offer nothing. */
  note(hosts: readonly HostSpec[]): void {
    const text = JSON.stringify(hosts)
    if (text === this.#text) return
    this.#text = text
    this.#hosts = hosts
    this.#known.clear()
  }

  has({ bundles, strategy, maxBundlesPerHost }: Gang): boolean {
    const key = JSON.stringify([bundles.length, bundles[0], strategy, maxBundlesPerHost])
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const isImpossible =
      findGang(new Cluster(this.#hosts), {
        name: '',
        bundles,
        strategy,
        ...(maxBundlesPerHost === undefined ? {} : { maxBundlesPerHost }),
      }) === undefined
    if (this.#known.size >= MOST) this.#known.clear()
    this.#known.set(key, isImpossible)
    return isImpossible
  }
}
