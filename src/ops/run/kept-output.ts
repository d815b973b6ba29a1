/**
 * The output of a run, kept to be shown line by line: bounded for each stream; what is dropped is counted and reported. Lines are
 * safe for a screen, whatever the bytes are.
 */
import { getOrMake } from '../../base/collections.ts'
import { fileReason } from '../../base/errors.ts'
import { showLine } from './line-prefixer.ts'
import { type HostOutput, OutputStore, type StreamStore } from './output-store.ts'

/** Of each stream of each host. */
export const KEPT_BYTES = 16 * 2 ** 20
/** How much of a line is read. */
const LINE_BYTES = 4096
const TAB_COLUMNS = 8

type StreamName = 'stdout' | 'stderr'

export type OutputLine = {
  /** `note`: about the output, not from the host. */
  readonly kind: StreamName | 'note'
  /** Without control characters. */
  readonly text: string
}

/** The lines of a host: those of stdout, then those of stderr. */
export interface OutputText {
  readonly lineCount: number
  line(index: number): OutputLine
}

export class KeptOutput implements Disposable {
  readonly #store: OutputStore
  readonly #texts = new Map<string, HostText>()
  readonly #onTrouble: ((reason: string) => void) | undefined
  #hasTrouble = false

  /**
   * `directory`: for the temporary file of output that is too large for memory. `onTrouble`: called once, when that file cannot be
   * written; a stream that needs it is cut there.
   */
  constructor(directory: string, onTrouble?: (reason: string) => void) {
    this.#store = new OutputStore(directory)
    this.#onTrouble = onTrouble
  }

  push(host: string, stream: StreamName, bytes: Uint8Array): void {
    this.#text(host).push(stream, bytes)
  }

  text(host: string): OutputText {
    return this.#text(host)
  }

  /** Equal for hosts with equal output. */
  digest(host: string): string {
    return this.#text(host).digest()
  }

  /** As bytes, to be saved. */
  of(host: string): HostOutput {
    return this.#store.of(host)
  }

  /** Discards the output of a host. */
  forget(host: string): void {
    this.#store.forget(host)
    this.#texts.delete(host)
  }

  [Symbol.dispose](): void {
    this.#store[Symbol.dispose]()
  }

  #text(host: string): HostText {
    return getOrMake(this.#texts, host, () => new HostText(this.#store.of(host), this.#report))
  }

  readonly #report = (reason: string): void => {
    if (!this.#hasTrouble) this.#onTrouble?.(reason)
    this.#hasTrouble = true
  }
}

class HostText implements OutputText {
  readonly #streams: Readonly<Record<StreamName, StreamText>>

  constructor({ stdout, stderr }: HostOutput, onTrouble: (reason: string) => void) {
    this.#streams = { stdout: new StreamText(stdout, onTrouble), stderr: new StreamText(stderr, onTrouble) }
  }

  push(stream: StreamName, bytes: Uint8Array): void {
    this.#streams[stream].push(bytes)
  }

  digest(): string {
    return `${this.#streams.stdout.digest()} ${this.#streams.stderr.digest()}`
  }

  get lineCount(): number {
    return this.#streams.stdout.lineCount + this.#streams.stderr.lineCount
  }

  line(index: number): OutputLine {
    const { stdout, stderr } = this.#streams
    const below = index - stdout.lineCount
    return below < 0 ? stdout.line(index, 'stdout') : stderr.line(below, 'stderr')
  }
}

class StreamText {
  readonly #store: StreamStore
  readonly #onTrouble: (reason: string) => void
  readonly #index = new LineIndex()
  #droppedBytes = 0
  /** Why the disk refuses more. */
  #trouble: string | undefined
  /** The last block read, and its size. */
  #read: { readonly start: number; readonly end: number; readonly lines: readonly string[] } | undefined

  constructor(store: StreamStore, onTrouble: (reason: string) => void) {
    this.#store = store
    this.#onTrouble = onTrouble
  }

  push(bytes: Uint8Array): void {
    const room = this.#trouble === undefined ? Math.max(0, KEPT_BYTES - this.#store.sizeBytes) : 0
    const kept = bytes.subarray(0, room)
    this.#droppedBytes += bytes.length - kept.length
    if (kept.length === 0) return
    try {
      this.#store.push(kept)
    } catch (error) {
      this.#droppedBytes += kept.length
      this.#trouble = fileReason(error)
      return this.#onTrouble(this.#trouble)
    }
    this.#index.push(kept)
  }

  digest(): string {
    return `${this.#store.digest()}+${this.#droppedBytes}`
  }

  get lineCount(): number {
    return this.#index.lineCount + (this.#droppedBytes > 0 ? 1 : 0)
  }

  line(index: number, kind: StreamName): OutputLine {
    const because = this.#trouble === undefined ? '' : `: ${this.#trouble}`
    if (index >= this.#index.lineCount)
      return { kind: 'note', text: `[… ${this.#droppedBytes} more bytes of ${kind} were not kept${because}]` }
    const { firstLine, start, end } = this.#index.blockOf(index)
    if (this.#read?.start !== start || this.#read.end !== end)
      this.#read = { start, end, lines: linesOf(this.#store.slice(start, end - start)) }
    return { kind, text: this.#read.lines[index - firstLine] ?? '' }
  }
}

function linesOf(bytes: Buffer): readonly string[] {
  const lines: string[] = []
  for (let start = 0; start < bytes.length; ) {
    const found = bytes.indexOf(10, start)
    const end = found < 0 ? bytes.length : found
    const shown = showLine(bytes.subarray(start, Math.min(end, start + LINE_BYTES)))
    const more = end - start - LINE_BYTES
    lines.push(expandTabs(more > 0 ? `${shown} [… ${more} bytes more]` : shown))
    start = end + 1
  }
  return lines
}

function expandTabs(text: string): string {
  if (!text.includes('\t')) return text
  return text
    .split('\t')
    .reduce((line, part) => `${line}${' '.repeat(TAB_COLUMNS - (line.length % TAB_COLUMNS))}${part}`)
}

/** Lines from one mark to the next. */
const MARK_LINES = 128

/** Where the lines of a growing stream begin: a mark every 128 lines, so that any line is found without reading all. */
class LineIndex {
  /** Offsets in bytes of the lines 0, 128, 256 … */
  readonly #marks: number[] = [0]
  #breaks = 0
  #sizeBytes = 0
  #isAtStart = true

  push(bytes: Uint8Array): void {
    for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) {
      this.#breaks += 1
      if (this.#breaks % MARK_LINES === 0) this.#marks.push(this.#sizeBytes + at + 1)
    }
    this.#sizeBytes += bytes.length
    if (bytes.length > 0) this.#isAtStart = bytes[bytes.length - 1] === 10
  }

  /** Includes a last line without a line break. */
  get lineCount(): number {
    return this.#breaks + (this.#isAtStart ? 0 : 1)
  }

  /** The bytes in which a line lies, with those before and after it. */
  blockOf(line: number) {
    const mark = Math.floor(line / MARK_LINES)
    return {
      firstLine: mark * MARK_LINES,
      start: this.#marks[mark] ?? this.#sizeBytes,
      end: this.#marks[mark + 1] ?? this.#sizeBytes,
    }
  }
}
