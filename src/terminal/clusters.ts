/** The shared, bounded table of texts of several code points in one cell. It never holds a control character: texts reach the terminal. */
import { CLUSTER_BIT, CODE_MASK, WIDTH_SHIFT } from './cells.ts'

// Cf is checked apart from Co and Cn: private use (icons of prompts) and what this Unicode version does not know yet are fine.
// Vowels and ends of Korean syllables (conjoining jamo) take no column in wcwidth.
const ALONE_IS_NOTHING = /[\p{Cc}\p{Cf}\p{Cs}\p{M}\p{Zl}\p{Zp}\u1160-\u11ff\ud7b0-\ud7fb]/u
const SOFT_HYPHEN = 0xad
/**
 * Unassigned characters, all beyond the BMP, and what Unicode 15 to 17 added to the BMP: with older tables, tmux shows nothing, others a
 * box. The hexagrams became wide in Unicode 16.
 */
const DISPUTED =
  /[\p{Cn}\u{10000}-\u{10ffff}\u088f\u0c5c\u0cdc\u1b4e\u1b4f\u1b7f\u1c89\u1c8a\u20c1\u2427-\u2429\u2b96\u2ffc-\u2fff\u31e4\u31e5\u31ef\u3248-\u324f\u4dc0-\u4dff\ua7cb-\ua7cf\ua7d2\ua7d4\ua7da-\ua7dc\ua7f1\ufbc3-\ufbd2\ufd90\ufd91\ufdc8-\ufdce]/u

/** Two columns by all tables (East Asian Wide and Fullwidth, and what is shown as an emoji). */
const WIDE =
  /[\u1100-\u115f\u2329\u232a\u2e80-\u303e\u3041-\ua4cf\ua960-\ua97c\uac00-\ud7a3\uf900-\ufaff\ufe10-\ufe19\ufe30-\ufe6f\uff01-\uff60\uffe0-\uffe6\p{Emoji_Presentation}]/u

const NARROW_CODE = 1
const WIDE_CODE = 2
const DISPUTED_CODE = 3
/** By code point, one of these; -1: not printable, 0: not known yet. */
const known = new Int8Array(0x11_0000)

/** Whether a code point may stand in a cell: it acts on no terminal, hides and reorders no text, is visible, and no space (a blank cell is code 0). */
export function isPrintableCode(code: number): boolean {
  if (code < 0x7f) return code > 0x20
  return answerFor(code) > 0
}

/** Whether terminals may show this code point, if it is printable, in other than so many columns. */
export function hasDisputedWidth(code: number, width: 1 | 2): boolean {
  if (code <= 0x7f) return width === 2 && isPrintableCode(code)
  const answer = answerFor(code)
  return answer > 0 && answer !== width
}

function answerFor(code: number): number {
  const answer = known[code]
  if (answer === undefined) return -1
  if (answer === 0) known[code] = answerAnew(code)
  return known[code] ?? -1
}

function answerAnew(code: number): number {
  const text = String.fromCodePoint(code)
  if (code !== SOFT_HYPHEN && ALONE_IS_NOTHING.test(text)) return -1
  return DISPUTED.test(text) ? DISPUTED_CODE : WIDE.test(text) ? WIDE_CODE : NARROW_CODE
}

/** About 10 MB when full; a real text has some hundreds. */
export const MAX_CLUSTERS = 1 << 17
/** Code units. The longest emoji sequence in use has 15 (a flag of a region); what is longer is cut at a code point. */
const MAX_CLUSTER_LENGTH = 32

/** What may be inside a cluster though it is a format character: the two joiners, and the tags of regional flags. */
const HIDDEN = /[\p{Cc}\p{Zl}\p{Zp}\p{Cs}]|(?!\u200c|\u200d|[\u{e0020}-\u{e007f}])\p{Cf}/gu

const texts: string[] = []
const indexes = new Map<string, number>()

/** How many new texts one screen may add, so that a hostile host spoils the looks of its own pane only. */
export type ClusterBudget = { left: number }

/** The index of a text, the same for the same text; undefined when it may not be kept. */
function internCluster(text: string, budget?: ClusterBudget): number | undefined {
  const known = indexes.get(text)
  if (known !== undefined) return known
  const clean = cleanCluster(text)
  const index = indexes.get(clean)
  if (index !== undefined) return index
  const code = clean.codePointAt(0) ?? 0
  if (!isPrintableCode(code) || clean.length <= (code > 0xffff ? 2 : 1)) return undefined
  if (texts.length >= MAX_CLUSTERS || budget?.left === 0) return undefined
  if (budget) budget.left--
  indexes.set(clean, texts.length)
  return texts.push(clean) - 1
}

/** The text of an index: printable, never empty for an index that `internCluster` gave. */
export function clusterText(index: number): string {
  return texts[index] ?? ''
}

/** Word 0 of a cell for what stands in it: '' or a space is blank; a text that cannot be kept whole is its first code point. */
export function cellWord(text: string, width: 1 | 2, budget?: ClusterBudget): number {
  const code = text.codePointAt(0) ?? 0
  if (text.length > (code > 0xffff ? 2 : 1)) {
    const index = internCluster(text, budget)
    if (index !== undefined) return (CLUSTER_BIT | (width << WIDTH_SHIFT) | index) >>> 0
  }
  return (width << WIDTH_SHIFT) | (isPrintableCode(code) ? code : 0)
}

/** What of a cell is `cellWord`'s inverse: the text to print, a space for a blank, '' for a tail. */
export function cellText(word: number): string {
  if (word === 0) return ''
  if (word & CLUSTER_BIT) return clusterText(word & CODE_MASK)
  const code = word & CODE_MASK
  return code === 0 ? ' ' : String.fromCodePoint(code)
}

function cleanCluster(text: string): string {
  const clean = text.replace(HIDDEN, '')
  if (clean.length <= MAX_CLUSTER_LENGTH) return clean
  // The cut may leave half of a surrogate pair.
  return clean.slice(0, MAX_CLUSTER_LENGTH).replace(/[\ud800-\udbff]$/, '')
}
