/** The jobs as lines: an array or a grid is one line with its progress. Pure. */
import { printable } from '../../base/printable.ts'
import type { JobState } from '../../scheduler/jobs/job.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import type { Span } from '../compositor/compositor.ts'
import type { Row, RowDocument } from '../rows/row-document.ts'
import { clip, padEnd, textWidth } from '../text-width.ts'
import { mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { askedWords, durationWords, placeWords } from './job-words.ts'
import type { QueueSight } from './jobs-port.ts'
import { countOf, type Filter, type JobLine, KINDS } from './queue-view.ts'

const JOB_WIDTH = 14
const STATE_WIDTH = 24
const RAN_WIDTH = 9
const ON_WIDTH = 12
const BAR_CELLS = 8
const WORDS_WIDTH = STATE_WIDTH - BAR_CELLS - 2

export type ListInput = {
  readonly sight: QueueSight
  readonly lines: readonly JobLine[]
  readonly chosen: JobLine | undefined
  readonly filter: Filter
  readonly needle: string
  readonly columns: number
  readonly theme: Theme
  readonly nowMs: number
}

export function listDocument({ sight, lines, chosen, filter, needle, columns, theme, nowMs }: ListInput): RowDocument {
  const askedWidth = columns >= 100 ? 28 : 0
  const muted = mutedStyle(theme)
  const counts = [...sight.counts].map(([kind, count]) => `${count} ${kind}`).join(', ') || 'no jobs yet'
  const driver = sight.driver === undefined ? 'no scheduler running: muster job work' : printable(sight.driver)
  const summary: Row = [
    { text: ` ${counts}`, style: styleOf(theme.text, undefined, BOLD) },
    {
      text: `${filter === 'all' ? '' : ` · only ${filter}`}${needle === '' ? '' : ` · with “${needle}”`}`,
      style: styleOf(theme.accent, undefined, BOLD),
    },
    { text: `  ${driver}`, style: sight.driver === undefined ? styleOf(theme.warning) : muted },
  ]
  const titles = [
    padEnd(' JOB', JOB_WIDTH),
    padEnd('STATE', STATE_WIDTH),
    padEnd('RAN', RAN_WIDTH),
    padEnd('ON', ON_WIDTH),
    ...(askedWidth > 0 ? [padEnd('ASKS FOR', askedWidth)] : []),
    'NAME',
  ]
  return {
    head: [summary, [{ text: titles.join(''), style: muted }]],
    length: lines.length,
    row(index) {
      const line = lines[index]
      if (line === undefined) return []
      const { lead, first, count } = line
      const isChosen = line.spec === chosen?.spec
      const attributes = isChosen ? BOLD | (theme.name === 'none' ? INVERSE : 0) : 0
      const plain = styleOf(isChosen ? theme.accent : theme.text, undefined, attributes)
      const id = count === 1 ? String(first) : `${first}-${first + count - 1}`
      const on = (count > 1 ? undefined : placeWords(lead)) ?? '-'
      return [
        { text: padEnd(clip(`${isChosen ? '▸' : ' '}${id}`, JOB_WIDTH - 1), JOB_WIDTH), style: plain },
        ...(count === 1 ? [stateSpan(lead.state, theme)] : progressSpans(line, theme)),
        { text: padEnd(count === 1 ? durationWords(lead, nowMs) : '-', RAN_WIDTH), style: plain },
        { text: padEnd(clip(printable(on), ON_WIDTH - 1), ON_WIDTH), style: plain },
        ...(askedWidth > 0 ? [{ text: padEnd(clip(askedWords(lead), askedWidth - 1), askedWidth), style: plain }] : []),
        { text: printable(lead.spec.name), style: plain },
      ]
    },
  }
}

function stateSpan(state: JobState, theme: Theme): Span {
  const reason = 'reason' in state && state.reason !== undefined ? ` ${printable(state.reason)}` : ''
  return {
    text: padEnd(clip(`${state.kind}${reason}`, STATE_WIDTH - 1), STATE_WIDTH),
    style: styleOf(colourOf(state.kind, theme), undefined, BOLD),
  }
}

export function colourOf(kind: JobState['kind'], theme: Theme): Theme['text'] {
  if (kind === 'done') return theme.ok
  if (kind === 'failed' || kind === 'lost' || kind === 'timed-out') return theme.danger
  if (kind === 'starting' || kind === 'running' || kind === 'ending') return theme.accent
  return kind === 'queued' ? theme.warning : theme.muted
}

/** `█████▒·· 61/90 2 failed` */
export function progressSpans(line: JobLine, theme: Theme): readonly Span[] {
  const done = line.counts.get('done') ?? 0
  const ended = countOf(line, KINDS.ended)
  const running = countOf(line, KINDS.running)
  const cells = (count: number) => Math.floor((count / line.count) * BAR_CELLS)
  const full = cells(ended)
  const busy = Math.min(BAR_CELLS - full, running > 0 ? Math.max(1, cells(running)) : 0)
  const cancelled = line.counts.get('cancelled') ?? 0
  const failed = ended - done - cancelled
  const progress = `${ended}/${line.count}`
  const words = [
    // The bar tells how far it is, too.
    ...(failed > 0 ? [`${progress} ${failed} failed`, `${failed} failed`] : []),
    ...(failed === 0 && cancelled > 0 ? [`${progress} ${cancelled} cancelled`] : []),
    ...(cancelled === line.count ? [`${cancelled} cancelled`] : []),
    progress,
  ].find((each) => textWidth(each) <= WORDS_WIDTH)
  const colour = failed > 0 ? theme.danger : cancelled > 0 ? theme.muted : undefined
  return [
    { text: '█'.repeat(full), style: styleOf(colour ?? theme.ok) },
    { text: '▒'.repeat(busy), style: styleOf(theme.accent) },
    { text: '·'.repeat(BAR_CELLS - full - busy), style: mutedStyle(theme) },
    {
      text: ` ${padEnd(words ?? clip(progress, WORDS_WIDTH), STATE_WIDTH - BAR_CELLS - 1)}`,
      style: styleOf(colour ?? theme.text, undefined, BOLD),
    },
  ]
}
