/** How many connections are set up at once. A host whose question waits for a person lends its slot to others. */

/** One host's right to connect. All calls may be repeated; after `release` they do nothing. */
export interface Lease {
  /** Others may connect while this one waits for a person. */
  lend(): void
  /** The answer came: counts again, even beyond the limit, because the server's login grace time is running. */
  takeBack(): void
  /** The attempt is over, or is not wanted any more. */
  release(): void
}

type Entry = { readonly start: () => void; phase: 'queued' | 'held' | 'lent' | 'over' }

export class ConnectGate {
  readonly #limit: number
  readonly #queued = new Set<Entry>()
  #held = 0
  #isPumping = false

  constructor(limit: number) {
    this.#limit = Math.max(1, limit)
  }

  /** Calls `start` once, when there is room: at once, or from within another host's `lend` or `release`. */
  enter(start: () => void): Lease {
    const entry: Entry = { start, phase: 'queued' }
    this.#queued.add(entry)
    this.#pump()
    return {
      lend: () => {
        if (entry.phase === 'held') this.#leave(entry, 'lent')
      },
      takeBack: () => {
        if (entry.phase === 'lent') this.#hold(entry)
      },
      release: () => {
        if (entry.phase === 'held') this.#leave(entry, 'over')
        this.#queued.delete(entry)
        entry.phase = 'over'
      },
    }
  }

  #pump(): void {
    if (this.#isPumping) return
    this.#isPumping = true
    for (const entry of this.#queued) {
      if (this.#held >= this.#limit) break
      this.#queued.delete(entry)
      this.#hold(entry)
      entry.start()
    }
    this.#isPumping = false
  }

  #hold(entry: Entry): void {
    entry.phase = 'held'
    this.#held += 1
  }

  #leave(entry: Entry, phase: 'lent' | 'over'): void {
    entry.phase = phase
    this.#held -= 1
    this.#pump()
  }
}
