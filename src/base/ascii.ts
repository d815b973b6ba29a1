/** Output for a locale that is not UTF-8: each character becomes one of ASCII, so that columns keep their places. */

type Environment = Readonly<Record<string, string | undefined>>

export function isUtf8Locale(environment: Environment): boolean {
  const locale = environment.LC_ALL || environment.LC_CTYPE || environment.LANG || ''
  // No locale at all means a bare container, whose terminal almost always supports UTF-8; `C` and `POSIX` are set on purpose.
  return locale === '' || /utf-?8/i.test(locale)
}

const LIKE: Readonly<Record<string, string>> = {
  '-': '─━═╌╍┄┅┈┉╴╶╸╺‐‑‒–—−·•',
  '|': '│┃║╎╏┆┇┊┋╵╷╹╻▏▎▍▌▐▕',
  '*': '●★◆⏺▪∗',
  o: '○◐◑◒◓◌◦°',
  x: '×✗✘✕✖',
  '+': '✓✔✚',
  '#': '█▉▊▋■▓▇',
  '%': '▒▆',
  ':': '░⋮▅',
  '=': '▄⇄⇆≈≡',
  _: '▁▂',
  '.': '…▃',
  '>': '→▸▶►»›⏵',
  '<': '←◂◀◄«‹',
  '^': '↑▴▲▀',
  v: '↓▾▼',
  '~': '↔±↕',
  '!': '≠',
  '"': '“”„',
  "'": '‘’‚′',
  u: 'µμ',
  S: 'Σ∑',
}
const BY_CHARACTER = new Map(Object.entries(LIKE).flatMap(([ascii, all]) => Array.from(all, (each) => [each, ascii])))

const BOX_FIRST = 0x2500
const BOX_LAST = 0x257f
const BRAILLE_FIRST = 0x2800
const BRAILLE_LAST = 0x28ff
/** The four dots of the upper half of a braille cell. */
const UPPER_DOTS = 0b0001_1011

/** One character of ASCII for any character; `?` if none is similar. */
export function asciiLike(character: string): string {
  const code = character.codePointAt(0) ?? 0x20
  if (code < 0x80) return character.slice(0, 1)
  const known = BY_CHARACTER.get(String.fromCodePoint(code))
  if (known !== undefined) return known
  if (code >= BOX_FIRST && code <= BOX_LAST) return '+'
  if (code >= BRAILLE_FIRST && code <= BRAILLE_LAST) return brailleLike(code - BRAILLE_FIRST)
  // Letters lose their accents, and small or raised digits are digits.
  const plain = character.normalize('NFKD').charAt(0)
  return plain >= ' ' && plain <= '~' ? plain : '?'
}

/** Used for charts: eight dots in a cell. */
function brailleLike(dots: number): string {
  if (dots === 0) return ' '
  if ((dots & UPPER_DOTS) === 0) return '.'
  return (dots & ~UPPER_DOTS) === 0 ? "'" : ':'
}

const NOT_ASCII = /[^\p{ASCII}\p{Mark}]\p{Mark}*|\p{Mark}/gu

export function asciiText(text: string): string {
  return text.replace(NOT_ASCII, asciiLike)
}
