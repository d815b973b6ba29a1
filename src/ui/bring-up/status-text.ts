/** A cell of the table as a sign, a word and a colour; each of the first two is enough. Pure. */
import type { StatusWord } from '../../ops/kernel/bring-up.ts'
import type { Theme, ThemeColour } from '../theme/theme.ts'
import type { Cell } from './bring-up-view.ts'

/** `short`: for narrow cells. */
type CellText = {
  readonly sign: string
  readonly text: string
  readonly short?: string
  readonly colour: ThemeColour
}

/** The signs are those of a plan: `+` adds, `~` changes, `!` is blocked. */
const STATUSES: Readonly<
  Record<StatusWord, readonly [string, string, 'ok' | 'warning' | 'danger' | 'accent' | 'muted', string?]>
> = {
  good: ['✓', 'good', 'ok'],
  missing: ['+', 'missing', 'accent'],
  differs: ['~', 'differs', 'warning'],
  failed: ['✗', 'failed', 'danger'],
  blocked: ['!', 'blocked', 'danger'],
  away: ['?', 'no answer', 'danger', 'away'],
  unasked: ['·', 'not checked', 'muted', 'skipped'],
}

export function statusText(status: StatusWord, theme: Theme): CellText {
  const [sign, text, colour, short = text] = STATUSES[status]
  return { sign, text, short, colour: theme[colour] }
}

export function cellText(cell: Cell, theme: Theme): CellText {
  switch (cell.kind) {
    case 'undeclared':
      return { sign: '-', text: 'not declared', short: '', colour: theme.muted }
    case 'unknown':
      return { sign: '?', text: 'unknown', colour: theme.muted }
    case 'changing': {
      const steps = `${cell.ended}/${cell.steps}`
      if (cell.isBad) return { sign: '✗', text: `failed ${steps}`, short: steps, colour: theme.danger }
      return { sign: '…', text: `changing ${steps}`, short: steps, colour: theme.warning }
    }
    case 'status':
      return statusText(cell.status.status, theme)
  }
}
