/** Where a row shows what was typed. Pure. */
import { getOrMake } from '../../base/collections.ts'
import { literalPattern } from '../../base/literal-pattern.ts'
import { ASCII, segmenter, textWidth } from '../../base/text-width.ts'

/** Of the lines that were looked for last: line editors draw a paste of hundreds of lines again and again. */
const patterns = new Map<string, RegExp>()
const MOST_PATTERNS = 1000

/**
 * The first place of `text` in `shown`; `end` is behind its last character. If a wide character does not fit into the last column,
 * readline puts a blank there, which is not part of the line.
 */
export function findEcho(text: string, shown: string): { readonly at: number; readonly end: number } | undefined {
  const at = shown.indexOf(text)
  if (at >= 0) return { at, end: at + text.length }
  // The echo has the same characters, and maybe blanks.
  if (text === '' || shown.length < text.length || ASCII.test(text) || ASCII.test(shown)) return undefined
  if (patterns.size > MOST_PATTERNS) patterns.clear()
  const found = getOrMake(patterns, text, () => patternOf(text)).exec(shown)
  return found === null ? undefined : { at: found.index, end: found.index + found[0].length }
}

function patternOf(text: string): RegExp {
  const characters = Array.from(segmenter.segment(text), ({ segment }) => segment)
  const pattern = characters
    .map((one, index) => (index > 0 && textWidth(one) === 2 ? ' ?' : '') + literalPattern(one))
    .join('')
  return new RegExp(pattern, 'u')
}
