/** What stands beside the table: a cell's details, the plan, or the steps as they happen. Pure. */
import { printable } from '../../base/printable.ts'
import { wrapText } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { hostsWithSteps } from '../../ops/kernel/change.ts'
import { formatDuration } from '../../ops/kernel/finding.ts'
import { countPlan, type LineKind, planLines } from '../../ops/kernel/format-plan.ts'
import { BOLD } from '../../terminal/cells.ts'
import type { Style } from '../compositor/scene.ts'
import type { Row, RowDocument } from '../rows/row-document.ts'
import { mutedStyle, styleOf, type Theme, type ThemeColour } from '../theme/theme.ts'
import { type BringUpView, type ChangeView, cellKey, cellOf, type StepView, stepsOf, toneOf } from './bring-up-view.ts'
import { cellWords, formatAge } from './standing-words.ts'
import { phaseWords, type TableLook } from './table-document.ts'

/** Rows are added one after the other; long text goes on in the next row, a little further in. */
class Writer {
  readonly rows: Row[] = []
  readonly #look: TableLook

  constructor(look: TableLook) {
    this.#look = look
  }

  say(text: string, style: Style, indent = 1): this {
    const room = Math.max(8, this.#look.columns - indent)
    const lines = wrapText(text, room, '  ')
    this.rows.push(...lines.map((line) => [{ text: ' '.repeat(indent) + line, style }]))
    return this
  }

  blank(): this {
    this.rows.push([])
    return this
  }

  document(head: readonly Row[] = []): RowDocument {
    return { head, length: this.rows.length, row: (index) => this.rows[index] ?? [] }
  }
}

const bold = (colour: ThemeColour): Style => styleOf(colour, undefined, BOLD)

export function sideDocument(view: BringUpView, look: TableLook): RowDocument {
  const { side, change } = view
  if (side === 'plan' && change !== undefined) return planDocument(change, look)
  if (side === 'steps' && change !== undefined) return stepsDocument(change, view.isWhole, look)
  return detailsDocument(view, look)
}

function detailsDocument(view: BringUpView, look: TableLook): RowDocument {
  const { theme, nowMs } = look
  const { host, area } = view.cursor
  const out = new Writer(look)
  const column = view.columns?.find(({ name }) => name === area)
  if (host === undefined || column === undefined) return out.document()
  const cell = cellOf(view, column, host)
  const { sign, words, colour } = cellWords(cell, theme)
  out.say(`${host} · ${column.name}`, bold(theme.accent)).say(`${sign} ${words}`, bold(colour))
  if (cell.kind === 'undeclared') {
    const what = column.hosts === undefined ? column.name : `${column.name} for ${host}`
    return out.blank().say(`hosts.yaml declares no ${what}.`, mutedStyle(theme)).document()
  }
  if (cell.kind === 'unknown') return out.blank().say('It was not asked yet: r asks.', mutedStyle(theme)).document()
  const standing = view.standings.get(cellKey(column.name, host))
  if (standing?.atMs !== undefined) out.say(`asked ${formatAge(nowMs - standing.atMs)} ago`, mutedStyle(theme))
  out.blank()
  if (standing?.standing === 'unasked') {
    const how = 'Press + after the leader to add it, then r here.'
    out.say(`It is not on the console, so it was not asked. ${how}`, mutedStyle(theme))
  }
  for (const because of standing?.because ?? []) out.say(`· ${printable(because)}`, styleOf(theme.text), 2)
  for (const { gravity, cause, detail, hint, mend } of standing?.findings ?? []) {
    const tone = gravity === 'blocker' ? theme.danger : gravity === 'risk' ? theme.warning : theme.text
    out.blank().say(`${gravity}: ${printable(cause)}`, bold(tone))
    if (detail !== undefined) out.say(printable(detail), mutedStyle(theme), 3)
    if (hint !== undefined) out.say(printable(hint), styleOf(theme.text), 3)
    if (mend !== undefined) {
      const where = mend.where === 'here' ? 'here' : `on ${host}`
      out.say(`mend ${where}: ${printable(mend.command)}`, styleOf(theme.ok), 3)
    }
  }
  const steps = stepsOf(view.change, column.name, host)
  if (steps.length > 0) {
    out.blank().say('the last change', mutedStyle(theme))
    for (const step of steps) writeStep(out, step, true, look)
  }
  const journal = view.journal.get(cellKey(column.name, host)) ?? []
  if (journal.length > 0) out.blank().say('done here before, the newest first', mutedStyle(theme))
  for (const { time, who, title, result, reason } of journal) {
    const isBad = result === 'failed' || result === 'cancelled'
    out.say(
      printable(`${localTime(time)}  ${result}: ${title}  (${who})`),
      styleOf(isBad ? theme.danger : theme.text),
      2,
    )
    if (reason !== undefined) out.say(printable(reason), mutedStyle(theme), 4)
  }
  return out.document()
}

function localTime(iso: string): string {
  const date = new Date(iso)
  return `${date.toLocaleDateString('sv-SE')} ${date.toTimeString().slice(0, 5)}`
}

function planDocument({ plan, phase, order, isAgain, said }: ChangeView, look: TableLook): RowDocument {
  const { theme } = look
  const head = new Writer(look)
  const body = new Writer(look)
  const what = `${order.direction === 'up' ? 'Bring up' : 'Take down'} ${order.areas.join(', ')} on ${foldHostSet(order.hosts)}`
  head.say(what, bold(theme.accent))
  if (plan === undefined) return body.document(head.say('asking the hosts …', bold(theme.warning)).rows)
  const { steps, blocked } = countPlan(plan)
  if (isAgain) head.say('The hosts have changed meanwhile; this is the plan now.', bold(theme.warning))
  if (steps === 0 && blocked > 0) head.say('Nothing can be done.', bold(theme.danger))
  else if (steps === 0) head.say('Nothing is to be done.', bold(theme.ok))
  else head.say(`${count(steps, 'step')} on ${foldHostSet(hostsWithSteps(plan))}`, bold(theme.text))
  if (blocked > 0) head.say(`${count(blocked, 'operation')} blocked, marked with !`, bold(theme.danger))
  if (phase === 'ask') head.say('y does it, Esc leaves everything as it is', bold(theme.warning))
  for (const text of said) head.say(text, bold(theme.danger))
  const lines = planLines(plan, foldHostSet)
  // What is to be done comes first in the eye: what is as wanted already is muted.
  for (const { kind, text } of lines) {
    if (kind === 'head') body.blank()
    const indent = 1 + (/^ */.exec(text)?.[0].length ?? 0)
    body.say(text.trimStart(), styleOfLine(kind, text, theme), indent)
  }
  return body.document(head.rows)
}

const count = (number: number, word: string): string => `${number} ${word}${number === 1 ? '' : 's'}`

function styleOfLine(kind: LineKind, text: string, theme: Theme): Style {
  switch (kind) {
    case 'head':
      return bold(theme.text)
    case '+':
      return styleOf(theme.ok)
    case '-':
      return styleOf(theme.danger)
    case '~':
      return styleOf(theme.warning)
    case '!':
      return bold(theme.danger)
    case 'plain':
      return /^ {2}nothing to do|^ {4}/.test(text) ? mutedStyle(theme) : styleOf(theme.text)
  }
}

const TONES = ['bad', 'running', 'waiting', 'well'] as const
const TONE_SIGNS: Readonly<Record<(typeof TONES)[number], string>> = { bad: '✗', running: '…', waiting: ' ', well: '✓' }

/** Hosts in trouble first, then those at work; where all is well a line suffices. */
function stepsDocument(change: ChangeView, isWhole: boolean, look: TableLook): RowDocument {
  const { theme } = look
  const out = new Writer(look)
  const hosts = [...new Set([...change.steps.values()].map(({ operation }) => operation.host))]
  const groups = hosts.map((host) => {
    const steps = stepsOf(change, undefined, host)
    return { host, steps, tone: toneOf(steps) }
  })
  const sorted = groups.toSorted((a, b) => TONES.indexOf(a.tone) - TONES.indexOf(b.tone))
  for (const { host, steps, tone } of sorted) {
    const ended = steps.filter(({ state }) => state.kind === 'done' || state.kind === 'unneeded').length
    const colour = { bad: theme.danger, running: theme.warning, waiting: theme.muted, well: theme.ok }[tone]
    out.say(`${TONE_SIGNS[tone]} ${host}  ${ended} of ${count(steps.length, 'step')}`, bold(colour))
    if (tone === 'well' && !isWhole) continue
    for (const step of steps) {
      if (isWhole || tone !== 'waiting') writeStep(out, step, isWhole, look)
    }
  }
  return out.document(stepsHead(change, look))
}

function stepsHead(change: ChangeView, look: TableLook): readonly Row[] {
  const { theme } = look
  const { end, order, said, steps, phase } = change
  const out = new Writer(look)
  const what = `${order.direction === 'up' ? 'Bring up' : 'Take down'} ${order.areas.join(', ')} on ${foldHostSet(order.hosts)}`
  out.say(what, bold(theme.accent))
  const states = [...steps.values()].map(({ state }) => state.kind)
  const number = (kind: StepView['state']['kind']) => states.filter((state) => state === kind).length
  const done = number('done') + number('unneeded')
  const bad = number('failed') + number('skipped') + number('cancelled')
  if (phase !== 'ended') out.say(`${phaseWords(change)} …`, bold(theme.warning))
  else {
    const how = end === undefined ? 'ended: ' : HOW[end]
    const words = `${how}${done} of ${count(states.length, 'step')} done${bad > 0 ? `, ${bad} failed or not begun` : ''}`
    out.say(words, bold(end === 'done' && bad === 0 ? theme.ok : theme.danger))
  }
  for (const text of said) out.say(text, bold(theme.warning))
  return [...out.rows, []]
}

const HOW: Readonly<Record<NonNullable<ChangeView['end']>, string>> = {
  done: '',
  unchanged: 'ended: ',
  declined: 'ended: ',
  cancelled: 'ended: ',
  locked: 'not begun: ',
  lost: 'broken off: ',
  error: 'broken off: ',
}

const SHOWN_OUTPUT = 3

function writeStep(out: Writer, { step, state, output }: StepView, isWhole: boolean, look: TableLook): void {
  const { theme, nowMs } = look
  const [sign, words, colour] = stateWords(state, theme, nowMs)
  out.say(`${sign} ${printable(step.title)}${words}`, styleOf(colour), 4)
  const isOpen = state.kind === 'running' || state.kind === 'failed'
  const lines = output.at(-1) === '' ? output.slice(0, -1) : output
  const shown = isWhole ? lines : isOpen ? lines.slice(-SHOWN_OUTPUT) : []
  for (const line of shown) out.say(line, mutedStyle(theme), 8)
}

function stateWords(state: StepView['state'], theme: Theme, nowMs: number): readonly [string, string, ThemeColour] {
  switch (state.kind) {
    case 'waiting':
      return [' ', '', theme.muted]
    case 'running':
      return ['…', `  ${formatAge(nowMs - state.sinceMs)}`, theme.warning]
    case 'done':
      return ['✓', `  ${formatDuration(state.durationMs)}`, theme.ok]
    case 'unneeded':
      return ['✓', ': it is so already', theme.muted]
    case 'failed':
      return ['✗', ` failed: ${state.reason}`, theme.danger]
    case 'cancelled':
      return ['✗', ': ended', theme.danger]
    case 'skipped':
      return ['-', `: not begun: ${state.reason}`, theme.muted]
  }
}
