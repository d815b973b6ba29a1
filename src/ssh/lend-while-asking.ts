/** Questions that stay open for longer than a machine would need are waiting for a person: meanwhile others may connect. */
import type { Clock } from '../base/clock.ts'
import type { ConnectGate, Lease } from './connect-gate.ts'
import type { Askers } from './transport.ts'

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
