/** Time as a port, so that tests own it. */

export interface Clock {
  /** Milliseconds since the epoch. */
  now(): number
  /** Calls back once after `delayMs`; disposing cancels. */
  after(delayMs: number, callback: () => void): Disposable
}

export const systemClock: Clock = {
  now: () => Date.now(),
  after(delayMs, callback) {
    const timer = setTimeout(callback, delayMs)
    return { [Symbol.dispose]: () => clearTimeout(timer) }
  },
}
