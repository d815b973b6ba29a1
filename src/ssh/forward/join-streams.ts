import type { Duplex } from 'node:stream'

/** Passes bytes both ways, held back by the slower side. A side that ends alone stays readable; one that breaks ends the other. */
export function joinStreams(one: Duplex, other: Duplex, onBroken: (error: Error) => void): void {
  const way = (from: Duplex, to: Duplex): void => {
    from.on('error', (error) => {
      onBroken(error)
      to.destroy()
    })
    from.once('close', () => {
      // What was read is still written; nothing is left to be read for the other way.
      if (!from.readableEnded || to.writableFinished) to.destroy()
      else to.once('finish', () => to.destroy())
    })
    from.pipe(to)
  }
  way(one, other)
  way(other, one)
}
