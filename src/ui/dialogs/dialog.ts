/**
 * A dialog: what it shows is data (drawn by components/dialog-box.tsx), what its keys do is its controller's. While one is
 * open every key is its own and none reaches a host.
 */
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
  readonly tone?: 'plain' | 'danger'
  readonly width?: number
}

export interface Dialog {
  view(room: { readonly columns: number; readonly rows: number }): DialogView
  key(label: string, event: KeyEvent): void
  /** Absent: a paste changes nothing, so it never answers a question. */
  paste?(text: string): void
  /** Closed from outside (the question is void): called once, also after it closed itself. */
  cancel(): void
}

/** What a dialog reports to. */
export type DialogReport = { onClose(): void; onChange(): void }
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

/** Which of `count` lines are shown on `height` rows: the selected one is in the middle where possible. */
export function windowAround(selected: number, count: number, height: number): number {
  return Math.min(Math.max(0, selected - Math.floor(height / 2)), Math.max(0, count - height))
}
