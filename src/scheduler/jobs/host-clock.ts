/**
 * When something happened on a host, by this machine's clock. Hosts tell seconds since they were started, which nobody sets and
 * which go on in standby; each round shows at once where those seconds stand. Pure.
 */

/** Hosts round to hundredths. */
const SLACK_MS = 20

export class HostClock {
  /** When the host was started, by this machine's clock; undefined: nothing is known yet. */
  #startMs: number | undefined

  /** The host said, after `sentMs` and no later than `heardMs`, that it has been running for `upS`. */
  note(upS: number, sentMs: number, heardMs: number): void {
    if (!Number.isFinite(upS)) return
    const [earliest, latest] = [sentMs - upS * 1000 - SLACK_MS, heardMs - upS * 1000]
    const known = this.#startMs
    // What was heard soonest is closest. What is out of reach now was before the host, or the clock here, was set anew.
    this.#startMs = known !== undefined && known >= earliest ? Math.min(known, latest) : latest
  }

  /** Undefined where it is not known. */
  toMs(upS: number): number | undefined {
    return this.#startMs === undefined || !Number.isFinite(upS) ? undefined : Math.round(this.#startMs + upS * 1000)
  }
}
