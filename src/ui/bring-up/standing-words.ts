/** How a cell of the table is told: a sign, words and a colour; the sign and the words alone suffice. */
import type { Standing } from '../../ops/kernel/standing.ts'
import type { Theme, ThemeColour } from '../theme/theme.ts'
import type { Cell } from './bring-up-view.ts'

/** `short`: where the words have no room. */
export type CellWords = {
  readonly sign: string
  readonly words: string
  readonly short?: string
  readonly colour: ThemeColour
}

/** The signs are those of the plan: `+` would be added, `~` changed, `!` stands in the way. */
const STANDINGS: Readonly<
  Record<Standing, readonly [string, string, 'ok' | 'warning' | 'danger' | 'accent' | 'muted', string?]>
> = {
  good: ['✓', 'good', 'ok'],
  missing: ['+', 'missing', 'accent'],
  differs: ['~', 'differs', 'warning'],
  failed: ['✗', 'failed', 'danger'],
  blocked: ['!', 'blocked', 'danger'],
  away: ['?', 'no answer', 'danger', 'away'],
  unasked: ['·', 'not asked', 'muted', 'unasked'],
}

export function standingWords(standing: Standing, theme: Theme): CellWords {
  const [sign, words, colour, short = words] = STANDINGS[standing]
  return { sign, words, short, colour: theme[colour] }
}

export function cellWords(cell: Cell, theme: Theme): CellWords {
  switch (cell.kind) {
    case 'undeclared':
      return { sign: '-', words: 'not declared', short: '', colour: theme.muted }
    case 'unknown':
      return { sign: '?', words: 'unknown', colour: theme.muted }
    case 'changing':
      return {
        sign: cell.isBad ? '✗' : '…',
        words: `${cell.isBad ? 'failed' : 'changing'} ${cell.ended}/${cell.steps}`,
        short: `${cell.ended}/${cell.steps}`,
        colour: cell.isBad ? theme.danger : theme.warning,
      }
    case 'standing':
      return standingWords(cell.standing.standing, theme)
  }
}

/** `12 s`, `3 min`, `2 h`: how long ago. */
export function formatAge(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 60) return `${seconds} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`
}
