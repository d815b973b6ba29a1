/** Text from outside, safe for a terminal or a log: what acts, reorders text or is invisible becomes a visible escape. */

/** The flags of England, Scotland and others end in invisible tags. They are matched to be kept; tags anywhere else can hide text. */
const FLAG = String.raw`\u{1f3f4}[\u{e0030}-\u{e0039}\u{e0061}-\u{e007a}]{3,6}\u{e007f}`
/**
 * By property, so that what Unicode adds is included: controls, lone surrogates, line and paragraph separators, and what is
 * ignored when text is drawn, such as bidirectional controls, tags and fillers; and the marks of annotations. Kept are the two
 * joiners and the two selectors of text and emoji, which scripts and emoji need. The selectors of Mongolian letters are not,
 * because terminals do not shape that script.
 */
const HIDDEN = String.raw`[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]--[\u200c\u200d\ufe0e\ufe0f]`

const UNSAFE = new RegExp(`${FLAG}|[${HIDDEN}]`, 'gv')
/** The same without line breaks and tabs. */
const UNSAFE_IN_LINES = new RegExp(`${FLAG}|[${HIDDEN}--[\\t\\n]]`, 'gv')

/** Most texts are plain, and this is faster than a search by property. */
const NOT_PLAIN = /[^\x20-\x7e]/
const NOT_PLAIN_LINES = /[^\x20-\x7e\t\n]/

export function printable(text: string): string {
  return NOT_PLAIN.test(text) ? text.replace(UNSAFE, visible) : text
}

/** The same, but keeps line breaks and tabs. */
export function printableLines(text: string): string {
  return NOT_PLAIN_LINES.test(text) ? text.replace(UNSAFE_IN_LINES, visible) : text
}

const hexOf = (code: number, digits: number): string => code.toString(16).padStart(digits, '0')

/** Of the first 256 characters, since hosts may print many of them. */
const ESCAPES = Array.from({ length: 0x100 }, (_, code) => `\\x${hexOf(code, 2)}`)

const isFlag = (match: string): boolean => match.length > 2

function visible(match: string): string {
  if (isFlag(match)) return match
  const code = match.codePointAt(0) ?? 0
  return ESCAPES[code] ?? (code > 0xffff ? `\\u{${hexOf(code, 0)}}` : `\\u${hexOf(code, 4)}`)
}

/** A value as JSON that acts on no terminal: the same value, with what is unsafe in its strings as `\uXXXX`. */
export function printableJson(value: unknown): string {
  const json = JSON.stringify(value)
  const escaped = (match: string) => match.replace(/./gs, (unit) => `\\u${hexOf(unit.charCodeAt(0), 4)}`)
  return NOT_PLAIN.test(json) ? json.replace(UNSAFE, (match) => (isFlag(match) ? match : escaped(match))) : json
}
