/** One line of text and its cursor, edited by keys: a pure reducer, graphemes are never split. */
import { segmenter } from '../../base/text-width.ts'
import type { KeyEvent } from '../keys/decode-input.ts'

export type Line = { readonly text: string; readonly cursor: number }

export const emptyLine: Line = { text: '', cursor: 0 }
export const lineOf = (text: string): Line => ({ text, cursor: text.length })

function previousBoundary(text: string, cursor: number): number {
  let last = 0
  for (const { index } of segmenter.segment(text.slice(0, cursor))) last = index
  return last
}

function nextBoundary(text: string, cursor: number): number {
  const [first] = segmenter.segment(text.slice(cursor))
  return cursor + (first?.segment.length ?? 0)
}

const wordStart = (text: string, cursor: number): number => text.slice(0, cursor).search(/\S+\s*$/u)

/** Undefined: the key means nothing to a line. */
export function editLine(line: Line, event: KeyEvent): Line | undefined {
  const { text, cursor } = line
  const { key } = event
  const cut = (from: number, to: number): Line => ({ text: text.slice(0, from) + text.slice(to), cursor: from })
  const control = key.ctrl && !key.alt ? key.name : undefined
  if (key.name === 'backspace' || control === 'h') return cut(previousBoundary(text, cursor), cursor)
  if (key.name === 'delete' || control === 'd') return cut(cursor, nextBoundary(text, cursor))
  if (key.name === 'left' || control === 'b') return { text, cursor: previousBoundary(text, cursor) }
  if (key.name === 'right' || control === 'f') return { text, cursor: nextBoundary(text, cursor) }
  if (key.name === 'home' || control === 'a') return { text, cursor: 0 }
  if (key.name === 'end' || control === 'e') return { text, cursor: text.length }
  if (control === 'u') return cut(0, cursor)
  if (control === 'k') return cut(cursor, text.length)
  if (control === 'w') return cut(Math.max(0, wordStart(text, cursor)), cursor)
  if (!key.ctrl && !key.alt && key.text) return insertText(line, key.text)
  return undefined
}

export function insertText(line: Line, inserted: string): Line {
  const clean = inserted.replace(/[\u0000-\u001f\u007f]+/g, ' ')
  return {
    text: line.text.slice(0, line.cursor) + clean + line.text.slice(line.cursor),
    cursor: line.cursor + clean.length,
  }
}
