/** The end of a job's output, read over the connection of its host's shell, one bounded reading at a time. */
import type { Clock } from '../../base/clock.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import { startScript, type WorkPort } from '../work-views/work-port.ts'
import type { LogView } from './queue-view.ts'

const MOST_BYTES = 64 * 1024
const MOST_LINES = 500
const READ_MS = 10_000

export class LogTail implements Disposable {
  readonly #work: WorkPort
  readonly #clock: Clock
  readonly #onRead: (log: LogView | undefined) => void
  #key = ''
  #stop: (() => void) | undefined

  constructor(work: WorkPort, clock: Clock, onRead: (log: LogView | undefined) => void) {
    this.#work = work
    this.#clock = clock
    this.#onRead = onRead
  }

  /** Reads it again; of another log than before, what was read is dropped first. */
  read(log: { readonly host: string; readonly program: string } | undefined): void {
    const key = log === undefined ? '' : `${log.host} ${log.program}`
    if (key !== this.#key) {
      this.#key = key
      this.#stop?.()
      this.#onRead(undefined)
    }
    if (log === undefined || this.#stop !== undefined) return
    let text = ''
    let hasEnded = false
    const finish = (trouble: string | undefined) => {
      if (hasEnded) return
      hasEnded = true
      timer[Symbol.dispose]()
      this.#stop = undefined
      if (key !== this.#key) return
      const lines = text.split('\n')
      if (lines.at(-1) === '') lines.pop()
      this.#onRead({ lines: lines.slice(-MOST_LINES), trouble })
    }
    const timer = this.#clock.after(READ_MS, () => {
      running.abandon()
      finish('the host did not answer in time')
    })
    this.#stop = () => {
      running.abandon()
      finish(undefined)
    }
    const running = startScript(
      this.#work,
      log.host,
      log.program,
      (more) => {
        if (text.length < MOST_BYTES) text += more
      },
      (end) => finish(end.kind === 'exit' ? undefined : formatOutcome(end)),
    )
  }

  [Symbol.dispose](): void {
    this.read(undefined)
  }
}
