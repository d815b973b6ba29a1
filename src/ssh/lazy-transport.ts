/** A transport whose code is loaded at the first connection: that of ssh2 takes longer to load than a command on kept connections takes to run. */
import { KeptPromise } from '../base/kept-promise.ts'
import type { Transport } from './transport.ts'

/** Disposing disposes of what was loaded. */
export function lazyTransport(load: () => Promise<Transport & Partial<Disposable>>): Transport & Disposable {
  const loaded = new KeptPromise(load)
  return {
    connect: async (endpoint, context) => await (await loaded.get()).connect(endpoint, context),
    [Symbol.dispose]() {
      loaded.made?.then(
        (transport) => transport[Symbol.dispose]?.(),
        () => {},
      )
    },
  }
}
