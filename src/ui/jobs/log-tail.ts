/** The end of what a job wrote: asked for over the connection of its shell, one bounded look at a time. */
import type { Clock } from '../../base/clock.ts'
import { formatOutcome } from '../../ops/run/outcome.ts'
import type { WorkPort } from '../work-views/work-port.ts'
import type { LogView } from './job-document.ts'

const MOST_BYTES = 64 * 1024
const MOST_LINES = 500
const LOOK_MS = 10_000

export class LogTail implements Disposable {
  readonly #work: WorkPort
  readonly #clock: Clock
  readonly #onChange: () => void
  #key = ''
  #view: LogView | undefined
  #stop: (() => void) | undefined

  constructor(work: WorkPort, clock: Clock, onChange: () => void) {
    this.#work = work
    this.#clock = clock
    this.#onChange = onChange
  }

  get view(): LogView | undefined {
    return this.#view
  }

  get isLooking(): boolean {
    return this.#stop !== undefined
  }

  /** Of another log than before: what was seen of that is forgotten. */
  look(log: { readonly host: string; readonly program: string } | undefined): void {
    const key = log === undefined ? '' : `${log.host} ${log.program}`
    if (key !== this.#key) {
      this.#key = key
      this.#view = undefined
      this.#stop?.()
    }
    if (log === undefined || this.#stop !== undefined) return
    const decoder = new TextDecoder()
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
      const next = { lines: lines.slice(-MOST_LINES), trouble }
      if (JSON.stringify(next) === JSON.stringify(this.#view)) return
      this.#view = next
      this.#onChange()
    }
    const timer = this.#clock.after(LOOK_MS, () => {
      running.abandon()
      finish('its host takes too long to answer')
    })
    this.#stop = () => {
      running.abandon()
      finish(undefined)
    }
    const running = this.#work.startCommand(log.host, `exec /bin/sh -c '${log.program}'`, {
      onBegin() {},
      onStdout(bytes) {
        if (text.length < MOST_BYTES) text += decoder.decode(bytes, { stream: true })
      },
      onStderr() {},
      onEnd: (end) => finish(end.kind === 'exit' ? undefined : formatOutcome(end)),
    })
  }

  [Symbol.dispose](): void {
    this.look(undefined)
  }
}
