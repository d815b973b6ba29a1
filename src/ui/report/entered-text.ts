/**
 * What may have been read of a line that keys have edited. Nobody sees how a program without echo edits, so there is a reader for each
 * usual way: the kernel's terminal, and line editors, whose words end differently. Pure.
 */

type Reader = {
  readonly text: readonly string[]
  /** Characters before the cursor. */
  readonly at: number
}

/** Where the word before the cursor begins. */
type WordStart = (text: readonly string[], at: number) => number

/** No password takes more. */
const MOST_KEYS = 1000

const NONE: Reader = { text: [], at: 0 }

/** Passes characters of each kind in turn. */
const startOf =
  (...kinds: readonly ((character: string) => boolean)[]): WordStart =>
  (text, at) =>
    kinds.reduce((from, isOfKind) => {
      let start = from
      while (start > 0 && isOfKind(text[start - 1] ?? '')) start -= 1
      return start
    }, at)
const not =
  (isOfKind: (character: string) => boolean) =>
  (character: string): boolean =>
    !isOfKind(character)

const isLetter = (character: string): boolean => /[\p{L}\p{N}]/u.test(character)
const isOfName = (character: string): boolean => character === '_' || isLetter(character)
const isBlank = (character: string): boolean => /\s/.test(character)
const endsPath = (character: string): boolean => /[\s/={}'":@|;<>&,]/.test(character)
/** Alt and a letter. */
const letters = startOf(not(isLetter), isLetter)
/** Ctrl-W of the kernel (n_tty). */
const names = startOf(not(isOfName), isOfName)
/** Ctrl-W of readline. */
const words = startOf(isBlank, not(isBlank))
/** Ctrl-W of fish, nearly: it stops at some blanks. */
const pathParts = startOf(endsPath, not(endsPath))

const inserted = ({ text, at }: Reader, added: readonly string[]): Reader => ({
  text: text.toSpliced(at, 0, ...added),
  at: at + added.length,
})
const moved = ({ text }: Reader, at: number): Reader => ({ text, at: Math.max(0, Math.min(text.length, at)) })
const cut = (reader: Reader, from: number, to: number): Reader =>
  from < 0 ? reader : { text: reader.text.toSpliced(from, to - from), at: from }

function wordEnd({ text, at }: Reader): number {
  let end = at
  while (end < text.length && !isLetter(text[end] ?? '')) end += 1
  while (end < text.length && isLetter(text[end] ?? '')) end += 1
  return end
}

function transposed(reader: Reader): Reader {
  const { text } = reader
  const at = Math.min(reader.at, text.length - 1)
  if (at < 1) return reader
  return { text: text.with(at, text[at - 1] ?? '').with(at - 1, text[at] ?? ''), at: at + 1 }
}

/** Keys of line editors (emacs), but not Ctrl-Y, which inserts what was cut from earlier lines, too. */
const EDITS: Readonly<Record<string, (reader: Reader) => Reader>> = {
  '\x01': (reader) => moved(reader, 0),
  '\x02': (reader) => moved(reader, reader.at - 1),
  '\x04': (reader) => cut(reader, reader.at, reader.at + 1),
  '\x05': (reader) => moved(reader, reader.text.length),
  '\x06': (reader) => moved(reader, reader.at + 1),
  '\x0b': (reader) => cut(reader, reader.at, reader.text.length),
  '\x14': transposed,
  '\x15': (reader) => cut(reader, 0, reader.at),
  '\x1bb': (reader) => moved(reader, letters(reader.text, reader.at)),
  '\x1bd': (reader) => cut(reader, reader.at, wordEnd(reader)),
  '\x1bf': (reader) => moved(reader, wordEnd(reader)),
  '\x1b\x7f': (reader) => cut(reader, letters(reader.text, reader.at), reader.at),
  '\x1b[3~': (reader) => cut(reader, reader.at, reader.at + 1),
}
for (const [key, ...others] of [
  ['\x01', '\x1b[H', '\x1bOH', '\x1b[1~'],
  ['\x02', '\x1b[D', '\x1bOD'],
  ['\x05', '\x1b[F', '\x1bOF', '\x1b[4~'],
  ['\x06', '\x1b[C', '\x1bOC'],
  ['\x1bb', '\x1b[1;5D', '\x1b[1;3D'],
  ['\x1bf', '\x1b[1;5C', '\x1b[1;3C'],
  ['\x1b\x7f', '\x1b\b'],
] as const)
  for (const each of others) Object.assign(EDITS, { [each]: EDITS[key] })

const ERASES_ONE: ReadonlySet<string> = new Set(['\x7f', '\b'])
const ERASES_WORD = '\x17'

/** The kernel knows no cursor: other keys are characters to it. */
function typeIntoTerminal(reader: Reader, key: string): Reader {
  if (ERASES_ONE.has(key)) return cut(reader, reader.at - 1, reader.at)
  if (key === ERASES_WORD) return cut(reader, names(reader.text, reader.at), reader.at)
  if (key === '\x15' || key === '\x03') return NONE
  return inserted(reader, Array.from(key))
}

function typeIntoEditor(reader: Reader, key: string, wordStart: WordStart): Reader {
  if (ERASES_ONE.has(key)) return cut(reader, reader.at - 1, reader.at)
  if (key === ERASES_WORD) return cut(reader, wordStart(reader.text, reader.at), reader.at)
  if (key === '\x03') return NONE
  return Object.hasOwn(EDITS, key) ? (EDITS[key]?.(reader) ?? reader) : isKey(key) ? reader : inserted(reader, [key])
}

/** What a terminal shows of keys that it was given as characters: those after a key that moves the cursor replace others. */
function drawKey(reader: Reader, key: string): Reader {
  if (isKey(key)) return typeIntoEditor(reader, key, letters)
  const text = reader.at < reader.text.length ? reader.text.with(reader.at, key) : [...reader.text, key]
  return { text, at: reader.at + 1 }
}

const isKey = (token: string): boolean => token < ' ' || token === '\x7f'

const READERS: readonly ((reader: Reader, key: string) => Reader)[] = [
  typeIntoTerminal,
  ...[words, names, letters, pathParts].map(
    (wordStart) => (reader: Reader, key: string) => typeIntoEditor(reader, key, wordStart),
  ),
  drawKey,
]

/** A key, which is not Enter, may change the line in a way that no reader here knows. */
export function isUnknownEdit(key: string): boolean {
  const isKnown = !isKey(key) || key === '\t' || key === '\x03' || key === ERASES_WORD || ERASES_ONE.has(key)
  return !isKnown && !Object.hasOwn(EDITS, key)
}

/** What each reader may take for the line, without controls and blanks around it; none twice. `keys`: characters, or the bytes of other keys. */
export function readingsOf(keys: readonly string[]): readonly string[] {
  const texts = READERS.map((type) =>
    keys
      .slice(0, MOST_KEYS)
      .reduce(type, NONE)
      .text.filter((each) => !isKey(each))
      .join('')
      .trim(),
  )
  return [...new Set(texts)]
}
