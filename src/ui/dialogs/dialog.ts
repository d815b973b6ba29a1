/**
 * A dialog: what it shows is data (drawn by components/dialog-box.tsx), what its keys do is its controller's. While one is
 * open every key is its own and none reaches a host.
 */
import { segmenter } from '../../base/text-width.ts'
import type { KeyEvent } from '../keys/decode-input.ts'

export type Tone = 'plain' | 'muted' | 'accent' | 'warning' | 'error' | 'ok'

export type DialogLine = {
  readonly text: string
  readonly tone?: Tone
  readonly isSelected?: boolean
  readonly right?: string
}

export type DialogView = {
  /** For tests and the observer: `paste-review`, `palette`, … */
  readonly id: string
  readonly title: string
  /** An input line above the body; a secret's text is already masked. */
  readonly input?: {
    readonly label: string
    readonly text: string
    readonly cursor: number
    /** Stands where nothing has been typed. */
    readonly placeholder?: string
    readonly error?: string
  }
  readonly lines: readonly DialogLine[]
  /** Keys of the moment: `Enter send`, `Esc discard`. */
  readonly keys: readonly (readonly [key: string, does: string])[]
  /** The keys may take a second row; `lines` leave room for it. */
  readonly wrapsKeys?: boolean
  readonly tone?: 'plain' | 'danger'
  readonly width?: number
  /** Its lines change while one types, and its first row must not move. Default: it has an input. */
  readonly isSteady?: boolean
  /** It says what state hosts are in. */
  readonly showsHosts?: boolean
}

export interface Dialog {
  view(room: { readonly columns: number; readonly rows: number }): DialogView
  key(label: string, event: KeyEvent): void
  /** The wheel, in lines, down if positive; absent: it moves the selected line. */
  wheel?(lines: number): void
  /** A click on a line of the view. */
  pick?(line: number): void
  /** Absent: a paste changes nothing, so it never answers a question. */
  paste?(text: string): void
  /** Closed from outside (the question is void): called once, also after it closed itself. */
  cancel(): void
}

/** What Tab completes: the end of the text, from `from` on. */
export type Completing = {
  readonly from: number
  /** The text itself, without quotes. */
  readonly word: string
  /** What it is, or the words to choose from. */
  readonly kind: 'path' | 'host-set' | readonly string[]
  /** How a word is written into the line; default: as it is. */
  write?(word: string): string
}

/** The words that begin with this one. */
export type LookUp = (kind: Completing['kind'], word: string) => Promise<readonly string[]>

/** What a dialog reports to. */
export type DialogReport = {
  onClose(): void
  onChange(): void
  /** For prompts; without it nothing is remembered. */
  readonly history?: {
    of(prompt: string): readonly string[]
    add(prompt: string, text: string, isDone?: boolean): void
  }
  readonly lookUp?: LookUp
}
export type DialogFactory = (report: DialogReport) => Dialog

export const isCancelKey = (label: string): boolean => label === 'Esc' || label === 'Ctrl-c' || label === 'Ctrl-g'

/** A dialog may be closed by its own key and from outside, in any order: it reports that once. True: it was open. */
export function closeOnce(onClose: () => void): () => boolean {
  let isClosed = false
  return () => {
    if (isClosed) return false
    isClosed = true
    onClose()
    return true
  }
}

/** `↑ 3 more   ↓ 20 more` */
export const moreText = (above: number, below: number): string =>
  [...(above > 0 ? [`↑ ${above} more`] : []), ...(below > 0 ? [`↓ ${below} more`] : [])].join('   ')

/** Which of `count` lines are shown on `height` rows: the selected one is in the middle where possible. */
export function windowAround(selected: number, count: number, height: number): number {
  return Math.min(Math.max(0, selected - Math.floor(height / 2)), Math.max(0, count - height))
}

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
