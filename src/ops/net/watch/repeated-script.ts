/** A script that reports again and again: started again when it ends, and cut off when it floods. */
import { type Clock, hasPassed } from '../../../base/clock.ts'
import { formatBytes } from '../../../base/format-bytes.ts'

/** The delay between attempts, doubled up to the second value. */
const AGAIN_MS = 2_000
const AGAIN_MOST_MS = 60_000
/** A report has a few hundred KB at most. */
const FLOOD_MS = 10_000
const FLOOD_BYTES = 16 * 1024 * 1024

export interface WatchPort {
  /** Runs a script of POSIX sh until it is stopped or ends; never throws, and calls `onEnd` once, with why. */
  start(host: string, script: string, handlers: WatchHandlers): { stop(): void }
}

/** `isFinal`: another attempt would not help, and might ask for a password. */
export type WatchHandlers = { onText(text: string): void; onEnd(reason: string, isFinal?: boolean): void }

/** What one run of the script says. */
export interface ScriptReader {
  /** True: it reported. */
  push(text: string): boolean
  /** Why no attempt can succeed, once that is known. */
  readonly refusal: string | undefined
}

export type RepeatedScriptOptions = {
  readonly host: string
  readonly script: string
  readonly port: WatchPort
  readonly clock: Clock
  reader(): ScriptReader
  onTrouble(reason: string): void
}

/** Disposing stops the script. */
export class RepeatedScript implements Disposable {
  readonly #options: RepeatedScriptOptions
  #running: { stop(): void } | undefined
  #timer: Disposable | undefined
  #waitMs = AGAIN_MS
  #isDisposed = false

  constructor(options: RepeatedScriptOptions) {
    this.#options = options
    this.#start()
  }

  /** Instead of waiting for the next attempt. */
  startNow(): void {
    if (this.#timer === undefined || this.#isDisposed) return
    this.#timer[Symbol.dispose]()
    this.#waitMs = AGAIN_MS
    this.#start()
  }

  [Symbol.dispose](): void {
    this.#isDisposed = true
    this.#timer?.[Symbol.dispose]()
    this.#running?.stop()
  }

  #start(): void {
    const { host, script, port, clock, onTrouble } = this.#options
    this.#timer = undefined
    const reader = this.#options.reader()
    let [sinceMs, length, isCut] = [clock.now(), 0, false]
    const end = (reason: string, isFinal: boolean) => {
      if (this.#isDisposed) return
      onTrouble(reader.refusal ?? reason)
      if (reader.refusal !== undefined || isFinal) return
      this.#timer = clock.after(this.#waitMs, () => this.#start())
      this.#waitMs = Math.min(AGAIN_MOST_MS, this.#waitMs * 2)
    }
    const isFlood = (text: string): boolean => {
      if (hasPassed(sinceMs, FLOOD_MS, clock.now())) [sinceMs, length] = [clock.now(), 0]
      length += text.length
      return length > FLOOD_BYTES
    }
    this.#running = port.start(host, script, {
      onText: (text) => {
        if (isCut || this.#isDisposed) return
        if (isFlood(text)) {
          isCut = true
          this.#running?.stop()
          const words = `more than ${formatBytes(FLOOD_BYTES)} in ${FLOOD_MS / 1000} s where a few lines are expected`
          return end(`it printed ${words}, and was cut off`, false)
        }
        if (reader.push(text)) this.#waitMs = AGAIN_MS
      },
      onEnd: (reason, isFinal = false) => {
        if (!isCut) end(reason, isFinal)
      },
    })
  }
}
