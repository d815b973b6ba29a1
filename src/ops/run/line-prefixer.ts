/**
 * Prefixes each line of a host's output with its name. Only whole lines are returned, so that lines of many hosts can be mixed.
 * Control characters become visible wherever the lines go, since what reads a pipe (`tee`, `tail`) often prints to the terminal:
 * there, they could act on it, or make a line look like that of another host.
 * Bounded: on a terminal a line beyond the limit is cut, and marked as cut.
 */
import { ByteStore } from '../../base/byte-store.ts'
import { printable, printableLines } from '../../base/printable.ts'

const NEWLINE = 10
const TAB = 9
/** On a terminal a longer line is cut; elsewhere it is only broken, far beyond any sensible line. */
const MAX_SHOWN_BYTES = 64 * 1024
const MAX_HELD_BYTES = 2 ** 20

export type LinePrefixerOptions = {
  readonly prefix: string
  /** For a terminal: long lines are cut. */
  readonly isCut: boolean
}

export class LinePrefixer {
  readonly #prefix: Buffer
  readonly #isCut: boolean
  /** The unfinished line. */
  readonly #held = new ByteStore()
  /** Bytes of that line that were dropped. */
  #dropped = 0

  constructor({ prefix, isCut }: LinePrefixerOptions) {
    this.#prefix = Buffer.from(prefix)
    this.#isCut = isCut
  }

  /** The lines that are now complete, ready to write; undefined: none. */
  push(bytes: Uint8Array): Buffer | undefined {
    const lastBreak = bytes.lastIndexOf(NEWLINE)
    if (lastBreak < 0) return this.#hold(bytes)
    const whole = bytes.subarray(0, lastBreak + 1)
    const isWhole = this.#held.length === 0
    if (!isWhole) this.#held.append(whole)
    const lines = this.#format(isWhole ? whole : this.#held.take())
    this.#dropped = 0
    const rest = lastBreak + 1 < bytes.length ? this.#hold(bytes.subarray(lastBreak + 1)) : undefined
    return rest === undefined ? lines : Buffer.concat([lines, rest])
  }

  /** The last line, which may lack its end. */
  flush(): Buffer | undefined {
    return this.#held.length === 0 ? undefined : this.push(LINE_END)
  }

  #hold(bytes: Uint8Array): Buffer | undefined {
    if (!this.#isCut && this.#held.length + bytes.length > MAX_HELD_BYTES) {
      this.#held.append(bytes)
      this.#held.append(LINE_END)
      return this.#format(this.#held.take())
    }
    // One byte more than is shown, to know that the line was too long.
    const room = this.#isCut ? Math.max(0, MAX_SHOWN_BYTES + 1 - this.#held.length) : bytes.length
    this.#dropped += Math.max(0, bytes.length - room)
    if (room > 0) this.#held.append(bytes.subarray(0, room))
    return undefined
  }

  /** Bytes that end with a line break. */
  #format(lines: Uint8Array): Buffer {
    if (this.#isCut) return this.#showCut(lines)
    const count = countPlain(lines)
    if (count !== undefined) return withPrefix(lines, this.#prefix, count)
    const shown = showLines(lines)
    return withPrefix(shown, this.#prefix, countBreaks(shown))
  }

  #showCut(lines: Uint8Array): Buffer {
    let text = ''
    let dropped = this.#dropped
    for (let start = 0, end = 0; start < lines.length; start = end + 1) {
      end = lines.indexOf(NEWLINE, start)
      const shownEnd = Math.min(end, start + MAX_SHOWN_BYTES)
      dropped += end - shownEnd
      const mark = dropped > 0 ? ` [… ${dropped} bytes more]` : ''
      text += `${this.#prefix}${showLine(lines.subarray(start, shownEnd))}${mark}\n`
      dropped = 0
    }
    return Buffer.from(text)
  }
}

const LINE_END = Buffer.from('\n')

/** How many lines these are; undefined: they have more than ASCII, or control characters. */
function countPlain(lines: Uint8Array): number | undefined {
  let count = 0
  for (let at = 0; at < lines.length; at += 1) {
    const byte = lines[at] ?? 0
    if (byte > 0x7e) return undefined
    if (byte >= 0x20 || byte === TAB) continue
    if (byte !== NEWLINE) return undefined
    count += 1
  }
  return count
}

function countBreaks(lines: Uint8Array): number {
  let count = 0
  for (let at = 0; at < lines.length; at += 1) if (lines[at] === NEWLINE) count += 1
  return count
}

/** The same as `showLine` of each, and the line breaks. */
const showLines = (lines: Uint8Array): Buffer => Buffer.from(printableLines(textOf(lines).replaceAll('\r\n', '\n')))

/** Byte by byte: for the short lines of most programs, ten times as fast as joining buffers. `count`: of line breaks. */
function withPrefix(lines: Uint8Array, prefix: Buffer, count: number): Buffer {
  const output = Buffer.allocUnsafe(lines.length + count * prefix.length)
  let to = 0
  for (let at = 0; at < lines.length; ) {
    for (let index = 0; index < prefix.length; index += 1, to += 1) output[to] = prefix[index] ?? 0
    for (let byte = 0; byte !== NEWLINE && at < lines.length; at += 1, to += 1) {
      byte = lines[at] ?? 0
      output[to] = byte
    }
  }
  return output
}

const textOf = (bytes: Uint8Array): string => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString()

/** A line to be read: tabs stay, a carriage return before the line break goes, every other control character is shown. */
export function showLine(line: Uint8Array): string {
  const text = textOf(line)
  return (text.endsWith('\r') ? text.slice(0, -1) : text).split('\t').map(printable).join('\t')
}
