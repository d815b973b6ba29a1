/** Lists of nodes as Slurm writes them. */
import { expandHostSet } from '../../inventory/host-set.ts'

/** Of all lists together: a short list may stand for many names. */
const MOST_NAMES = 200_000
const TOO_MANY = 20_000

export class NodeNames {
  readonly #known: ReadonlySet<string>
  #left = MOST_NAMES

  constructor(known: ReadonlySet<string>) {
    this.#known = known
  }

  /** `n[1-2,5]`: the nodes that there are. */
  of(list: string): readonly string[] {
    if (this.#left <= 0) return []
    try {
      const names = expandHostSet(list)
      this.#left -= names.length
      return names.filter((name) => this.#known.has(name))
    } catch {
      this.#left -= TOO_MANY
      return []
    }
  }
}
