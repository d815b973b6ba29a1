/** Recordings as text (one JSON object a line: the host and its sample) and their playback. Opens no file. */
import { naturalOrder } from '../../../base/natural-order.ts'
import { printable } from '../../../base/printable.ts'
import { secondText } from '../../../base/time-text.ts'
import type { Sample } from './sample.ts'
import { keepSample, type WatchedHost } from './watch-hosts.ts'

export type Recorded = { readonly host: string; readonly sample: Sample }

/** How far an arrow key moves. */
const STEP_MS = 10_000

export function recordingLine({ host, sample }: Recorded): string {
  return `${JSON.stringify({ host, ...sample })}\n`
}

/** Ordered by time; empty if the text is no recording. */
export function parseRecording(text: string): readonly Recorded[] {
  const lines = text.split('\n').flatMap((line): Recorded[] => {
    try {
      const { host, ...sample } = JSON.parse(line) as { host: unknown } & Sample
      const isWhole = typeof host === 'string' && typeof sample.atMs === 'number' && Array.isArray(sample.gpus)
      return isWhole && Array.isArray(sample.cards) ? [{ host: printable(host as string), sample }] : []
    } catch {
      // The last line of an interrupted recording.
      return []
    }
  })
  return lines.toSorted((one, other) => one.sample.atMs - other.sample.atMs)
}

/** The position in a recording; the view moves it on. */
export class Replay {
  readonly #lines: readonly Recorded[]
  readonly #names: readonly string[]
  #nowMs: number
  #isPaused = false

  constructor(lines: readonly Recorded[]) {
    this.#lines = lines
    this.#names = [...new Set(lines.map(({ host }) => host))].sort(naturalOrder)
    this.#nowMs = lines[0]?.sample.atMs ?? 0
  }

  get nowMs(): number {
    return this.#nowMs
  }

  get isPaused(): boolean {
    return this.#isPaused
  }

  /** `10:15:30, paused`, in local time */
  get title(): string {
    const time = secondText(this.#nowMs)
    const lastMs = this.#lines.at(-1)?.sample.atMs ?? 0
    return `${time}${this.#nowMs >= lastMs ? ', the end' : this.#isPaused ? ', paused' : ''}`
  }

  hosts(): readonly WatchedHost[] {
    const samples = new Map(this.#names.map((name): [string, Sample[]] => [name, []]))
    for (const { host, sample } of this.#lines) {
      if (sample.atMs > this.#nowMs) break
      keepSample(samples.get(host) ?? [], sample)
    }
    return this.#names.map((host) => ({ host, samples: samples.get(host) ?? [] }))
  }

  /** False if nothing has changed. */
  advance(ms: number): boolean {
    return !this.#isPaused && this.#move(ms)
  }

  /** False if the key does nothing here. */
  handleKey(label: string): boolean {
    if (label === 'p') this.#isPaused = !this.#isPaused
    else if (label === 'Left') this.#move(-STEP_MS)
    else if (label === 'Right') this.#move(STEP_MS)
    else return false
    return true
  }

  #move(ms: number): boolean {
    const before = this.#nowMs
    const [firstMs, lastMs] = [this.#lines[0]?.sample.atMs ?? 0, this.#lines.at(-1)?.sample.atMs ?? 0]
    this.#nowMs = Math.min(lastMs, Math.max(firstMs, before + ms))
    return this.#nowMs !== before
  }
}
