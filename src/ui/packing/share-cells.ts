/** Amounts as a row of cells: each job has its letter and colour, a dot is free. Pure. */
import { letterOf } from '../../scheduler/jobs/packing.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import type { Span } from '../compositor/scene.ts'
import { boldStyle, mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
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

export const signOf = (job: number): string => (job === WHAT_IF_JOB ? '+' : job === LOOSE_JOB ? '*' : letterOf(job))

export function jobSpan(job: number, text: string, theme: Theme): Span {
  // Not jobs of the queue: the what-if, and Ray's tasks without a group.
  if (job <= 0) {
    const colour = job === WHAT_IF_JOB ? theme.accent : theme.muted
    return { text, style: styleOf(colour, undefined, BOLD | (job === WHAT_IF_JOB ? INVERSE : 0)) }
  }
  if (theme.name === 'none') return { text, style: boldStyle(undefined) }
  return { text, style: styleOf(LETTER, FILLS[(job - 1) % FILLS.length], BOLD) }
}

/** `width` cells for an amount shared by jobs. Each job has at least one cell while there are any, and so has what is free. */
export function shareCells(
  shares: readonly { readonly job: number; readonly amount: number }[],
  whole: number,
  width: number,
  theme: Theme,
): readonly Span[] {
  const parts = shares.filter(({ amount }) => amount > 0)
  const held = parts.reduce((sum, { amount }) => sum + amount, 0)
  const size = Math.max(whole, held)
  const room = held < size ? width - 1 : width
  const spans: Span[] = []
  let sum = 0
  let used = 0
  parts.forEach(({ job, amount }, index) => {
    sum += amount
    const after = parts.length - index - 1
    const upTo = held >= size && after === 0 ? width : Math.round((sum / size) * width)
    const end = Math.max(used, Math.min(Math.max(upTo, used + 1), Math.max(used + (used < room ? 1 : 0), room - after)))
    if (end > used) spans.push(jobSpan(job, signOf(job).repeat(end - used), theme))
    used = end
  })
  if (used < width) spans.push({ text: '·'.repeat(width - used), style: mutedStyle(theme) })
  return spans
}
