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
  key(event: KeyEvent): void
  paste(text: string): void
  /** Closed from outside (the question is void): called once, also after it closed itself. */
  cancel(): void
}

/** Makes a dialog; `onClose` and `onChange` are what it reports to. */
export type DialogFactory = (report: { onClose(): void; onChange(): void }) => Dialog
