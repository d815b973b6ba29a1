/**
 * The grammar of everything that the console may write to the user's terminal. Whatever hosts print, the bytes that leave
 * the program are these few sequences and printable text, and nothing else: no title, no clipboard, no query, no bell.
 */

const SEQUENCES: readonly RegExp[] = [
  // Frames: synchronized update, cursor shown or hidden, its place and shape, erased cells, attributes.
  /^\x1b\[\?(?:2026|25)[hl]/,
  /^\x1b\[\d{1,4};\d{1,4}H/,
  /^\x1b\[\d{0,4}[GCX]/,
  /^\x1b\[[0-6] q/,
  /^\x1b\[[\d;]{1,60}m/,
  // Taking and giving back the terminal.
  /^\x1b\[\?(?:1049|2004|1002|1006|1004|7)[hl]/,
  /^\x1b\[H\x1b\[2J/,
  // The one question: which background.
  /^\x1b\]11;\?\x1b\\/,
]

/** Controls, DEL, separators of lines, lone surrogates, and format characters but those inside an emoji or a ligature. */
const ACTING = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]|(?!\u200c|\u200d|[\u{e0020}-\u{e007f}])\p{Cf}/u

/** What of the bytes is outside the grammar, with its surroundings; undefined: nothing. A cut sequence at the end is one. */
export function findForeignBytes(output: Uint8Array): string | undefined {
  let text: string
  try {
    text = new TextDecoder('utf-8', { fatal: true }).decode(output)
  } catch {
    return 'bytes that are not UTF-8'
  }
  let at = 0
  while (at < text.length) {
    const next = text.indexOf('\x1b', at)
    const run = text.slice(at, next < 0 ? text.length : next)
    const acting = ACTING.exec(run)
    if (acting) return around(text, at + acting.index)
    if (next < 0) return undefined
    const rest = text.slice(next, next + 80)
    const sequence = SEQUENCES.map((pattern) => pattern.exec(rest)?.[0]).find((match) => match !== undefined)
    if (sequence === undefined) return around(text, next)
    at = next + sequence.length
  }
  return undefined
}

const around = (text: string, at: number): string =>
  `${JSON.stringify(text.slice(Math.max(0, at - 30), at))} then ${JSON.stringify(text.slice(at, at + 40))}`
