/** How a table is filtered and sorted by the user, the same in every tab. Pure: a page declares columns and shows the rows that are left. */
import { getOrMake } from '../../base/collections.ts'
import { naturalOrder } from '../../base/natural-order.ts'
import { printable } from '../../base/printable.ts'
import { clip, textWidth } from '../../base/text-width.ts'
import { matchesGlob } from '../../inventory/host-name.ts'
import { expandHostSet } from '../../inventory/host-set.ts'
import { boldStyle, mutedStyle, type Span, type Theme } from '../compositor/scene.ts'
import { editLine, emptyLine, insertText, type Line } from '../dialogs/dialog.ts'
import type { KeyEvent } from '../keys/decode-input.ts'
import { activeCommandOf, type KeyEntry, keyTable } from '../keys/key-table.ts'

export type TableColumn<R> = {
  readonly title: string
  text(row: R): string
  /** What it is sorted by, if not by its text; undefined sorts last. */
  order?(row: R): number | string | undefined
  /** The largest comes first. */
  readonly isDescending?: boolean
  /** Of times and amounts: a filter finds a whole number alone only as `title:12`, as it may be anything. */
  readonly isAmount?: boolean
  /** A filter searches it, but it is not shown, so the table is not sorted by it. */
  readonly isHidden?: boolean
  /** Also finds the row by a word; a whole number alone is found only by this. */
  find?(row: R, word: string): boolean
}

/** The table that has the keys. */
export type TableFrame = {
  /** Of its pane. */
  readonly id: string
  /** The titles of the columns that it can be sorted by. */
  readonly columns: readonly string[]
  /** The column that its own order follows, if there is one. */
  readonly sorted?: string | undefined
}

export type TableView = {
  readonly filter: Line
  /** The title of a column; undefined: the table's own order. */
  readonly sort: string | undefined
  readonly isReversed: boolean
  /** The filter is being typed. */
  readonly isTyping: boolean
}

/** By the id of the table. */
export type TableViews = ReadonlyMap<string, Omit<TableView, 'isTyping'>>

export const FIRST_TABLE_VIEW: TableView = { filter: emptyLine, sort: undefined, isReversed: false, isTyping: false }

type Now = { readonly frame: TableFrame; readonly view: TableView }

const isSortable = ({ frame }: Now): boolean => frame.columns.length > 1

const keys = keyTable<Now>()(
  [
    'table-filter',
    '/',
    'filter',
    'Tables: show only rows that match what you type: words (also in commands), !word excludes what is shown, column:word searches one column, m[1-3] finds hosts. A whole number alone finds a time or an amount only as column:5. Enter keeps the filter, Esc clears it and keeps the selected row.',
  ],
  ['table-clear', 'Esc', 'clear filter', 'Tables: clear the filter.', ({ view }) => view.filter.text !== ''],
  [
    'table-sort',
    '>',
    'sort',
    'Tables: sort by the next column. The Log stays in the order of time, and hosts and waiting jobs in Packing in their own.',
    isSortable,
  ],
  ['table-sort-before', '<', '', 'Tables: sort by the previous column.', isSortable],
  ['table-reverse', 'I', '', 'Tables: reverse the order.'],
)

/** For the table of keys of a tab: first the filter and how it is cleared, then the order. */
export const tableKeys = <S>(
  frameOf: (state: S) => TableFrame | undefined,
  viewOf: (state: S, id: string) => TableView,
): readonly KeyEntry<S>[] =>
  keys.map(({ isActive, ...entry }) => ({
    ...entry,
    isActive: (state: S) => {
      const frame = frameOf(state)
      return frame !== undefined && isActive?.({ frame, view: viewOf(state, frame.id) }) !== false
    },
  }))

/** Undefined: the key is not one of a table, or it has nothing to do now. */
export function tableAfterKey(view: TableView, frame: TableFrame, label: string): TableView | undefined {
  switch (activeCommandOf(keys, label, { frame, view })) {
    case 'table-clear':
      return { ...view, filter: emptyLine }
    case 'table-filter':
      return { ...view, isTyping: true, filter: { ...view.filter, cursor: view.filter.text.length } }
    case 'table-sort':
      return { ...view, sort: neighbour(view, frame, 1), isReversed: false }
    case 'table-sort-before':
      return { ...view, sort: neighbour(view, frame, -1), isReversed: false }
    case 'table-reverse':
      return { ...view, isReversed: !view.isReversed }
    default:
      return undefined
  }
}

/** The column beside the sorted one; a table whose own order follows no column has that order among them. */
function neighbour({ sort }: TableView, { columns, sorted }: TableFrame, by: 1 | -1): string | undefined {
  const orders: readonly (string | undefined)[] = sorted === undefined ? [undefined, ...columns] : columns
  const at = Math.max(0, orders.indexOf(sort ?? sorted))
  return orders[(at + by + orders.length) % orders.length]
}

/** While the filter is typed. Undefined: the key is not the filter's, such as an arrow that moves in the table. */
export function filterAfterKey(view: TableView, label: string, event: KeyEvent): TableView | undefined {
  if (label === 'Enter') return { ...view, isTyping: false }
  if (label === 'Esc' || label === 'Ctrl-c' || label === 'Ctrl-g')
    return { ...view, isTyping: false, filter: emptyLine }
  if (label === 'Backspace' && view.filter.text === '') return { ...view, isTyping: false }
  const filter = editLine(view.filter, event)
  return filter && { ...view, filter: bounded(filter) }
}

export const pastedFilter = (view: TableView, text: string): TableView => ({
  ...view,
  filter: bounded(insertText(view.filter, text.trim().slice(0, MOST_FILTER))),
})

const bounded = ({ text, cursor }: Line): Line => ({
  text: text.slice(0, MOST_FILTER),
  cursor: Math.min(cursor, MOST_FILTER),
})

const MOST_FILTER = 200

type Shown = { readonly key: string; readonly columns: unknown; readonly rows: readonly unknown[] }
/** Thousands of rows are filtered and sorted once, not for each drawing, if rows and columns are the same objects. */
const known = new WeakMap<readonly unknown[], Shown>()

/** The rows that the filter leaves, in the order that the user chose. */
export function shownRows<R>(
  rows: readonly R[],
  columns: readonly TableColumn<R>[],
  { filter, sort, isReversed }: TableView,
): readonly R[] {
  if (filter.text === '' && sort === undefined && !isReversed) return rows
  const key = JSON.stringify([filter.text, sort, isReversed])
  const last = known.get(rows)
  // They are rows of this table.
  if (last?.key === key && last.columns === columns) return last.rows as readonly R[]
  const found = sortRows(filterRows(rows, columns, filter.text), columns, sort, isReversed)
  known.set(rows, { key, columns, rows: found })
  return found
}

type Term<R> = { readonly isExcluded: boolean; readonly column: TableColumn<R> | undefined; readonly word: string }

export function filterRows<R>(rows: readonly R[], columns: readonly TableColumn<R>[], text: string): readonly R[] {
  const terms = termsOf(text, columns)
  return terms.length === 0
    ? rows
    : rows.filter((row) => terms.every((term) => term.isExcluded !== matches(row, term, columns)))
}

/** `word`, `!word`, `column:word` and `column=word`; a word that names no column stays whole. */
function termsOf<R>(text: string, columns: readonly TableColumn<R>[]): readonly Term<R>[] {
  return text.split(/\s+/).flatMap((typed) => {
    const isExcluded = typed.startsWith('!')
    const whole = isExcluded ? typed.slice(1) : typed
    const [, title = '', rest = ''] = /^([^:=]+)[:=](.*)$/.exec(whole) ?? []
    const column = title === '' ? undefined : columnNamed(title, columns)
    const word = column === undefined ? whole : rest
    return word === '' ? [] : [{ isExcluded, column, word }]
  })
}

/** The column with this title, or the first one whose title begins with it. */
function columnNamed<R>(name: string, columns: readonly TableColumn<R>[]): TableColumn<R> | undefined {
  const wanted = name.toLowerCase()
  const titled = (test: (title: string) => boolean) => columns.find(({ title }) => test(title.toLowerCase()))
  return titled((title) => title === wanted) ?? titled((title) => title.startsWith(wanted))
}

function matches<R>(row: R, { column, word, isExcluded }: Term<R>, columns: readonly TableColumn<R>[]): boolean {
  const isNumber = /^\d+$/.test(word)
  // `!word` does not leave out a row for text that the row does not show.
  const isSearched = ({ isAmount, isHidden }: TableColumn<R>) => !(isNumber && isAmount) && !(isExcluded && isHidden)
  const searched = column === undefined ? columns.filter(isSearched) : [column]
  return searched.some(
    ({ find, text }) => find?.(row, word) === true || (!(isNumber && find) && hasWord(text(row), word)),
  )
}

/** For a column of hosts, also folded ones or those of an engine (`Slurm n[1-2]`): a part of a name, or a host set with one of them (`m[1-2]`, `m1,m3`, `gpu*`, `m?`). */
export const findHost =
  <R>(hostsOf: (row: R) => string) =>
  (row: R, word: string): boolean => {
    const text = hostsOf(row)
    if (hasWord(text, word)) return true
    const isSet = /[[,*?]/.test(word)
    return namesIn(text).some((name) => (isSet ? hostsOfWord(word).has(name) : hasWord(name, word)))
  }

const MOST_KNOWN = 1000
/** Of folded hosts, which are asked for with each key of a filter. */
const knownNames = new Map<string, readonly string[]>()

function namesIn(text: string): readonly string[] {
  if (!/[[,]/.test(text)) return [text]
  if (knownNames.size > MOST_KNOWN) knownNames.clear()
  return getOrMake(knownNames, text, () => text.split(' ').flatMap((part) => expanded(part) ?? [part]))
}

let lastWord: { readonly word: string; readonly hosts: { has(host: string): boolean } } | undefined

/** Of the word that is typed, which is asked of each row. */
function hostsOfWord(word: string): { has(host: string): boolean } {
  if (lastWord?.word !== word) lastWord = { word, hosts: readHosts(word) }
  return lastWord.hosts
}

function readHosts(word: string): { has(host: string): boolean } {
  if (/[*?]/.test(word)) {
    const globs = word.split(',')
    return { has: (host) => globs.some((glob) => matchesGlob(glob, host)) }
  }
  // Half of it may be typed.
  return new Set(expanded(word))
}

function expanded(text: string): readonly string[] | undefined {
  try {
    return expandHostSet(text)
  } catch {
    return undefined
  }
}

/** For a column of numbers, also ranges of them. */
export const isNumberWithin = (word: string, first: number, last: number): boolean =>
  /^\d+$/.test(word) && Number(word) >= first && Number(word) <= last

/** Ignores case unless the word has a capital letter. */
export const hasWord = (text: string, word: string): boolean =>
  word === word.toLowerCase() ? text.toLowerCase().includes(word) : text.includes(word)

function sortRows<R>(
  rows: readonly R[],
  columns: readonly TableColumn<R>[],
  sort: string | undefined,
  isReversed: boolean,
): readonly R[] {
  const column = columns.find(({ title }) => title === sort)
  if (column === undefined) return isReversed ? rows.toReversed() : rows
  const direction = isReversed === (column.isDescending === true) ? 1 : -1
  const keyed = rows.map((row) => ({ row, value: column.order === undefined ? column.text(row) : column.order(row) }))
  return keyed.toSorted((one, other) => compare(one.value, other.value, direction)).map(({ row }) => row)
}

type Value = number | string | undefined

/** Numbers before texts; what has no value is last in both directions. */
function compare(one: Value, other: Value, direction: 1 | -1): number {
  const rank = (value: Value) => (value === undefined || Number.isNaN(value) ? 2 : typeof value === 'number' ? 0 : 1)
  const byKind = rank(one) - rank(other)
  if (byKind !== 0) return rank(one) === 2 || rank(other) === 2 ? byKind : byKind * direction
  if (typeof one === 'number' && typeof other === 'number') return (one - other || 0) * direction
  return typeof one === 'string' && typeof other === 'string' ? naturalOrder(one, other) * direction : 0
}

type Title = Pick<TableColumn<never>, 'title' | 'isDescending'>

const SORT_MARK = /[▴▾]/

export const hasSortMark = (row: readonly Span[]): boolean => row.some(({ text }) => SORT_MARK.test(text))

/** Behind the title of the column that the table is sorted by: `▾` if the largest comes first. */
export function sortMark({ sort, isReversed }: TableView, { title, isDescending = false }: Title, sorted?: string) {
  return title === (sort ?? sorted) ? (isReversed === isDescending ? '▴' : '▾') : ''
}

/** For the title of a table that does not show the column it is sorted by; empty in its own order. */
export function orderText(view: TableView, columns: readonly Title[], sorted?: string): string {
  const { sort = sorted, isReversed } = view
  if (sort === sorted && !isReversed) return ''
  const column = columns.find(({ title }) => title === sort)
  if (column === undefined) return sort === undefined ? ' reversed' : ''
  return ` by ${column.title}${sortMark(view, column, sorted)}`
}

export type FilteredTable = {
  readonly view: TableView
  /** One of its rows: `job`. */
  readonly noun: string
  /** How many rows there are without the filter. */
  readonly all: number
  /** How many the filter leaves, if rows of the pane are not rows of the table. */
  readonly shown?: number
  /** Its `orderText`. The title shows it where the head has no mark. */
  readonly order?: string
}

const LEAST_FILTER = 8

/** The filter in the frame of the pane: `/fail !m2▏ 3 of 40`; the part round the cursor where it is too long. */
export function filterSpans(
  { view: { filter, isTyping }, all }: FilteredTable,
  shown: number,
  room: number,
  theme: Theme,
): readonly Span[] {
  if (filter.text === '' && !isTyping) return []
  const counts = ` ${shown} of ${all} `
  const [before, after] = [filter.text.slice(0, filter.cursor), filter.text.slice(filter.cursor)].map(printable)
  const text = ` /${before}${isTyping ? '▏' : ''}${after} `
  const width = Math.max(LEAST_FILTER, room - textWidth(counts))
  return [
    { text: textWidth(text) <= width ? text : tail(text, width), style: boldStyle(theme.accent) },
    { text: counts, style: mutedStyle(theme) },
  ]
}

function tail(text: string, width: number): string {
  const characters = [...text]
  while (characters.length > 0 && textWidth(characters.join('')) > width - 3) characters.shift()
  return ` /…${characters.join('')}`
}

/** In place of the rows when the filter leaves none. */
export const noMatchText = ({ filter }: TableView, noun: string): string =>
  `no ${noun} matches “${clip(printable(filter.text.trim()), 40)}”`

export function noMatch({ view, noun }: FilteredTable, theme: Theme): readonly Span[] {
  return [
    { text: ` ${noMatchText(view, noun)}`, style: boldStyle(theme.warning) },
    { text: ' · Esc clears the filter', style: mutedStyle(theme) },
  ]
}
