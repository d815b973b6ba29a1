/** Dialogs with a line of input: one that checks and previews what is typed, and one that finds an item of many. */
import { defined } from '../../base/defined.ts'
import { sentenceOf } from '../../base/errors.ts'
import {
  type Completing,
  closeOnce,
  type DialogFactory,
  type DialogLine,
  isCancelKey,
  moreText,
  windowAround,
} from './dialog.ts'
import { PromptLine } from './prompt-line.ts'

export type PromptCheck = {
  readonly error?: string
  readonly preview?: readonly DialogLine[]
  /** What it acts on, in words: Enter does nothing where that has changed since the last key, and the dialog says so. */
  readonly acts?: string
}

/** Why Enter does not do yet what it would do now; undefined: it is what was there at the last key. */
const changedWords = ({ acts }: PromptCheck, known: string | undefined): string | undefined =>
  acts === known || acts === undefined || known === undefined
    ? undefined
    : `the hosts have changed: now ${acts}; Enter again does it`

/** What a line of the palette would do, and how to do it. */
export type LineCheck = PromptCheck & { submit(): void }

export type PromptOptions = {
  /** Prompts with the same id share a history. */
  readonly id: string
  readonly title: string
  readonly label: string
  readonly initial?: string
  /** Used when nothing is typed. */
  readonly fallback?: string
  readonly submitTitle: string
  readonly help?: readonly DialogLine[]
  /** Above the help while nothing is typed: what Enter alone does. */
  readonly emptyHelp?: readonly DialogLine[]
  /** Absent: any text is right. */
  check?(text: string): PromptCheck
  /** What Tab completes in the text up to the cursor. */
  complete?(text: string): Completing | undefined
  /** Pasted lines are joined, as of a list of hosts; absent: refused. */
  readonly joinsLines?: true
  /** Absent: every text is remembered that does not begin with a blank. */
  isRemembered?(text: string): boolean
  /** It stays open until `onSubmit` is done, and shows why that failed. */
  readonly staysOpen?: true
  /** `isOpen`: false once the user has cancelled. */
  onSubmit(text: string, isOpen: () => boolean): void | Promise<void>
}

export const promptDialog =
  (options: PromptOptions): DialogFactory =>
  ({ onClose, onChange, history, lookUp }) => {
    const { id, title, label, fallback, submitTitle, help = [], emptyHelp = [], onSubmit } = options
    const check = (text: string): PromptCheck => options.check?.(text) ?? {}
    let error: string | undefined
    let isWaiting = false
    /** Keys were typed while it waited: the rest of that line must not run in the shells behind it. */
    let isTypedAhead = false
    let isDone = false
    let isOpen = true
    let known: string | undefined
    const closed = closeOnce(onClose)
    const close = (): void => {
      isOpen = false
      closed()
    }
    const editor = new PromptLine({
      ...defined({ initial: options.initial, lookUp, joinsLines: options.joinsLines }),
      ...(options.complete === undefined ? {} : { complete: (text: string) => options.complete?.(text) }),
      history: history?.of(id) ?? [],
      onChange: () => {
        error = undefined
        known = editor.text.trim() === '' ? undefined : check(editor.text).acts
        onChange()
      },
    })
    const fail = (reason: unknown): void => {
      isWaiting = false
      isTypedAhead = false
      error = sentenceOf(reason)
      onChange()
    }
    /** Undefined: it is done or has failed. */
    const attempt = (text: string): Promise<void> | undefined => {
      if (options.staysOpen !== true) return void onSubmit(text, () => isOpen)
      try {
        const promised = onSubmit(text, () => isOpen)
        if (promised !== undefined) return promised
        close()
      } catch (reason) {
        fail(reason)
      }
      return undefined
    }
    /** One may look at the shells again before it is sent: Up brings it back. */
    const leave = (): void => {
      if (!isDone && options.isRemembered?.(editor.text) !== false) history?.add(id, editor.text, false)
      close()
    }
    const submit = (): void => {
      const { text: typed } = editor
      const text = typed.trim() === '' ? fallback : typed
      const checked = text === undefined ? undefined : check(text)
      error = checked === undefined ? 'type something, or press Esc' : (checked.error ?? changedWords(checked, known))
      known = checked?.acts
      if (text === undefined || error !== undefined) return onChange()
      if (text === typed && options.isRemembered?.(text) !== false) history?.add(id, text)
      if (options.staysOpen !== true) close()
      const promised = attempt(text)
      if (promised === undefined) return
      isWaiting = true
      onChange()
      promised.then(() => {
        if (!isTypedAhead) return close()
        isDone = true
        onChange()
      }, fail)
    }
    return {
      view() {
        const { text } = editor
        if (isDone) return { id, title, lines: typedAhead(), keys: [['Enter', 'close']] }
        const checked: PromptCheck = text.trim() === '' ? {} : check(text)
        const shown = error ?? editor.refusal ?? checked.error
        const waiting: readonly DialogLine[] = [{ text: 'working …', tone: 'muted' }]
        const preview = shown === undefined ? checked.preview : undefined
        return {
          id,
          title,
          input: { label, ...editor.line, ...defined({ placeholder: fallback, error: shown }) },
          lines: isWaiting ? waiting : (editor.choices ?? preview ?? [...(text === '' ? emptyHelp : []), ...help]),
          keys: [['Enter', submitTitle], ...editor.hints, CANCEL],
        }
      },
      key(label, event) {
        if (isCancelKey(label)) return leave()
        if (isDone && label === 'Enter') return close()
        if (isWaiting) isTypedAhead = true
        else if (label === 'Enter') submit()
        else editor.key(label, event)
      },
      paste: (text) => {
        if (isWaiting) isTypedAhead = true
        else editor.paste(text)
      },
      cancel: close,
    }
  }

/**
 * Keys were typed before it was done: the rest of that line must not run in the shells behind it. `how`: what became of the work, in
 * a sentence.
 */
export const typedAhead = (how = 'Done.'): readonly DialogLine[] => [
  { text: `${how} What you typed meanwhile reached no host.`, tone: 'warning' },
]

export type ListItem = {
  readonly id: string
  readonly label: string
  readonly detail?: string
  /** Searched, not shown: other names of it, then a text about it. */
  readonly synonyms?: string
  readonly keywords?: string
  /** At the right: the key that does the same. */
  readonly keyHint?: string
  readonly disabledReason?: string | undefined
}

export type ListOptions = {
  readonly id: string
  readonly title: string
  readonly label: string
  readonly submitTitle: string
  readonly items: readonly ListItem[]
  readonly emptyText: string
  /** The text is a command, which Enter runs, with history and completion; undefined: the text filters. */
  readLine?(text: string): LineCheck | undefined
  /** As of a prompt, for lines that are commands. */
  isRemembered?(text: string): boolean
  complete?(text: string): Completing | undefined
  onSubmit(item: ListItem): void
}

/** All items with all words, the best first; without any, those whose label has the letters in this order. */
export function filterItems(items: readonly ListItem[], needle: string): readonly ListItem[] {
  const words = needle.toLowerCase().split(/\s+/).filter(Boolean)
  if (words.length === 0) return items
  const ranked = items.flatMap((item) => {
    const rank = rankOf(item, words)
    return rank === undefined ? [] : [{ item, rank }]
  })
  if (ranked.length > 0) return ranked.toSorted((one, other) => one.rank - other.rank).map(({ item }) => item)
  const letters = words.join('')
  return items.filter(({ label }) => hasLetters(label.toLowerCase(), letters))
}

/** 0 is best; undefined: a word is missing. */
function rankOf(item: ListItem, words: readonly string[]): number | undefined {
  const label = item.label.toLowerCase()
  const synonyms = (item.synonyms ?? '').toLowerCase()
  const all = [label, synonyms, item.detail ?? '', item.keywords ?? ''].join(' ').toLowerCase()
  if (!words.every((word) => all.includes(word))) return undefined
  const phrase = words.join(' ')
  const ranks = [
    label.startsWith(phrase),
    words.every((word) => ` ${label}`.includes(` ${word}`)),
    words.every((word) => synonyms.split(' ').includes(word)),
    words.every((word) => label.includes(word)),
    words.every((word) => ` ${label} ${synonyms}`.includes(` ${word}`)),
  ]
  const at = ranks.indexOf(true)
  return at < 0 ? ranks.length : at
}

/** Both begin with the same letter: in a long text any letters could be found. */
function hasLetters(text: string, letters: string): boolean {
  if (text[0] !== letters[0]) return false
  let from = 0
  for (const letter of letters) {
    const at = text.indexOf(letter, from)
    if (at < 0) return false
    from = at + 1
  }
  return true
}

export const listDialog =
  (options: ListOptions): DialogFactory =>
  ({ onClose, onChange, history, lookUp }) => {
    const { id, title, label, items, emptyText, submitTitle, onSubmit } = options
    let selected = 0
    let firstShown = 0
    let error: string | undefined
    let known: string | undefined
    const found = (): readonly ListItem[] => filterItems(items, editor.text)
    const close = closeOnce(onClose)
    const move = (by: number): void => {
      const count = found().length
      if (count > 0) selected = (selected + by + count) % count
      error = undefined
      onChange()
    }
    const editor = new PromptLine({
      ...defined({ lookUp }),
      ...(options.complete === undefined ? {} : { complete: (text: string) => options.complete?.(text) }),
      history: history?.of(id) ?? [],
      onChange: () => {
        selected = 0
        error = undefined
        known = reading()?.acts
        onChange()
      },
    })
    const reading = (): LineCheck | undefined => options.readLine?.(editor.text)
    const submit = (): void => {
      const read = reading()
      const item = found()[selected]
      if (read ? read.error !== undefined : !item) return
      error = read && changedWords(read, known)
      known = read?.acts
      if (error !== undefined) return onChange()
      if (!read && item?.disabledReason !== undefined) {
        error = item.disabledReason
        return onChange()
      }
      if (read) remember()
      close()
      if (read) read.submit()
      else if (item) onSubmit(item)
    }
    const remember = (isSaved?: boolean): void => {
      if (options.isRemembered?.(editor.text) !== false) history?.add(id, editor.text, isSaved)
    }
    const shownItems = (rows: number): readonly DialogLine[] => {
      const all = found()
      const none = items.length === 0 ? emptyText : `nothing matches “${editor.text.trim()}”`
      if (all.length === 0) return [{ text: none, tone: 'muted' }]
      const room = Math.max(3, rows - 10)
      const isLong = all.length > room
      const height = isLong ? room - 1 : room
      const start = windowAround(selected, all.length, height)
      firstShown = start
      const shown = all.slice(start, start + height).map((item, index) => ({
        text: [item.detail ? `${item.label}  ${item.detail}` : item.label, item.disabledReason]
          .filter(Boolean)
          .join(' · '),
        isSelected: start + index === selected,
        ...(item.disabledReason === undefined ? {} : { tone: 'muted' as const }),
        ...defined({ right: item.keyHint || undefined }),
      }))
      return isLong ? [...shown, { text: moreText(start, all.length - start - height), tone: 'muted' }] : shown
    }
    return {
      view({ rows }) {
        const read = reading()
        const shown = editor.refusal ?? error ?? read?.error
        const input = { label, ...editor.line, ...defined({ error: shown }) }
        if (read) {
          const lines = editor.choices ?? read.preview ?? []
          return { id, title, input, lines, keys: [['Enter', submitTitle], ...editor.hints, CANCEL] }
        }
        return { id, title, input, lines: shownItems(rows), keys: [['↑↓', 'select'], ['Enter', submitTitle], CANCEL] }
      },
      key(label, event) {
        if (isCancelKey(label)) {
          if (reading() !== undefined) remember(false)
          return void close()
        }
        if (label === 'Enter') return submit()
        if (reading() !== undefined) return void editor.key(label, event)
        if (label === 'Down' || label === 'Ctrl-n' || label === 'Tab') return move(1)
        if (label === 'Up' || label === 'Ctrl-p' || label === 'Shift-Tab') return move(-1)
        if (label === 'PageDown') return move(Math.min(10, Math.max(1, found().length - 1 - selected)))
        if (label === 'PageUp') return move(-Math.min(10, Math.max(1, selected)))
        editor.key(label, event)
      },
      pick(at) {
        const row = firstShown + at
        if (reading() !== undefined || row >= found().length) return
        if (row === selected) return submit()
        move(row - selected)
      },
      paste: (text) => editor.paste(text),
      cancel: close,
    }
  }

const CANCEL = ['Esc', 'cancel'] as const
