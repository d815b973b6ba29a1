/** Text from outside, safe for a terminal or a log: controls, bidirectional overrides and lone surrogates become visible escapes. */

// C0, DEL, C1, line and paragraph separators, zero-width, annotation and bidirectional controls, lone surrogates.
const UNSAFE =
  /[\u0000-\u001f\u007f-\u009f\u061c\u2028\u2029\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g

export function printable(text: string): string {
  return text.replace(UNSAFE, (character) => {
    const code = character.charCodeAt(0)
    return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`
  })
}

/** The same, but keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return text.replace(/[^\n\t]+/g, printable)
}

/** A value as JSON that acts on no terminal: the same value, with what is unsafe in its strings as `\uXXXX`. */
export function printableJson(value: unknown): string {
  return JSON.stringify(value).replace(
    UNSAFE,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  )
}
