/** What the pane beside the table shows: details of a cell, the plan, or the steps as they run. Pure. */

import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { wrapText } from '../../base/text-width.ts'
import { ageText, formatDuration, timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { HostStatus } from '../../ops/kernel/bring-up.ts'
import { hostsWithSteps } from '../../ops/kernel/change.ts'
import { formatFinding } from '../../ops/kernel/finding.ts'
import { countPlan, type LineKind, planLines, stepsText } from '../../ops/kernel/format-plan.ts'
import { boldStyle, mutedStyle, type Style, styleOf, type Theme, type ThemeColour } from '../compositor/scene.ts'
import { documentOf, type Row, type RowDocument } from '../rows/rows-pane.ts'
import {
  type AreaColumn,
  areasOf,
  type BringUpView,
  type ChangeView,
  cellKey,
  cellOf,
  changeEnd,
  isOvercome,
  lastBegun,
  notWorking,
  type StepView,
  stepsOf,
  toneOf,
} from './bring-up-view.ts'
import { cellText, phaseText, type TableContext } from './table-document.ts'

/** Collects rows; long text continues in the next row, indented. */
class Writer {
  readonly rows: Row[] = []
  readonly #columns: number

  constructor({ columns }: TableContext) {
    this.#columns = columns
  }

  say(text: string, style: Style, indent = 1): this {
    const lines = wrapText(text, Math.max(8, this.#columns - indent), '  ')
    this.rows.push(...lines.map((line) => [{ text: ' '.repeat(indent) + line, style }]))
    return this
  }

  blank(): this {
    this.rows.push([])
    return this
  }

  document(head: readonly Row[] = []): RowDocument {
    return documentOf(this.rows, head)
  }
}

export function sideDocument(view: BringUpView, context: TableContext): RowDocument {
  const { side, change } = view
  if (side === 'details' || change === undefined) return detailsDocument(view, context)
  const failed = notWorking(view, change)
  return side === 'plan'
    ? planDocument(change, failed, context)
    : stepsDocument(change, change.phase === 'ended' ? failed : [], view.isWhole, context)
}

/** A change outside the tab's own areas: its plan, and its steps once it has started. */
export const changeDocument = (change: ChangeView, context: TableContext): RowDocument =>
  change.phase === 'check' || change.phase === 'ask'
    ? planDocument(change, [], context)
    : stepsDocument(change, [], false, context)

function detailsDocument(view: BringUpView, context: TableContext): RowDocument {
  const { theme, nowMs } = context
  const { host, area } = view.cursor
  const out = new Writer(context)
  const column = view.columns?.find(({ name }) => name === area)
  if (host === undefined || column === undefined) return out.document()
  const cell = cellOf(view, column, host)
  const { sign, text, colour } = cellText(cell, theme)
  out.say(`${host} · ${column.name}`, boldStyle(theme.accent)).say(`${sign} ${text}`, boldStyle(colour))
  if (cell.kind === 'undeclared') {
    const what = column.hosts === undefined ? column.name : `${column.name} for ${host}`
    return out.blank().say(`${view.file} declares no ${what}.`, mutedStyle(theme)).document()
  }
  if (cell.kind === 'unknown') out.blank().say('Not checked yet: press r.', mutedStyle(theme))
  const status = view.statuses.get(cellKey(column.name, host))
  if (status?.atMs !== undefined) out.say(`checked ${ageText(nowMs - status.atMs)} ago`, mutedStyle(theme))
  out.blank()
  if (status?.status === 'unasked') {
    const how = 'Press + after the leader to add it, then r here.'
    out.say(`${host} is not open in the console, so it was not checked. ${how}`, mutedStyle(theme))
  }
  for (const because of status?.because ?? []) out.say(`· ${printable(because)}`, styleOf(theme.text), 2)
  for (const { gravity, cause, detail, hint, fix } of status?.findings ?? []) {
    const tone = gravity === 'blocker' ? theme.danger : gravity === 'risk' ? theme.warning : theme.text
    out.blank().say(`${gravity}: ${printable(cause)}`, boldStyle(tone))
    if (detail !== undefined) out.say(printable(detail), mutedStyle(theme), 3)
    if (hint !== undefined) out.say(printable(hint), styleOf(theme.text), 3)
    if (fix !== undefined) {
      const where = fix.where === 'here' ? 'here' : `on ${host}`
      out.say(`fix ${where}: ${printable(fix.command)}`, styleOf(theme.ok), 3)
    }
  }
  const last = lastBegun(view)
  const steps = stepsOf(last, column.name, host)
  const isOld = last?.order.direction === 'up' && toneOf(steps) === 'bad' && isOvercome(last, status)
  if (steps.length > 0 && !isOld) {
    out.blank().say('last change', mutedStyle(theme))
    for (const step of steps) writeStep(out, step, true, context)
  }
  const journal = view.journal.get(cellKey(column.name, host)) ?? []
  if (journal.length > 0) out.blank().say('journal, newest first', mutedStyle(theme))
  for (const { time, who, title, result, reason } of journal) {
    const isBad = result === 'failed' || result === 'cancelled'
    const line = `${timeText(Date.parse(time), nowMs)}  ${result}: ${title}  (${who})`
    out.say(printable(line), styleOf(isBad ? theme.danger : theme.text), 2)
    if (reason !== undefined) out.say(printable(reason), mutedStyle(theme), 4)
  }
  writeOthers(out, view, column, host, context)
  return out.document()
}

/** The same area on the other hosts, grouped by equal status. */
function writeOthers(out: Writer, view: BringUpView, column: AreaColumn, own: string, { theme }: TableContext): void {
  const known = (column.hosts ?? []).flatMap((host) => view.statuses.get(cellKey(column.name, host)) ?? [])
  const wordsOf = ({ status, because, findings }: HostStatus) =>
    JSON.stringify([status, because, findings.map(({ cause }) => cause)])
  const groups = Map.groupBy(known, wordsOf)
  for (const statuses of groups.values()) {
    const others = statuses.filter(({ host }) => host !== own)
    const [first] = others
    if (first === undefined) continue
    const { sign, text, colour } = cellText({ kind: 'status', status: first }, theme)
    const hosts = foldHostSet(others.map(({ host }) => host))
    const isSame = statuses.length > others.length
    out
      .blank()
      .say(
        isSame ? `the same on ${hosts}` : `${hosts}: ${sign} ${text}`,
        isSame ? mutedStyle(theme) : boldStyle(colour),
      )
    if (isSame) continue
    for (const because of first.because) out.say(`· ${printable(because)}`, styleOf(theme.text), 2)
    for (const { gravity, cause } of first.findings) out.say(`${gravity}: ${printable(cause)}`, styleOf(theme.text), 2)
  }
}

/** `failed`: what is as declared and does not work, which the plan does not change. */
function planDocument(change: ChangeView, failed: readonly HostStatus[], context: TableContext): RowDocument {
  const { theme } = context
  const { plan, phase, isAgain, said } = change
  const head = new Writer(context)
  const body = new Writer(context)
  head.say(titleOf(change), boldStyle(theme.accent))
  if (plan === undefined) return body.document(head.say('checking the hosts …', boldStyle(theme.warning)).rows)
  const counts = countPlan(plan)
  const { steps, blocked, stuckSteps } = counts
  if (isAgain) head.say('The hosts have changed since: this is the new plan.', boldStyle(theme.warning))
  const others =
    stuckSteps === 0 ? '' : `; ${counted(stuckSteps, 'step')} cannot start without ${blocked === 1 ? 'it' : 'them'}`
  if (steps > stuckSteps)
    head.say(`${stepsText(counts)} on ${foldHostSet(hostsWithSteps(plan))}`, boldStyle(theme.text))
  else if (blocked === 0 && failed.length > 0) head.say('Nothing to change.', boldStyle(theme.text))
  else if (blocked === 0) head.say('Nothing to do.', boldStyle(theme.ok))
  else
    head.say(`Nothing to apply: ${counted(blocked, 'operation')} blocked, marked !${others}`, boldStyle(theme.danger))
  if (steps > stuckSteps && blocked > 0)
    head.say(`${counted(blocked, 'operation')} blocked, marked !${others}`, boldStyle(theme.danger))
  if (failed.length > 0) head.say(`${hostsOf(failed)}: not working, marked ✗`, boldStyle(theme.danger))
  if (phase === 'ask') head.say('y applies it, Esc discards it', boldStyle(theme.warning))
  // Not in the head, which is always in view: there may be many.
  for (const text of said) body.say(text, boldStyle(theme.danger))
  writeFailed(body, failed, context)
  for (const { kind, text } of planLines(plan, foldHostSet)) {
    if (kind === 'head') body.blank()
    const indent = 1 + (/^ */.exec(text)?.[0].length ?? 0)
    body.say(text.trimStart(), styleOfLine(kind, theme), indent)
  }
  return body.document(head.rows)
}

const hostsOf = (statuses: readonly HostStatus[]): string => foldHostSet([...new Set(statuses.map(({ host }) => host))])

/** Equal problems stand together. */
function writeFailed(out: Writer, failed: readonly HostStatus[], { theme }: TableContext): void {
  const blockers = failed.flatMap(({ findings }) => findings.filter(({ gravity }) => gravity === 'blocker'))
  const groups = Map.groupBy(blockers, (finding) => JSON.stringify([finding.area, formatFinding(finding)]))
  for (const [first, ...others] of groups.values()) {
    if (first === undefined) continue
    const hosts = foldHostSet([first, ...others].map(({ host }) => host))
    out.say(`✗ ${first.area} · ${hosts}: ${formatFinding(first)}`, boldStyle(theme.danger))
  }
}

function titleOf(change: ChangeView): string {
  const { direction, hosts } = change.order
  return `${direction === 'up' ? 'Bring up' : 'Take down'} ${areasOf(change).join(', ')} on ${foldHostSet(hosts)}`
}

function styleOfLine(kind: LineKind, theme: Theme): Style {
  if (kind === 'head') return boldStyle(theme.text)
  if (kind === '!') return boldStyle(theme.danger)
  if (kind === 'quiet') return mutedStyle(theme)
  return styleOf({ '+': theme.ok, '-': theme.danger, '~': theme.warning, plain: theme.text }[kind])
}

const TONES = ['bad', 'running', 'waiting', 'ok'] as const
const TONE_SIGNS: Readonly<Record<(typeof TONES)[number], string>> = { bad: '✗', running: '…', waiting: ' ', ok: '✓' }

/** Hosts with failures first, then running ones; a host that is done takes one line. */
function stepsDocument(
  change: ChangeView,
  failed: readonly HostStatus[],
  isWhole: boolean,
  context: TableContext,
): RowDocument {
  const { theme } = context
  const out = new Writer(context)
  for (const text of change.said) out.say(text, boldStyle(theme.warning))
  writeFailed(out, failed, context)
  const hosts = [...new Set([...change.steps.values()].map(({ operation }) => operation.host))]
  const groups = hosts.map((host) => {
    const steps = stepsOf(change, undefined, host)
    return { host, steps, tone: toneOf(steps) }
  })
  const sorted = groups.toSorted((a, b) => TONES.indexOf(a.tone) - TONES.indexOf(b.tone))
  for (const { host, steps, tone } of sorted) {
    const ended = steps.filter(({ state }) => state.kind === 'done' || state.kind === 'unneeded').length
    const colour = { bad: theme.danger, running: theme.warning, waiting: theme.muted, ok: theme.ok }[tone]
    out.say(`${TONE_SIGNS[tone]} ${host}  ${ended} of ${counted(steps.length, 'step')}`, boldStyle(colour))
    if (tone === 'ok' && !isWhole) continue
    for (const step of steps) {
      if (isWhole || tone !== 'waiting') writeStep(out, step, isWhole, context)
    }
  }
  return out.document(stepsHead(change, failed, context))
}

function stepsHead(change: ChangeView, failed: readonly HostStatus[], context: TableContext): readonly Row[] {
  const { theme } = context
  const { end, phase } = change
  const out = new Writer(context).say(titleOf(change), boldStyle(theme.accent))
  if (phase !== 'ended') out.say(`${phaseText(change)} …`, boldStyle(theme.warning))
  else {
    const { text, isWhole } = changeEnd(
      change,
      failed.map(({ host }) => host),
    )
    out.say(`${HOW[end ?? 'error']}${text}`, boldStyle(end === 'done' && isWhole ? theme.ok : theme.danger))
  }
  return [...out.rows, []]
}

const HOW: Readonly<Record<NonNullable<ChangeView['end']>, string>> = {
  done: '',
  unchanged: 'ended: ',
  declined: 'ended: ',
  cancelled: 'cancelled: ',
  locked: 'not started: ',
  lost: 'stopped: ',
  error: 'stopped: ',
}

const SHOWN_OUTPUT = 3

function writeStep(out: Writer, { step, state, output }: StepView, isWhole: boolean, context: TableContext): void {
  const { theme, nowMs } = context
  const [sign, text, colour] = stateText(state, theme, nowMs)
  out.say(`${sign} ${printable(step.title)}${text}`, styleOf(colour), 4)
  const isOpen = state.kind === 'running' || state.kind === 'failed'
  const lines = output.at(-1) === '' ? output.slice(0, -1) : output
  const shown = isWhole ? lines : isOpen ? lines.slice(-SHOWN_OUTPUT) : []
  for (const line of shown) out.say(line, mutedStyle(theme), 8)
}

function stateText(state: StepView['state'], theme: Theme, nowMs: number): readonly [string, string, ThemeColour] {
  switch (state.kind) {
    case 'waiting':
      return [' ', '', theme.muted]
    case 'running':
      return ['…', `  ${ageText(nowMs - state.sinceMs)}`, theme.warning]
    case 'done':
      return ['✓', `  ${formatDuration(state.durationMs)}`, theme.ok]
    case 'unneeded':
      return ['✓', ': nothing to do', theme.muted]
    case 'failed':
      return ['✗', ` failed: ${state.reason}`, theme.danger]
    case 'cancelled':
      return ['✗', ': cancelled', theme.danger]
    case 'skipped':
      return ['-', `: not started: ${state.reason}`, theme.muted]
  }
}
