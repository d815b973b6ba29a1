/** How many connections are set up at once. A host whose question waits for a person lends its slot to others. */
import type { Clock } from '../base/clock.ts'
import type { Askers } from './transport.ts'

/** One host's right to connect. All calls may be repeated; after `release` they do nothing. */
export type Lease = ReturnType<ConnectGate['enter']>

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
  enter(start: () => void) {
    const entry: Entry = { start, phase: 'queued' }
    this.#queued.add(entry)
    this.#pump()
    return {
      /** Others may connect while this one waits for a person. */
      lend: () => {
        if (entry.phase === 'held') this.#leave(entry, 'lent')
      },
      /** Counts again, even beyond the limit, because the server's login grace time is running. */
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

/** Longer than looking into known_hosts takes, shorter than reading a fingerprint. */
const PERSON_AFTER_MS = 250

/** The same questions; the lease is lent out while one of them waits for its answer. */
export function lendWhileAsking({ hostKeys, credentials }: Askers, lease: Lease, clock: Clock): Askers {
  const asking = async <T>(answer: Promise<T>): Promise<T> => {
    const timer = clock.after(PERSON_AFTER_MS, () => lease.lend())
    try {
      return await answer
    } finally {
      timer[Symbol.dispose]()
      lease.takeBack()
    }
  }
  return {
    hostKeys: {
      verify: (...question) => asking(hostKeys.verify(...question)),
      preferredAlgorithms: (endpoint) => hostKeys.preferredAlgorithms(endpoint),
    },
    credentials: {
      passphrase: (...question) => asking(credentials.passphrase(...question)),
      password: (...question) => asking(credentials.password(...question)),
      keyboardInteractive: (...question) => asking(credentials.keyboardInteractive(...question)),
    },
  }
}

/** Works when the gate has room. Hosts whose questions wait for a person let others work meanwhile. */
export async function inTurn<T>(
  gate: ConnectGate,
  askers: Askers,
  clock: Clock,
  work: (askers: Askers) => Promise<T>,
): Promise<T> {
  const entered = Promise.withResolvers<void>()
  const lease = gate.enter(entered.resolve)
  try {
    await entered.promise
    return await work(lendWhileAsking(askers, lease, clock))
  } finally {
    lease.release()
  }
}
