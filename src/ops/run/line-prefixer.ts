/**
 * Prefixes each line of a host's output with its name. Only whole lines are returned, so that lines of many hosts can be mixed.
 * Bounded: on a terminal a line beyond the limit is cut, and marked as cut.
 */
import { printable } from '../../base/printable.ts'

const NEWLINE = 10
/** On a terminal a longer line is cut; elsewhere it is only broken, far beyond any sensible line. */
const MAX_SHOWN_BYTES = 64 * 1024
const MAX_HELD_BYTES = 2 ** 20

export type LinePrefixerOptions = {
  readonly prefix: string
  /** For a terminal: control characters become visible, long lines are cut. */
  readonly isSanitized: boolean
}

export class LinePrefixer {
  readonly #prefix: Buffer
  readonly #isSanitized: boolean
  /** The unfinished line. */
  #held: Buffer = Buffer.alloc(0)
  /** Bytes of that line that were dropped. */
  #dropped = 0

  constructor({ prefix, isSanitized }: LinePrefixerOptions) {
    this.#prefix = Buffer.from(prefix)
    this.#isSanitized = isSanitized
  }

  /** The lines that are now complete, ready to write; undefined: none. */
  push(bytes: Uint8Array): Buffer | undefined {
    const lastBreak = bytes.lastIndexOf(NEWLINE)
    if (lastBreak < 0) return this.#hold(bytes)
    const whole = bytes.subarray(0, lastBreak + 1)
    const lines = this.#format(this.#held.length === 0 ? whole : Buffer.concat([this.#held, whole]))
    this.#held = Buffer.alloc(0)
    this.#dropped = 0
    const rest = lastBreak + 1 < bytes.length ? this.#hold(bytes.subarray(lastBreak + 1)) : undefined
    return rest === undefined ? lines : Buffer.concat([lines, rest])
  }

  /** The last line, which may lack its end. */
  flush(): Buffer | undefined {
    return this.#held.length === 0 ? undefined : this.push(LINE_END)
  }

  #hold(bytes: Uint8Array): Buffer | undefined {
    if (!this.#isSanitized && this.#held.length + bytes.length > MAX_HELD_BYTES) {
      const lines = this.#format(Buffer.concat([this.#held, bytes, LINE_END]))
      this.#held = Buffer.alloc(0)
      return lines
    }
    // One byte more than is shown, to know that the line was too long.
    const room = this.#isSanitized ? Math.max(0, MAX_SHOWN_BYTES + 1 - this.#held.length) : bytes.length
    this.#dropped += Math.max(0, bytes.length - room)
    if (room > 0) this.#held = Buffer.concat([this.#held, bytes.subarray(0, room)])
    return undefined
  }

  /** Bytes that end with a line break. */
  #format(lines: Uint8Array): Buffer {
    return this.#isSanitized ? this.#show(lines) : withPrefix(lines, this.#prefix)
  }

  #show(lines: Uint8Array): Buffer {
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

/** Byte by byte: for the short lines of most programs, ten times as fast as joining buffers. */
function withPrefix(lines: Uint8Array, prefix: Buffer): Buffer {
  let count = 0
  for (let at = 0; at < lines.length; at += 1) if (lines[at] === NEWLINE) count += 1
  const output = Buffer.allocUnsafe(lines.length + count * prefix.length)
  let to = 0
  let isStart = true
  for (let at = 0; at < lines.length; at += 1) {
    if (isStart) for (let index = 0; index < prefix.length; index += 1, to += 1) output[to] = prefix[index] ?? 0
    const byte = lines[at] ?? 0
    output[to] = byte
    to += 1
    isStart = byte === NEWLINE
  }
  return output
}

/** A line for a terminal: tabs stay, a carriage return before the line break goes, every other control character is shown. */
export function showLine(line: Uint8Array): string {
  const text = Buffer.from(line.buffer, line.byteOffset, line.length).toString()
  return (text.endsWith('\r') ? text.slice(0, -1) : text).split('\t').map(printable).join('\t')
}
