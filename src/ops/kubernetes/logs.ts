/** What pods printed: pieces of it by byte, and programs that search its end. */
import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { shellQuote } from '../../base/shell-quote.ts'
import { apiPath, type KubernetesApi, type KubernetesQuery } from './api.ts'
import { CONTAINER } from './manifest.ts'

export type PodPiece = {
  readonly namespace: string
  readonly pod: { readonly name: string; readonly uid: string }
  /** The output that the piece belongs to, because a bundle may get another pod. */
  readonly key: string
  /** Negative: from its end. */
  readonly fromByte: number
  readonly mostBytes: number
}

/** The API limits the end of a log by lines. */
const MOST_LINES = 2_000
/** Of what is read to find a piece. */
const MOST_BYTES = 64 * 1024 * 1024
/** Read ahead for the next pieces, because each request starts at a whole second. */
const AHEAD_BYTES = 1024 * 1024
const MOST_CURSORS = 16

/** Where a reader is in a log: bytes of a line, which is the `nth` of its instant. */
type Place = { readonly instant: string; readonly nth: number; readonly byte: number }

/** `ahead`: bytes before `place` that were read but not returned yet. */
type Cursor = { readonly uid: string; readonly place: Place; readonly ahead: Uint8Array }

/**
 * Reads logs of pods piece by piece. The API has no offset: a piece that follows another one is found by the times of lines. That also
 * works after the node has replaced a log that became too large.
 */
export class PodLogs {
  readonly #cursors = new Map<string, Cursor>()

  /** Empty: there is no more now. A string: why it cannot be read. Never rejects. */
  async read(api: KubernetesApi, piece: PodPiece, signal: AbortSignal): Promise<Uint8Array | string> {
    const { pod, key, fromByte, mostBytes } = piece
    if (fromByte < 0) return await readEnd(api, piece, signal)
    const known = fromByte === 0 ? undefined : this.#cursors.get(`${key} ${fromByte}`)
    if (known !== undefined && known.ahead.length > 0) return this.#give(known, known.ahead, piece)
    const isSame = known?.uid === pod.uid
    const from = isSame ? known.place : undefined
    // Another pod now runs the same bundle.
    const skip = known === undefined ? fromByte : 0
    const kept: Uint8Array[] = []
    const full = new AbortController()
    let [total, length] = [0, 0]
    const lines = new TimedLines(from, (bytes) => {
      kept.push(Buffer.from(bytes))
      length += bytes.length
    })
    const take = (bytes: Uint8Array) => {
      if (full.signal.aborted) return
      total += bytes.length
      lines.push(bytes)
      if (length >= skip + mostBytes + AHEAD_BYTES || total > MOST_BYTES) full.abort()
    }
    const since = from === undefined ? {} : { sinceTime: `${from.instant.slice(0, SECONDS)}Z` }
    const refusal = await streamLog(
      api,
      piece,
      { timestamps: true, ...since },
      take,
      AbortSignal.any([signal, full.signal]),
    )
    const found = Buffer.concat(kept).subarray(skip)
    if (found.length > 0) return this.#give({ uid: pod.uid, place: lines.place, ahead: found }, found, piece)
    if (total > MOST_BYTES) return `the next part of its output was not found within ${MOST_BYTES / 1024 / 1024} MiB`
    return full.signal.aborted ? found : (refusal ?? found)
  }

  /** Remembers what comes after the piece. */
  #give({ uid, place }: Cursor, bytes: Uint8Array, { key, fromByte, mostBytes }: PodPiece): Uint8Array {
    const given = bytes.subarray(0, mostBytes)
    this.#cursors.delete(`${key} ${fromByte}`)
    // Without times the next piece is found by counting.
    if (place.instant === '') return given
    this.#cursors.set(`${key} ${fromByte + given.length}`, { uid, place, ahead: bytes.subarray(mostBytes) })
    for (const oldest of [...this.#cursors.keys()].slice(0, -MOST_CURSORS)) this.#cursors.delete(oldest)
    return given
  }
}

async function readEnd(api: KubernetesApi, piece: PodPiece, signal: AbortSignal): Promise<Uint8Array | string> {
  const { fromByte, mostBytes } = piece
  const full = new AbortController()
  let kept = Buffer.alloc(0)
  let total = 0
  const take = (bytes: Uint8Array) => {
    total += bytes.length
    kept = Buffer.concat([kept, bytes]).subarray(fromByte)
    if (total > MOST_BYTES) full.abort()
  }
  const refusal = await streamLog(api, piece, { tailLines: MOST_LINES }, take, AbortSignal.any([signal, full.signal]))
  return full.signal.aborted ? kept.subarray(0, mostBytes) : (refusal ?? kept.subarray(0, mostBytes))
}

/** Why it was not whole; undefined: it was, or the container has not started. */
async function streamLog(
  api: KubernetesApi,
  { namespace, pod }: PodPiece,
  query: KubernetesQuery,
  take: (bytes: Uint8Array) => void,
  signal: AbortSignal,
): Promise<string | undefined> {
  const path = apiPath('v1', 'namespaces', namespace, 'pods', pod.name, 'log')
  const refusal = await api.stream(path, { query: { container: CONTAINER, ...query }, signal }, take)
  return refusal === undefined || refusal.status === 400 ? undefined : refusal.message
}

const NEWLINE = 10
const SPACE = 32
/** A time has 30 or 35 characters. */
const MOST_TIME = 64
const SECONDS = 19

/** Takes the time off each line, and leaves out what comes before `from`. */
class TimedLines {
  place: Place = { instant: '', nth: 0, byte: 0 }
  readonly #from: Place | undefined
  readonly #take: (bytes: Uint8Array) => void
  #hasPassed: boolean
  #isInLine = false
  /** Of a line whose time is not whole. */
  #head: Uint8Array = Buffer.alloc(0)

  constructor(from: Place | undefined, take: (bytes: Uint8Array) => void) {
    this.#from = from
    this.#hasPassed = from === undefined
    this.#take = take
  }

  push(bytes: Uint8Array): void {
    let rest = Buffer.concat([this.#head, bytes])
    this.#head = rest.subarray(0, 0)
    while (rest.length > 0) {
      if (!this.#isInLine) {
        const space = rest.subarray(0, MOST_TIME).indexOf(SPACE)
        if (space < 0 && rest.length < MOST_TIME && !rest.includes(NEWLINE)) {
          this.#head = rest
          return
        }
        const instant = instantOf(rest.subarray(0, Math.max(0, space)).toString('latin1'))
        // A line without a time continues the line before it.
        if (instant !== undefined) {
          this.place = { instant, nth: instant === this.place.instant ? this.place.nth + 1 : 0, byte: 0 }
          rest = rest.subarray(space + 1)
        }
        this.#isInLine = true
      }
      const end = rest.indexOf(NEWLINE)
      const part = end < 0 ? rest : rest.subarray(0, end + 1)
      rest = rest.subarray(part.length)
      this.#isInLine = end < 0
      this.#takePart(part)
    }
  }

  #takePart(part: Uint8Array): void {
    const { instant, nth, byte } = this.place
    this.place = { instant, nth, byte: byte + part.length }
    const from = this.#from
    if (this.#hasPassed || from === undefined) return this.#take(part)
    const isOfSame = instant === from.instant && nth === from.nth
    this.#hasPassed = isOfSame
      ? byte + part.length >= from.byte
      : instant > from.instant || (instant === from.instant && nth > from.nth)
    if (!this.#hasPassed) return
    const fresh = isOfSame ? part.subarray(Math.max(0, from.byte - byte)) : part
    if (fresh.length > 0) this.#take(fresh)
  }
}

/** In UTC with nine digits of the second, so that they compare as texts; undefined: not a time. */
function instantOf(text: string): string | undefined {
  const [, time = '', fraction = '', zone = ''] =
    /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(text) ?? []
  const ms = Date.parse(time + zone)
  return Number.isFinite(ms) ? `${new Date(ms).toISOString().slice(0, SECONDS)}.${fraction.padEnd(9, '0')}` : undefined
}

const SEARCH_MS = 30_000
const MOST_FOUND = 1024 * 1024

/** Runs a program of sh here: `programOf` gets programs that print the content of each, or fail if there is none. */
export async function runWithFiles(
  contents: ReadonlyMap<string, Uint8Array>,
  programOf: (tails: ReadonlyMap<string, string>) => string,
  signal: AbortSignal,
): Promise<string | undefined> {
  let directory: string | undefined
  try {
    directory = mkdtempSync(join(tmpdir(), 'muster-search-'))
    const tails = new Map<string, string>()
    for (const [key, content] of contents) {
      const file = join(directory, String(tails.size))
      writeFileSync(file, content, { mode: 0o600 })
      tails.set(key, `cat ${shellQuote(file)}`)
    }
    return await runSh(programOf(tails), signal)
  } catch {
    return undefined
  } finally {
    if (directory !== undefined) rmSync(directory, { recursive: true, force: true })
  }
}

function runSh(program: string, signal: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const limit = AbortSignal.any([signal, AbortSignal.timeout(SEARCH_MS)])
    const child = spawn('/bin/sh', ['-s'], { stdio: ['pipe', 'pipe', 'ignore'], signal: limit })
    let text = ''
    child.on('error', () => resolve(undefined))
    child.stdin.on('error', () => {})
    child.stdout.setEncoding('utf8').on('data', (more: string) => {
      text = (text + more).slice(0, MOST_FOUND)
    })
    child.on('close', (code) => resolve(code === 0 ? text : undefined))
    child.stdin.end(program)
  })
}
