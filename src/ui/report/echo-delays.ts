/** How fast hosts echo what is typed, as their line editors show, which answer each key. Pure. */
import { ECHO_MS } from './typed-line.ts'

/** The last ones tell. */
const MOST_SAMPLES = 9
/** The host, and this program, may be slower for a moment. */
const TIMES = 4
const LEAST_MS = 100

export class EchoDelays {
  /** By host, when the first key was typed that it has not answered. */
  readonly #typedMs = new Map<string, number>()
  readonly #delays = new Map<string, number[]>()

  /** A key that the line editor of the host shows. */
  noteKey(host: string, nowMs: number): void {
    if (!this.#typedMs.has(host)) this.#typedMs.set(host, nowMs)
  }

  noteOutput(host: string, nowMs: number): void {
    const typedMs = this.#typedMs.get(host)
    if (typedMs === undefined) return
    this.#typedMs.delete(host)
    const delays = this.#delays.get(host) ?? []
    delays.push(nowMs - typedMs)
    if (delays.length > MOST_SAMPLES) delays.shift()
    this.#delays.set(host, delays)
  }

  /** How long an echo of this host may take, in ms. */
  patienceOf(host: string): number {
    const delays = this.#delays.get(host)?.toSorted((one, other) => one - other) ?? []
    const usual = delays[Math.floor(delays.length / 2)]
    return usual === undefined ? ECHO_MS : Math.max(0, Math.min(ECHO_MS, LEAST_MS + TIMES * usual))
  }

  /** Its shell is another one. */
  forget(host: string): void {
    this.#typedMs.delete(host)
    this.#delays.delete(host)
  }
}
