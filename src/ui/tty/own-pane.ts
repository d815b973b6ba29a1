/** Detects that a console was attached inside one of its own panes, where it would show itself for ever and take no keys. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.ts'
import type { Fleet } from '../../ssh/create-fleet.ts'

/** A mark that takes longer is missed. */
const WATCH_MS = 30_000

export type OwnPaneOptions = {
  readonly fleet: Pick<Fleet, 'on'>
  readonly clock: Clock
  /** To the terminal. */
  write(bytes: Buffer): void
  onFound(host: string): void
}

/** Sends the terminal a random, invisible mark (an OSC that no terminal knows), and watches the output of hosts for it. */
export function watchOwnPane({ fleet, clock, write, onFound }: OwnPaneOptions): Disposable {
  const mark = randomBytes(16).toString('hex')
  /** The end of each host's output so far: one read may hold only a part of the mark. */
  const ends = new Map<string, string>()
  const stop = (): void => {
    subscription[Symbol.dispose]()
    timer[Symbol.dispose]()
    ends.clear()
  }
  const subscription = fleet.on((event) => {
    if (event.type !== 'data') return
    const text = (ends.get(event.host) ?? '') + Buffer.from(event.bytes).toString('latin1')
    ends.set(event.host, text.slice(-mark.length))
    if (!text.includes(mark)) return
    stop()
    onFound(event.host)
  })
  const timer = clock.after(WATCH_MS, stop)
  write(Buffer.from(`\x1b]7713;${mark}\x1b\\`))
  return { [Symbol.dispose]: stop }
}
