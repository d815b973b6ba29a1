/** Text from outside, safe for a terminal or a log: controls, bidirectional overrides and lone surrogates become visible escapes. */

// C0, DEL, C1, line and paragraph separators, zero-width, annotation and bidirectional controls, lone surrogates.
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

/** The same without line breaks and tabs. */
const UNSAFE_IN_LINES = new RegExp(UNSAFE.source.replace('\\u0000-\\u001f', '\\u0000-\\u0008\\u000b-\\u001f'), 'g')

export function printable(text: string): string {
  return text.replace(UNSAFE, visible)
}

/** The same, but keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return text.replace(UNSAFE_IN_LINES, visible)
}

const hexOf = (code: number, digits: number): string => code.toString(16).padStart(digits, '0')

/** Of the first 256 characters, since hosts may print many of them. */
const ESCAPES = Array.from({ length: 0x100 }, (_, code) => `\\x${hexOf(code, 2)}`)

function visible(character: string): string {
  const code = character.charCodeAt(0)
  return ESCAPES[code] ?? `\\u${hexOf(code, 4)}`
}

/** A value as JSON that acts on no terminal: the same value, with what is unsafe in its strings as `\uXXXX`. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(UNSAFE, (character) => `\\u${hexOf(character.charCodeAt(0), 4)}`)
}
