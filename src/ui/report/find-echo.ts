/** Where a row shows what was typed. Pure. */
import { literalPattern } from '../../base/literal-pattern.ts'
import { ASCII, segmenter, textWidth } from '../../base/text-width.ts'

/**
 * The first place of `text` in `shown`; `end` is behind its last character. If a wide character does not fit into the last column,
 * readline puts a blank there, which is not part of the line.
 */
export function findEcho(text: string, shown: string): { readonly at: number; readonly end: number } | undefined {
  const at = shown.indexOf(text)
  if (at >= 0) return { at, end: at + text.length }
  if (text === '' || ASCII.test(text)) return undefined
  const characters = Array.from(segmenter.segment(text), ({ segment }) => segment)
  const pattern = characters
    .map((one, index) => (index > 0 && textWidth(one) === 2 ? ' ?' : '') + literalPattern(one))
    .join('')
  const found = new RegExp(pattern, 'u').exec(shown)
  return found === null ? undefined : { at: found.index, end: found.index + found[0].length }
}
