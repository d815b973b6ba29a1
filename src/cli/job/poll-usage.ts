/** What an engine's cluster has, read again and again. */
import type { Clock } from '../../base/clock.ts'
import type { EngineUsage } from '../../scheduler/jobs/engine.ts'

/** Each reading is a request to the controller of a cluster. */
const USAGE_EVERY_MS = 4000
const USAGE_MS = 10_000

/** One reading at a time. */
export function pollUsage(
  read: (signal: AbortSignal) => Promise<EngineUsage | string>,
  clock: Clock,
  onUsage: (usage: EngineUsage | string) => void,
): Disposable {
  let isOver = false
  let pause: Disposable | undefined
  let reading: AbortController | undefined
  const ask = async () => {
    reading = new AbortController()
    const { signal } = reading
    let isLate = false
    const timer = clock.after(USAGE_MS, () => {
      isLate = true
      onUsage('no answer in time')
      reading?.abort()
    })
    const usage = await read(signal)
    timer[Symbol.dispose]()
    if (isOver) return
    if (!isLate) onUsage(usage)
    pause = clock.after(USAGE_EVERY_MS, () => void ask())
  }
  void ask()
  return {
    [Symbol.dispose]() {
      isOver = true
      reading?.abort()
      pause?.[Symbol.dispose]()
    },
  }
}
