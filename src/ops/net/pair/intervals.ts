/** What a server of iperf3 (`-f k`) or iperf 2 (`-f b`) reports each second while it receives. Incremental; pure but for its state. */
import { amountOf } from '../amount.ts'

/** `[  5]   1.00-2.00   sec   112 MBytes  941000 Kbits/sec`, `[SUM] 0.0000-1.0000 sec  1 Bytes  2 bits/sec` */
const LINE = /^\[\s*(\d+|SUM)\]\s+([\d.]+)-\s*([\d.]+)\s+sec\s+[\d.]+ \w+\s+([\d.]+) (K?)bits\/sec/
/** A report over more than this is the one at the end. */
const MOST_SECONDS = 1.5

export type Interval = { readonly second: number; readonly bitsPerSecond: number }

export class IntervalReader {
  readonly #isSummed: boolean
  #partial = ''

  /** With several streams their sum counts. */
  constructor(streams: number) {
    this.#isSummed = streams > 1
  }

  push(text: string): readonly Interval[] {
    const lines = (this.#partial + text).split('\n')
    this.#partial = (lines.pop() ?? '').slice(-4096)
    return lines.flatMap((line): Interval[] => {
      const match = LINE.exec(line.trim())
      if (match === null || (match[1] === 'SUM') !== this.#isSummed) return []
      const [begin, end, rate] = [match[2], match[3], match[4]].map(amountOf)
      if (begin === undefined || end === undefined || rate === undefined) return []
      // What is left over at the end is a few milliseconds of nothing.
      if (end - begin > MOST_SECONDS || end - begin < 0.5) return []
      return [{ second: Math.round(end), bitsPerSecond: rate * (match[5] === 'K' ? 1000 : 1) }]
    })
  }
}
