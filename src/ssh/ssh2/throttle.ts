/** How many handshakes one server sees at once: sshd drops bursts of callers that are not logged in (MaxStartups 10:30:100). */

export const HANDSHAKES_PER_SERVER = 8

export class Throttle {
  readonly #limit: number
  readonly #servers = new Map<string, { running: number; readonly queue: (() => void)[] }>()

  constructor(limit: number) {
    this.#limit = Math.max(1, limit)
  }

  /** Waits for a place with this server; the returned function gives it back, once. Rejects when aborted. */
  async enter(server: string, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    const state = this.#servers.get(server) ?? { running: 0, queue: [] }
    this.#servers.set(server, state)
    if (state.running < this.#limit) state.running += 1
    else await waitInLine(state.queue, signal)
    let isHeld = true
    return () => {
      if (!isHeld) return
      isHeld = false
      const next = state.queue.shift()
      if (next !== undefined) return next()
      state.running -= 1
      if (state.running === 0) this.#servers.delete(server)
    }
  }
}

/** The place of the one that leaves goes to the first in line. */
function waitInLine(queue: (() => void)[], signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const enter = () => {
      signal.removeEventListener('abort', onAbort)
      resolve()
    }
    const onAbort = () => {
      const index = queue.indexOf(enter)
      if (index >= 0) queue.splice(index, 1)
      reject(signal.reason)
    }
    signal.addEventListener('abort', onAbort, { once: true })
    queue.push(enter)
  })
}
