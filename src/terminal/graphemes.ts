/** Character widths: the tables of the emulator's addon, with a bound on how many code points a host can join into one cell. */
import type { IUnicodeVersionProvider, Terminal } from '@xterm/headless'
import { getOrMake } from '../base/collections.ts'
import { UnicodeGraphemesAddon } from './graphemes-addon.ts'

/** The longest emoji sequence in use joins nine to the first. */
const MAX_JOINS = 15

// The emulator's property value: bit 0 joins the one before, bits 1–2 width, bits 3–26 state. The count of joins goes above.
const JOINS_SHIFT = 27
const VALUE_MASK = (1 << JOINS_SHIFT) - 1
const STATE_SHIFT = 3
const JOIN_BIT = 1

const VERSION = 'bounded-graphemes'

function captureProvider(): IUnicodeVersionProvider {
  const providers: IUnicodeVersionProvider[] = []
  const recorder = { register: (provider: IUnicodeVersionProvider) => providers.push(provider), activeVersion: '' }
  // The addon only ever touches `unicode`.
  new UnicodeGraphemesAddon().activate({ unicode: recorder } as unknown as Terminal)
  const provider = providers.find((candidate) => candidate.version === recorder.activeVersion)
  if (!provider) throw new Error('the grapheme addon registered no provider')
  return provider
}

function boundJoins(provider: IUnicodeVersionProvider): IUnicodeVersionProvider {
  const narrow = provider.charProperties(0x41, 0)
  return {
    version: VERSION,
    wcwidth: (code) => provider.wcwidth(isYoungEmoji(code) ? KNOWN_EMOJI : code),
    charProperties(code, preceding) {
      if (code < 127 && code >= 32 && preceding >> STATE_SHIFT === 0) return narrow
      const before = preceding & VALUE_MASK
      const own = provider.charProperties(isYoungEmoji(code) ? KNOWN_EMOJI : code, before)
      const isPart = isZeroWidth(code) || ((own & JOIN_BIT) === 0 && isJamoAfterFirst(code))
      const value = isPart && before !== 0 ? before | JOIN_BIT : own
      if ((value & JOIN_BIT) === 0) return value
      const joins = preceding >>> JOINS_SHIFT
      return joins < MAX_JOINS ? value | ((joins + 1) << JOINS_SHIFT) : provider.charProperties(code, 0)
    },
  }
}

/** Format characters, which programs (wcwidth) give no column: they go into the cell before them, or take a blank cell. */
function isZeroWidth(code: number): boolean {
  if (code < 0x200b) return false
  if (code <= 0x206f)
    return code === 0x200b || code === 0x200e || code === 0x200f || (code >= 0x202a && code <= 0x202e) || code >= 0x2060
  return code === 0xfeff
}

/** Vowels and ends of Korean syllables: to wcwidth they have no column, whatever is before them. */
const isJamoAfterFirst = (code: number): boolean =>
  (code >= 0x1160 && code <= 0x11ff) || (code >= 0xd7b0 && code <= 0xd7fb)

/** Emoji from here on have no skin tones and no halves of flags among them, and some are younger than the addon's tables. */
const YOUNG_EMOJI = 0x1f6d5
const LAST_EMOJI = 0x1faff
/** 😀 joins and spreads as every other emoji does. */
const KNOWN_EMOJI = 0x1f600
const EMOJI = /^\p{Emoji_Presentation}$/u
const areEmoji = new Map<number, boolean>()

/** The tables take emoji that they do not know for narrow; wcwidth and terminals take them for wide. */
function isYoungEmoji(code: number): boolean {
  if (code < YOUNG_EMOJI || code > LAST_EMOJI) return false
  return getOrMake(areEmoji, code, () => EMOJI.test(String.fromCodePoint(code)))
}

let shared: IUnicodeVersionProvider | undefined

export function installGraphemes(terminal: Terminal): void {
  shared ??= boundJoins(captureProvider())
  terminal.unicode.register(shared)
  terminal.unicode.activeVersion = VERSION
}
