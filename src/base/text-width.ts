/** The width of a text in columns of a terminal, by the same rules as Ink's layout. */
import stringWidth from 'string-width'
import { NARROW } from './narrow-text.ts'

/** Matches a text in which each character is one column wide. */
export const ASCII = /^[ -~]*$/

export const textWidth = (text: string): number => (NARROW.test(text) ? text.length : stringWidth(text))

/** Splits a text into graphemes: what a terminal shows as one character. */
export const segmenter = new Intl.Segmenter(undefined, { granularity: 'grapheme' })

/** At most `columns` wide; a cut is marked with `…`. */
export function clip(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text
  if (columns <= 0) return ''
  let result = ''
  let width = 0
  for (const { segment } of segmenter.segment(text)) {
    const next = textWidth(segment)
    if (width + next > columns - 1) break
    result += segment
    width += next
  }
  return `${result}…`
}

/** The end of a text, at most `columns` wide; a cut is marked with `…`. */
export function clipStart(text: string, columns: number): string {
  if (textWidth(text) <= columns) return text
  if (columns <= 0) return ''
  return `…${endOf(text, columns - 1)}`
}

function endOf(text: string, columns: number): string {
  const characters = Array.from(segmenter.segment(text), ({ segment }) => segment)
  let end = ''
  for (let last = characters.pop(); last !== undefined && textWidth(last + end) <= columns; last = characters.pop())
    end = last + end
  return end
}

const NAME_END = 8

/** Shortens a host name: first its domain is cut, then its middle, because host names differ at their ends. */
export function clipName(name: string, columns: number): string {
  if (textWidth(name) <= columns) return name
  // An address has no domain, also behind a user.
  const label = /^(?![^.@]*@\d+\.)[^.]*[^\d.][^.]*(?=\.)/.exec(name)?.[0]
  if (label !== undefined && textWidth(label) < columns) return `${label}…`
  const end = endOf(label ?? name, Math.min(NAME_END, Math.floor((columns - 1) / 2)))
  return clip(label ?? name, columns - textWidth(end)) + end
}

export const padEnd = (text: string, columns: number): string =>
  text + ' '.repeat(Math.max(0, columns - textWidth(text)))

/** The words of a text in lines of at most `columns`, later ones behind `indent`; a word that is longer than a line is cut into pieces. */
export function wrapText(text: string, columns: number, indent = ''): string[] {
  const lines: string[] = []
  let current = ''
  const push = (): void => {
    lines.push(current)
    current = indent
  }
  // Runs of spaces are columns of a table: they stay with the word before them.
  for (const word of text.split(/(?<=\S) (?=\S)/)) {
    const joined = current === '' || current === indent ? current + word : `${current} ${word}`
    if (textWidth(joined) <= columns) {
      current = joined
      continue
    }
    if (current !== '' && current !== indent) push()
    let rest = current + word
    while (textWidth(rest) > columns && columns > textWidth(indent) + 1) {
      const piece = clip(rest, columns + 1).slice(0, -1) || rest.slice(0, 1)
      current = piece
      rest = indent + rest.slice(piece.length)
      push()
    }
    current = rest
  }
  if (current !== '' && (current !== indent || lines.length === 0)) lines.push(current)
  return lines
}

/** In columns, of texts that are drawn one after the other. */
export const partsWidth = (parts: readonly { readonly text: string }[]): number =>
  parts.reduce((sum, { text }) => sum + textWidth(text), 0)
