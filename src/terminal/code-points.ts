/**
 * Which code points may stand in a cell on their own. Everything else would act on the user's terminal (controls), hide
 * or reorder text (format characters, bidirectional controls) or melt into the neighbouring cell (combining marks).
 */

const UNKNOWN = 0
const YES = 1
const NO = 2

// Cf is checked apart from Co and Cn: private use (icons of prompts) and what this Unicode version does not know yet are fine.
const ALONE_IS_NOTHING = /[\p{Cc}\p{Cf}\p{Cs}\p{M}\p{Zl}\p{Zp}]/u
const SOFT_HYPHEN = 0xad

/** Answers found so far, by code point. */
const known = new Uint8Array(0x11_0000)

/** Whether a code point may stand in a cell: visible, and no space (a blank cell is code 0). */
export function isPrintableCode(code: number): boolean {
  if (code < 0x7f) return code > 0x20
  const answer = known[code]
  if (answer !== UNKNOWN) return answer === YES
  const isPrintable = code === SOFT_HYPHEN || !ALONE_IS_NOTHING.test(String.fromCodePoint(code))
  if (code < known.length) known[code] = isPrintable ? YES : NO
  return isPrintable
}
