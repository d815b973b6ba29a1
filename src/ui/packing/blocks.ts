/** Blocks of the Packing tab: the job on a device, with its name, its use and the last ten minutes as far as there is room. Pure. */
import { clip, padEnd } from '../../base/text-width.ts'
import { letterOf } from '../../scheduler/jobs/packing.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import { mutedStyle, type Span, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import type { Row } from '../rows/rows-pane.ts'
import type { PastCell } from './history.ts'
import { LOOSE_JOB } from './ray-picture.ts'
import { WHAT_IF_JOB } from './what-if.ts'

/** Distinct hues on which dark letters are readable. */
const FILLS = [
  '#7fb4ff',
  '#ffb454',
  '#8fd16f',
  '#e58fd8',
  '#ffd866',
  '#5fd3c8',
  '#ff8f87',
  '#b7a3ff',
  '#c8d96a',
  '#d9a679',
  '#8fd6f7',
  '#f2a9c4',
]
const LETTER = '#14161a'
const CHOSEN = { dark: '#ffffff', light: '#14161a' } as const

/** By the number of a job. */
export type Letters = ReadonlyMap<number, string>

export const signOf = (job: number, letters?: Letters): string =>
  job === WHAT_IF_JOB ? '+' : job === LOOSE_JOB ? '*' : (letters?.get(job) ?? letterOf(job))

/** `group`: jobs of one number have one colour; the job's own number unless given. */
export function jobStyle(job: number, theme: Theme, group = job): Style {
  // Not jobs of the queue: the what-if, and what an engine runs for others.
  if (job <= 0 && group === job) {
    const colour = job === WHAT_IF_JOB ? theme.accent : theme.muted
    return styleOf(colour, undefined, BOLD | (job === WHAT_IF_JOB ? INVERSE : 0))
  }
  if (theme.name === 'none') return styleOf(undefined, undefined, BOLD)
  return styleOf(LETTER, FILLS[(group - 1) % FILLS.length], BOLD)
}

export const jobSpan = (job: number, text: string, theme: Theme, group?: number): Span => ({
  text,
  style: jobStyle(job, theme, group),
})

/** The colour group of a job: its own, or one for each user that stays the same. */
export function colourGroup({ job, user }: { readonly job: number; readonly user: string }, isByUser = false): number {
  if (!isByUser || user === '' || job <= 0) return job
  let hash = 0
  for (const character of user) hash = (hash * 31 + (character.codePointAt(0) ?? 0)) % 1_000_003
  return (hash % FILLS.length) + 1
}

export type JobAmount = { readonly job: number; readonly amount: number }

/** Less than this share of a block is worth no column where it would fill less than half of one. */
const LEAST_FREE = 0.05

/**
 * How many of `width` cells each job has, and what is free. Each job has at least one while there are any; then so has what is free,
 * unless it is next to nothing.
 */
function shareWidths(shares: readonly JobAmount[], whole: number, width: number) {
  const parts = shares.filter(({ amount }) => amount > 0)
  const held = parts.reduce((sum, { amount }) => sum + amount, 0)
  const size = Math.max(whole, held)
  const free = (size - held) / size
  const showsFree = parts.length < width && (free >= LEAST_FREE || free * width >= 0.5)
  const room = showsFree ? width - 1 : width
  const widths: { readonly job: number | undefined; readonly width: number }[] = []
  let sum = 0
  let used = 0
  parts.forEach(({ job, amount }, index) => {
    sum += amount
    const after = parts.length - index - 1
    const upTo = !showsFree && after === 0 ? width : Math.round((sum / size) * width)
    const end = Math.max(used, Math.min(Math.max(upTo, used + 1), Math.max(used + (used < room ? 1 : 0), room - after)))
    if (end > used) widths.push({ job, width: end - used })
    used = end
  })
  if (used < width) widths.push({ job: undefined, width: width - used })
  return widths
}

export type BlockStyle = {
  readonly theme: Theme
  readonly letters?: Letters | undefined
  /** The colour group of a job. */
  groupOf(job: number): number
  /** Lines about a job, the most important first; the first one is behind its letter. */
  linesOf(job: number): readonly string[]
  readonly isChosen: boolean
  /** In the first row of a block that is free. */
  readonly freeText?: string
  /** Its host takes no jobs, so that nothing of it is free. */
  readonly isDown?: boolean
  /** No job holds the block, but it is in use: lines about that. */
  readonly takenLines?: readonly string[] | undefined
}

/** The fewest columns for a letter with a name. */
const NAME_COLUMNS = 6

/** This many rows of this many columns, shared by jobs from left to right. */
export function blockRows(
  shares: readonly JobAmount[],
  whole: number,
  { width, height }: { readonly width: number; readonly height: number },
  block: BlockStyle,
): readonly Row[] {
  const widths = shareWidths(shares, whole, width)
  const texts = widths.map((part) => (part.job === undefined ? [] : partTexts(part.job, part.width, height, block)))
  return Array.from(
    { length: height },
    (_, row): Row =>
      widths.map(({ job, width: columns }, index) => {
        if (job === undefined && block.takenLines !== undefined)
          return { text: takenText(columns, block.takenLines[row] ?? ''), style: takenStyle(block) }
        if (job === undefined)
          return {
            text: freeText(columns, row, height, block, widths.length === 1),
            style: freeStyle(block),
          }
        return { text: texts[index]?.[row] ?? '', style: heldStyle(job, block) }
      }),
  )
}

/** Dots, or crosses on a host that takes no jobs; only some of them where there are many. */
function freeText(columns: number, row: number, height: number, block: BlockStyle, isAlone: boolean): string {
  const sign = block.isDown === true ? '×' : '·'
  if (height === 1) return sign.repeat(columns)
  const signs = (row % 2 === 0 ? `${sign}   ` : `  ${sign} `).repeat(Math.ceil(columns / 4)).slice(0, columns)
  const label = isAlone && row === 0 ? (block.freeText ?? '') : ''
  return label === '' || label.length + 2 > columns ? signs : `${label} ${signs.slice(label.length + 1)}`
}

const takenText = (columns: number, line: string): string => {
  const text = line === '' ? '' : clip(`${line} `, columns)
  return text + TAKEN.repeat(columns - text.length)
}
const TAKEN = '▒'

function takenStyle(block: BlockStyle): Style {
  return block.isChosen ? freeStyle(block) : styleOf(block.theme.danger)
}

function freeStyle({ theme, isChosen }: BlockStyle): Style {
  if (!isChosen) return mutedStyle(theme)
  return theme.name === 'none' ? styleOf(undefined, undefined, INVERSE) : styleOf(LETTER, CHOSEN_FREE[theme.name])
}
const CHOSEN_FREE = { dark: '#d5dae3', light: '#9aa3b2' } as const

function heldStyle(job: number, { theme, groupOf, isChosen }: BlockStyle): Style {
  const plain = jobStyle(job, theme, groupOf(job))
  if (!isChosen) return plain
  if (theme.name === 'none') return { ...plain, attributes: plain.attributes ^ INVERSE }
  return styleOf(theme.name === 'light' ? '#ffffff' : LETTER, CHOSEN[theme.name], BOLD)
}

/** The rows of one job: letters alone, or its lines. Without colours the letters fill the rows. */
function partTexts(
  job: number,
  columns: number,
  rows: number,
  { theme, linesOf, letters }: BlockStyle,
): readonly string[] {
  const sign = signOf(job, letters)
  const fill = theme.name === 'none' ? sign : ' '
  const own = columns < NAME_COLUMNS ? [] : linesOf(job)
  return Array.from({ length: rows }, (_, row) => {
    if (row === 0 && (own[0] ?? '') === '') return sign.repeat(columns)
    const text = row === 0 ? `${sign} ${own[0]}` : (own[row] ?? '')
    if (text === '') return fill.repeat(columns)
    const indented = row === 0 || theme.name === 'none' ? text : `  ${text}`
    const shown = clip(indented, columns)
    return fill === ' '
      ? padEnd(shown, columns)
      : `${shown} `.padEnd(columns, fill).slice(0, Math.max(columns, shown.length))
  })
}

const LEVELS = ' ▁▂▃▄▅▆▇█'

/** What the strip of ten minutes shows, and how; also its legend. */
export const PAST_WORDS = {
  used: ['▄', 'used'],
  idle: ['▁', 'held, idle'],
  held: ['─', 'held, use unknown'],
  free: ['·', 'free'],
  taken: [TAKEN, 'used without a job'],
} as const

export function pastStyle(past: PastCell['past'], theme: Theme): Style {
  if (past === 'used') return styleOf(theme.ok)
  if (past === 'idle') return styleOf(theme.warning)
  if (past === 'taken') return styleOf(theme.danger)
  return past === 'held' ? styleOf(theme.text) : mutedStyle(theme)
}

/** The last ten minutes: the more busy, the higher. */
export function pastRows(cells: readonly PastCell[], height: number, theme: Theme): readonly Row[] {
  return Array.from({ length: height }, (_, row): Row => {
    const isLast = row === height - 1
    const spans: Span[] = []
    let [from, text] = [cells[0]?.past, '']
    for (const cell of cells) {
      if (cell.past !== from) {
        if (from !== undefined) spans.push({ text, style: pastStyle(from, theme) })
        ;[from, text] = [cell.past, '']
      }
      text += pastSign(cell, height - 1 - row, height, isLast)
    }
    if (from !== undefined) spans.push({ text, style: pastStyle(from, theme) })
    return spans
  })
}

function pastSign({ past, busy }: PastCell, above: number, height: number, isLast: boolean): string {
  if (past === 'used' || (past === 'taken' && height > 1)) {
    const eighths = Math.max(1, Math.round(busy * height * 8)) - above * 8
    const sign = LEVELS[Math.max(0, Math.min(8, eighths))] ?? ' '
    return past === 'taken' && sign !== ' ' ? TAKEN : sign
  }
  return isLast && past !== 'unknown' ? PAST_WORDS[past][0] : ' '
}
