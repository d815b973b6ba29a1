/** Time as a port, so that tests own it. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls back once after `delayMs`; disposing cancels. */
  after(delayMs: number, callback: () => void): Disposable
}

const LONGEST_MS = 2 ** 31 - 1

/** Also true if the clock was set back meanwhile. */
export function hasPassed(sinceMs: number, forMs: number, nowMs: number): boolean {
  return nowMs < sinceMs || nowMs - sinceMs >= forMs
}

/** The rest of a pause that began at `sinceMs`; 0 if the clock was set back meanwhile, so that nothing waits for hours. */
export function remainingMs(sinceMs: number, forMs: number, nowMs: number): number {
  return hasPassed(sinceMs, forMs, nowMs) ? 0 : sinceMs + forMs - nowMs
}

export function sleep(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve))
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, callback) {
    // Node treats a longer time as none.
    const timer = setTimeout(callback, Math.min(delayMs, LONGEST_MS))
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}
