/** How fast hosts echo what is typed. Pure. */
import { ECHO_MS } from './typed-line.ts'

/** The last ones tell. */
const MOST_SAMPLES = 9
/** The host, and this program, may be slower for a moment. */
const TIMES = 2
const LEAST_MS = 100
/** Of a host that has echoed nothing yet. */
const FIRST_MS = 400

export class EchoDelays {
  /** By host, when the first key was typed that it has not answered. */
  readonly #typedMs = new Map<string, number>()
  readonly #delays = new Map<string, number[]>()

  noteKey(host: string, nowMs: number): void {
    if (!this.#typedMs.has(host)) this.#typedMs.set(host, nowMs)
  }

  /** `isEcho`: the output shows what is being typed, or a line editor has answered the key. */
  noteOutput(host: string, nowMs: number, isEcho: boolean): void {
    const typedMs = this.#typedMs.get(host)
    if (typedMs === undefined) return
    this.#typedMs.delete(host)
    if (!isEcho || nowMs - typedMs > ECHO_MS) return
    const delays = this.#delays.get(host) ?? []
    delays.push(Math.max(0, nowMs - typedMs))
    if (delays.length > MOST_SAMPLES) delays.shift()
    this.#delays.set(host, delays)
  }

  /** How long the echo of a key may take on this host, in ms. */
  patienceOf(host: string): number {
    const delays = this.#delays.get(host)?.toSorted((one, other) => one - other) ?? []
    const usual = delays[Math.floor(delays.length / 2)]
    return usual === undefined ? FIRST_MS : LEAST_MS + TIMES * usual
  }

  /** What was typed into the shell before says nothing about the output of this one. */
  noteShell(host: string): void {
    this.#typedMs.delete(host)
  }
}
