/**
 * When something happened on a host, by this machine's clock. Hosts tell the seconds since they were started: no one can set
 * them, and they include standby. Each round tells where they stand. Pure.
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
    // The answer that came soonest is the closest. An estimate that is no longer possible is from before the host started again,
    // or before the clock here was set.
    this.#startMs = known !== undefined && known >= earliest ? Math.min(known, latest) : latest
  }

  /** Undefined where it is not known. */
  toMs(upS: number): number | undefined {
    return this.#startMs === undefined || !Number.isFinite(upS) ? undefined : Math.round(this.#startMs + upS * 1000)
  }
}
