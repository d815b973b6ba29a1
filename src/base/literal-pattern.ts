/** The source of a pattern, for a RegExp with `u`, that matches this text only. */
export const literalPattern = (text: string): string =>
  text.replace(/[^\p{L}\p{N}]/gu, (each) => `\\u{${each.codePointAt(0)?.toString(16)}}`)
