/** Recordings as text (one JSON object a line: the host and its sample) and their playback. Opens no file. */
import { type JsonRecord, list, parseJson, record, textOf } from '../../../base/json-lines.ts'
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

/** Ordered by time; empty if the text is no recording. Its file may come from anybody: lines of another shape are left out. */
export function parseRecording(text: string): readonly Recorded[] {
  const lines = text.split('\n').flatMap((line): Recorded[] => {
    // The last line of an interrupted recording is no JSON.
    const value = record(parseJson(line))
    const sample = value && sampleOf(value)
    return sample === undefined || typeof value?.host !== 'string' ? [] : [{ host: printable(value.host), sample }]
  })
  return lines.toSorted((one, other) => one.sample.atMs - other.sample.atMs)
}

/** ECMA-262: the last millisecond that a date can have. */
const MOST_MS = 8.64e15
const REQUIRED = ['atMs', 'cores', 'cpu', 'memoryBytes', 'memoryUsedBytes'] as const

function sampleOf(value: JsonRecord): Sample | undefined {
  const { atMs, cores, cpu, memoryBytes, memoryUsedBytes } = numbersOf(value, REQUIRED)
  if (atMs === undefined || Math.abs(atMs) > MOST_MS || !Array.isArray(value.gpus) || !Array.isArray(value.cards))
    return undefined
  if (cores === undefined || cpu === undefined || memoryBytes === undefined || memoryUsedBytes === undefined)
    return undefined
  const { swapBytes = 0, swapUsedBytes = 0 } = numbersOf(value, ['swapBytes', 'swapUsedBytes'])
  const { used } = numbersOf(record(value.fullest) ?? {}, ['used'])
  const nfs = record(value.nfs)
  const {
    readBytes = 0,
    writtenBytes = 0,
    operations = 0,
  } = numbersOf(nfs ?? {}, ['readBytes', 'writtenBytes', 'operations'])
  return {
    ...{ atMs, cores, cpu, memoryBytes, memoryUsedBytes, swapBytes, swapUsedBytes },
    ...numbersOf(value, ['upSeconds', 'load', 'swapped', 'readBytes', 'writtenBytes']),
    ...numbersOf(value, ['diskBusy', 'receivedBytes', 'sentBytes']),
    ...(used === undefined ? {} : { fullest: { point: printable(textOf(record(value.fullest)?.point)), used } }),
    ...(nfs === undefined ? {} : { nfs: { readBytes, writtenBytes, operations, ...numbersOf(nfs, ['roundTripMs']) } }),
    cards: list(value.cards).map((card) => {
      const { receivedBytes = 0, sentBytes = 0 } = numbersOf(card, ['receivedBytes', 'sentBytes'])
      return { name: printable(textOf(card.name)), receivedBytes, sentBytes }
    }),
    gpus: list(value.gpus).map((gpu) => ({
      id: printable(textOf(gpu.id)),
      name: printable(textOf(gpu.name)),
      ...numbersOf(gpu, ['busy', 'usedBytes', 'totalBytes', 'celsius', 'watts']),
      ...(Array.isArray(gpu.processes)
        ? { processes: gpu.processes.filter((pid): pid is number => Number.isSafeInteger(pid)) }
        : {}),
    })),
  }
}

/** Those of these fields that are finite numbers. */
const numbersOf = <K extends string>(value: JsonRecord, keys: readonly K[]): Partial<Record<K, number>> =>
  Object.fromEntries(
    keys.flatMap((key) => (typeof value[key] === 'number' && Number.isFinite(value[key]) ? [[key, value[key]]] : [])),
  ) as Partial<Record<K, number>>

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
