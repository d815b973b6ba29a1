/** A process of the benchmark: writes log lines to terminals, as programs on the hosts would, at a rate or as fast as they take them. */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { setTimeout as delay } from 'node:timers/promises'

export type FloodOrder =
  | { readonly type: 'start'; readonly terminals: readonly string[]; readonly bytesPerSecond: number | 'most' }
  | { readonly type: 'count' }
  | { readonly type: 'stop' }

/** To each order: what the terminals have taken so far. */
export type FloodReport = { readonly bytes: number; readonly atMs: number }

const CHUNK_BYTES = 4096
const LEVELS = ['info ', 'debug', 'warn ', 'error']

let bytes = 0
let running: AbortController | undefined
let writers: Promise<void>[] = []

/** About 100 KB of log lines, cut at line ends into chunks of nearly `CHUNK_BYTES`. */
function makeChunks(seed: number): Buffer[] {
  let state = seed
  const random = (below: number) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) & 0x7fffffff
    return state % below
  }
  return Array.from({ length: 25 }, () => {
    let text = ''
    for (;;) {
      const line = `2026-11-21 10:${10 + random(50)}:${10 + random(50)}.${100 + random(900)} ${LEVELS[random(4)]} worker-${random(64)}: request ${random(1_000_000)} served in ${random(900)} ms, ${random(100_000)} bytes to 10.0.${random(255)}.${random(255)}\n`
      if (text.length + line.length > CHUNK_BYTES) return Buffer.from(text)
      text += line
    }
  })
}

async function flood(path: string, index: number, bytesPerSecond: number, signal: AbortSignal): Promise<void> {
  const chunks = makeChunks(index + 1)
  let terminal: FileHandle | undefined
  try {
    terminal = await open(path, constants.O_WRONLY | constants.O_NOCTTY)
    const chunkMs = (CHUNK_BYTES / bytesPerSecond) * 1000
    let dueMs = performance.now() + Math.random() * Math.min(1000, chunkMs)
    for (let turn = index; !signal.aborted; turn++) {
      const chunk = chunks[turn % chunks.length] as Buffer
      const waitMs = dueMs - performance.now()
      if (waitMs > 0) await delay(waitMs, undefined, { signal })
      dueMs += (chunk.length / bytesPerSecond) * 1000
      // Who was held back does not catch up with a burst.
      if (dueMs < performance.now() - 100) dueMs = performance.now()
      const { bytesWritten } = await terminal.write(chunk)
      bytes += bytesWritten
    }
  } catch {
    // Stopped, or the terminal hung up.
  } finally {
    await terminal?.close()
  }
}

process.on('message', async (order: FloodOrder) => {
  if (order.type === 'start') {
    const abort = new AbortController()
    running = abort
    bytes = 0
    const { terminals } = order
    const each = order.bytesPerSecond === 'most' ? Number.POSITIVE_INFINITY : order.bytesPerSecond / terminals.length
    writers = terminals.map((path, index) => flood(path, index, each, abort.signal))
  } else if (order.type === 'stop') {
    running?.abort()
    await Promise.all(writers)
  }
  process.send?.({ bytes, atMs: performance.now() } satisfies FloodReport)
})
process.on('disconnect', () => process.exit(0))
