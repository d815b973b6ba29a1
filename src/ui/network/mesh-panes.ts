/** A mesh as panes: the matrix with what it means beside or below it, one link with both directions, or the plan. Pure. */
import { formatBitRate } from '../../base/format-bit-rate.ts'
import { formatPercent } from '../../base/format-percent.ts'
import { printable } from '../../base/printable.ts'
import { padEnd, wrapText } from '../../base/text-width.ts'
import { formatDuration, timeText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Gravity } from '../../ops/kernel/finding.ts'
import { measuredOf, type NetFinding, noProblemsText, retransmitsAGigabyte } from '../../ops/net/mesh/judge.ts'
import type { EarlierLinks } from '../../ops/net/mesh/kept-mesh.ts'
import { formatMs, type LinkOutcome, type OrderedPair } from '../../ops/net/mesh/link.ts'
import { remainingOf } from '../../ops/net/mesh/measure-mesh.ts'
import { slotWords } from '../../ops/net/mesh/mesh-plan.ts'
import { changeDocument } from '../bring-up/side-document.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, styleOf, type Theme } from '../compositor/scene.ts'
import { documentOf, type Row, rowsPane, splitColumns, splitRows, wrapRows } from '../rows/rows-pane.ts'
import {
  CHANGE_LEGEND,
  cellAt,
  heatStyle,
  matrixRows,
  matrixShape,
  matrixSize,
  pairKey,
  RATE_LEGEND,
} from './mesh-matrix.ts'
import { changeOf, heatAt, type MeshPicture, type PictureState, pairAt } from './mesh-picture.ts'
import { canInstall, canStart, installWords, isDeciding, isMeasuring, type MeshRun, shownPlan } from './mesh-run.ts'

export type PictureContext = {
  readonly rect: Rect
  readonly theme: Theme
  readonly nowMs: number
  /** The mouse changed the selection, or scrolled the findings. */
  readonly onChange?: (state: PictureState) => void
}

const LEAST_SIDE_COLUMNS = 40
const LEAST_BELOW_ROWS = 7
/** What large cells leave for the words below. */
const TILES_BELOW_ROWS = 10
const FRAME = 2

/** The matrix and what it means. `run`: it is being measured, or has just been. */
export function picturePanes(state: PictureState, context: PictureContext, run?: MeshRun): readonly PaneView[] {
  if (state.isOpen) return linkPanes(state, context)
  const { rect, theme, nowMs, onChange } = context
  const { names, title, timeMs } = state.picture
  const { matrix, side, hasFrame } = layOut(names, rect)
  const running = new Set((run === undefined ? [] : runningSlot(run)).map(({ from, to }) => pairKey(from, to)))
  const inner = hasFrame
    ? { columns: matrix.width - FRAME, rows: matrix.height - FRAME }
    : { columns: matrix.width, rows: matrix.height }
  const document = documentOf(matrixRows(state, { ...inner, theme, running }))
  const heading = [title, ...(state.showsChange ? ['change'] : [])].join(' · ')
  const words = run === undefined ? `measured ${timeText(timeMs, nowMs)}` : isMeasuring(run) ? 'measuring' : 'result'
  const pane = rowsPane({
    id: ' mesh',
    title: heading,
    hasKeys: true,
    isBusy: run !== undefined && isMeasuring(run),
    document,
    rect: hasFrame
      ? matrix
      : { column: matrix.column - 1, row: matrix.row - 1, width: matrix.width + FRAME, height: matrix.height + FRAME },
    theme,
    list: { select: (line, column) => onChange?.({ ...state, ...cellAt(state, inner, line, column) }) },
  })
  return [
    hasFrame ? pane : { ...pane, lines: 'none' },
    rowsPane({
      id: ' mesh-words',
      title: hasFrame ? words : run === undefined ? `${heading} · ${words}` : heading,
      hasKeys: false,
      document: documentOf(readingRows(state, { ...context, columns: side.width - FRAME }, run)),
      place: { offset: state.offset, isFollowing: false },
      scroll: (rows) => onChange?.({ ...state, offset: Math.max(0, state.offset + Math.sign(rows)) }),
      rect: side,
      theme,
    }),
  ]
}

/** The findings are beside the matrix, or below it if only that leaves room for numbers. Without its frame a matrix may just fit. */
function layOut(names: readonly string[], rect: Rect) {
  const side = Math.max(LEAST_SIDE_COLUMNS, Math.floor(rect.width / 3))
  const beside = matrixShape(names, rect.width - side - FRAME, rect.height - FRAME)
  const below = matrixShape(names, rect.width - FRAME, rect.height - FRAME - TILES_BELOW_ROWS)
  const { width, height } = matrixSize(beside, names.length)
  const belowRows = matrixSize(below, names.length).height + FRAME
  const fitsBeside = width + FRAME + LEAST_SIDE_COLUMNS <= rect.width
  const fitsBelow = belowRows + LEAST_BELOW_ROWS <= rect.height
  const isBelowBetter = below.hasNumbers !== beside.hasNumbers || below.cellHeight > beside.cellHeight
  if (fitsBeside && !(fitsBelow && isBelowBetter)) {
    const hasFrame = height + FRAME <= rect.height || height > rect.height
    const [matrix, words] = splitColumns(rect, width + (hasFrame ? FRAME : 1))
    return { matrix, side: words, hasFrame }
  }
  const [matrix, words] = splitRows(rect, Math.min(belowRows, Math.max(5, rect.height - LEAST_BELOW_ROWS)))
  return { matrix, side: words, hasFrame: true }
}

function runningSlot(run: MeshRun): readonly OrderedPair[] {
  return run.step === undefined || !isMeasuring(run) ? [] : run.step.slot
}

type ReadingContext = PictureContext & { readonly columns: number }

function readingRows(state: PictureState, context: ReadingContext, run: MeshRun | undefined): readonly Row[] {
  const { theme, columns } = context
  const { picture } = state
  const pair = pairAt(state)
  const findings = run !== undefined && isMeasuring(run) ? [] : findingRows(state, context)
  return [
    ...(run === undefined ? [] : progressRows(run, context)),
    ...(run?.problem === undefined ? [] : wrapRows(printable(run.problem), columns, ' ', styleOf(theme.danger))),
    ...(picture.before === undefined
      ? []
      : wrapRows(comparisonWords(picture, picture.before, context.nowMs), columns, ' ', mutedStyle(theme))),
    // The culprit, the selected link, and then the rest.
    ...(findings[0] ?? []),
    ...(pair === undefined ? [] : cellRows(state, pair, context)),
    ...findings.slice(1).flat(),
    [],
    ...summaryRows(state, context),
    ...wrapRows(state.showsChange ? CHANGE_LEGEND : RATE_LEGEND, columns, ' ', mutedStyle(theme)),
  ]
}

const MOST_TIMES = 3

function comparisonWords(picture: MeshPicture, { timesMs }: EarlierLinks, nowMs: number): string {
  if (!picture.report.links.some((link) => changeOf(picture, link) !== undefined)) {
    return 'not compared: no link was measured in both results'
  }
  const times = timesMs.slice(0, MOST_TIMES).map((ms) => timeText(ms, nowMs))
  const more = timesMs.length > MOST_TIMES ? [`${timesMs.length - MOST_TIMES} earlier`] : []
  return `compared with ${[...times, ...more].join(', ')}`
}

const BAR_COLUMNS = 40
/** Of the labels beside what was measured on a link. */
const LABEL_COLUMNS = 14

function progressRows(run: MeshRun, { theme, columns, nowMs }: ReadingContext): readonly Row[] {
  const { links, plan, step, isStopping } = run
  if (!isMeasuring(run)) {
    const measured = measuredOf(links).length
    const words =
      measured === plan.links ? `all ${plan.links} links measured` : `${measured} of ${plan.links} links measured`
    return wrapRows(words, columns, ' ', styleOf(measured === plan.links ? theme.ok : theme.warning))
  }
  const width = Math.max(8, Math.min(BAR_COLUMNS, columns - 22))
  const done = Math.min(width, Math.round((links.length / Math.max(1, plan.links)) * width))
  const left = step === undefined ? undefined : remainingOf(step, nowMs - step.atMs)
  const timeLeft = left === undefined ? '' : `, about ${formatDuration(Math.round(left / 1000) * 1000)} left`
  const examined = run.hosts.filter((host) => 'facts' in host).length
  const words = isStopping
    ? 'stopping; the finished links are kept'
    : step === undefined
      ? `round-trip times: ${run.pings.length} · hosts examined: ${examined}`
      : `step ${step.index + 1} of ${step.count}${timeLeft}`
  return [
    [
      { text: ` ${'█'.repeat(done)}`, style: styleOf(theme.accent) },
      { text: '░'.repeat(width - done), style: mutedStyle(theme) },
      { text: ` ${links.length} of ${plan.links} links`, style: boldStyle(theme.text) },
    ],
    ...wrapRows(words, columns, ' ', styleOf(isStopping ? theme.warning : theme.text)),
    ...wrapRows(printable(slotWords(runningSlot(run))), columns, ' ', mutedStyle(theme)).slice(0, 4),
  ]
}

const gravityColour = (gravity: Gravity, theme: Theme) =>
  gravity === 'blocker' ? theme.danger : gravity === 'risk' ? theme.warning : theme.muted

/** The rows of each finding, the worst first: it names the culprit. */
function findingRows({ picture }: PictureState, { theme, columns }: ReadingContext): readonly (readonly Row[])[] {
  const { findings, usual, report } = picture
  if (findings.length === 0 && usual !== undefined) {
    const isWhole = measuredOf(report.links).length === report.links.length
    return [wrapRows(noProblemsText(report), columns, ' ', styleOf(isWhole ? theme.ok : theme.text))]
  }
  return findings.map((finding) => wrapFinding(finding, columns, theme))
}

export function wrapFinding({ gravity, text }: NetFinding, columns: number, theme: Theme): readonly Row[] {
  const style = gravity === 'note' ? mutedStyle(theme) : boldStyle(gravityColour(gravity, theme))
  return wrapRows(`${gravity === 'note' ? '' : `${gravity}: `}${printable(text)}`, columns, ' ', style)
}

/** The selected link in one or two lines. */
function cellRows(state: PictureState, pair: OrderedPair, { theme, columns, nowMs }: ReadingContext): readonly Row[] {
  const { picture } = state
  const heat = heatAt(picture, pair, false)
  const outcome = picture.outcome(pair.from, pair.to)
  const back = picture.outcome(pair.to, pair.from)
  const change = changeOf(picture, pair)
  const then = picture.before?.of(pair)
  const parts = [
    rateWords(outcome),
    ...(outcome?.kind === 'measured' && picture.usual
      ? [`${formatPercent(outcome.bitsPerSecond / picture.usual)} of the median`]
      : []),
    ...(change === undefined || then === undefined
      ? []
      : [`${changeWords(change)} at ${timeText(then.timeMs, nowMs)} (${formatBitRate(then.bitsPerSecond)})`]),
    ...(back === undefined ? [] : [`back ${rateWords(back)}`]),
  ]
  // Marked, as it stands between the findings.
  const name = `▸${printable(`${pair.from} → ${pair.to}`)} `
  const style =
    heat === undefined || heat === 'best' || heat === 'good' ? boldStyle(theme.accent) : heatStyle(heat, theme)
  return [[{ text: name, style }], ...wrapRows(parts.join(' · '), columns, '  ', styleOf(theme.text))]
}

/** Against an earlier measurement, up to its time. */
function changeWords(change: number): string {
  if (change < 0.995) return `${formatPercent(1 - change)} slower than`
  return change > 1.005 ? `${formatPercent(change - 1)} faster than` : 'as fast as'
}

function rateWords(outcome: LinkOutcome | undefined): string {
  if (outcome === undefined) return 'not measured yet'
  return outcome.kind === 'measured' ? formatBitRate(outcome.bitsPerSecond) : printable(outcome.reason)
}

function summaryRows({ picture }: PictureState, { theme, columns }: ReadingContext): readonly Row[] {
  const { report, usual } = picture
  if (usual === undefined) return []
  const fastest = measuredOf(report.links).reduce((most, { outcome }) => Math.max(most, outcome.bitsPerSecond), 0)
  const slowest = measuredOf(report.links).reduce(
    (least, { outcome }) => Math.min(least, outcome.bitsPerSecond),
    fastest,
  )
  const times = report.pings.flatMap(({ meanMs }) => meanMs ?? [])
  const trips =
    times.length === 0 ? [] : [`round trip ${formatMs(Math.min(...times))} to ${formatMs(Math.max(...times))}`]
  const words = [
    `median ${formatBitRate(usual)}`,
    `fastest ${formatBitRate(fastest)}`,
    `slowest ${formatBitRate(slowest)}`,
    ...trips,
  ]
  return wrapRows(words.join(' · '), columns, ' ', styleOf(theme.text))
}

/** Both directions of the selected link, side by side. */
function linkPanes(state: PictureState, context: PictureContext): readonly PaneView[] {
  const { rect, theme } = context
  const pair = pairAt(state)
  if (pair === undefined) return []
  const back = { from: pair.to, to: pair.from }
  const rates = [pair, back].flatMap(({ from, to }) => {
    const outcome = state.picture.outcome(from, to)
    return outcome?.kind === 'measured' ? [outcome.bitsPerSecond] : []
  })
  const most = Math.max(1, state.picture.usual ?? 0, ...rates)
  const places =
    rect.width >= 100 ? splitColumns(rect, Math.floor(rect.width / 2)) : splitRows(rect, Math.floor(rect.height / 2))
  return [pair, back].map((each, index) => {
    const place = places[index] ?? rect
    return rowsPane({
      id: ` link${index}`,
      title: printable(`${each.from} → ${each.to}`),
      hasKeys: index === 0,
      document: documentOf(directionRows(state, each, most, { ...context, columns: place.width - FRAME })),
      rect: place,
      theme,
    })
  })
}

function directionRows(state: PictureState, pair: OrderedPair, most: number, context: ReadingContext): readonly Row[] {
  const { theme, columns, nowMs } = context
  const { picture } = state
  const outcome = picture.outcome(pair.from, pair.to)
  const line = (label: string, text: string): readonly Row[] =>
    wrapText(text, Math.max(8, columns - LABEL_COLUMNS)).map((part, index) => [
      { text: padEnd(index === 0 ? ` ${label}` : '', LABEL_COLUMNS), style: mutedStyle(theme) },
      { text: part, style: styleOf(theme.text) },
    ])
  const ping = picture.report.pings.find(({ from, to }) => from === pair.from && to === pair.to)
  const then = picture.before?.of(pair)
  const before =
    then === undefined ? [] : line('before', `${formatBitRate(then.bitsPerSecond)} at ${timeText(then.timeMs, nowMs)}`)
  const trips = [
    ...(ping?.meanMs === undefined
      ? line('round trip', 'unknown: no answer to ping')
      : line(
          'round trip',
          `${formatMs(ping.meanMs)} idle${ping.minMs === undefined ? '' : ` (at least ${formatMs(ping.minMs)})`}${outcome?.kind === 'measured' && outcome.loadedRttMs !== undefined ? `, ${formatMs(outcome.loadedRttMs)} under load` : ''}`,
        )),
    ...(ping === undefined || ping.lostFraction === 0 ? [] : line('pings lost', formatPercent(ping.lostFraction))),
    ...(ping?.isWhole === undefined
      ? []
      : line('MTU', ping.isWhole ? 'full-size packets pass' : 'full-size packets are fragmented or lost')),
  ]
  if (outcome?.kind !== 'measured') {
    return [...wrapRows(rateWords(outcome), columns, ' ', styleOf(theme.danger)), ...before, ...trips]
  }
  const width = Math.max(8, columns - 2)
  const filled = Math.max(1, Math.min(width, Math.round((outcome.bitsPerSecond / most) * width)))
  const heat = heatAt(picture, pair, false)
  const resent = retransmitsAGigabyte(outcome)
  const share = picture.usual ? `, ${formatPercent(outcome.bitsPerSecond / picture.usual)} of the median` : ''
  return [
    [
      {
        text: ` ${'█'.repeat(filled)}`,
        style: styleOf(heat === 'worst' ? theme.danger : heat === 'poor' ? theme.warning : theme.ok),
      },
      { text: '░'.repeat(width - filled), style: mutedStyle(theme) },
    ],
    ...line('bandwidth', `${formatBitRate(outcome.bitsPerSecond)}${share}`),
    ...before,
    ...line(
      'retransmits',
      outcome.retransmits === undefined
        ? 'unknown'
        : `${outcome.retransmits}${resent === undefined ? '' : `, ${Math.round(resent)} a GB`}`,
    ),
    ...(outcome.jitterMs === undefined ? [] : line('jitter', formatMs(outcome.jitterMs))),
    ...(outcome.lostFraction === undefined ? [] : line('lost', `${Number((outcome.lostFraction * 100).toFixed(2))} %`)),
    ...trips,
    ...(outcome.cpuFraction === undefined
      ? []
      : line('CPU', `${formatPercent(outcome.cpuFraction)} of a core at the busier end`)),
    ...line('tool', outcome.tool === 'ssh' ? 'ssh: encryption may be the limit' : outcome.tool),
  ]
}

/** What would be measured; Enter starts it. */
export function planPanes(run: MeshRun, { rect, theme, nowMs }: PictureContext): readonly PaneView[] {
  const { order, tools, phase, offset, install } = run
  const columns = rect.width - FRAME
  const plan = shownPlan(run)
  if (phase === 'install' && install !== undefined) {
    const document = changeDocument(install, { columns, rows: rect.height - FRAME, theme, nowMs })
    const title = isDeciding(run) ? 'mesh: plan of the installation' : 'mesh: installation'
    const place = { offset, isFollowing: false }
    const isBusy = install.phase !== 'ask'
    return [rowsPane({ id: ' mesh', title, hasKeys: true, isBusy, document, place, rect, theme })]
  }
  const text = (words: string, style = styleOf(theme.text)) => wrapRows(printable(words), columns, ' ', style)
  const examined =
    tools === undefined
      ? text('asking the hosts for their tools…', mutedStyle(theme))
      : tools.lines.flatMap(({ text: words, isSkipped }) =>
          text(words, styleOf(isSkipped ? theme.warning : theme.text)),
        )
  const rows = [
    ...text(`${foldHostSet(order.hosts)}: ${plan.words}`, boldStyle(theme.accent)),
    ...examined,
    ...(install === undefined ? [] : installWords(install)).flatMap(({ text: words, isBad }) =>
      text(words, styleOf(isBad ? theme.danger : theme.ok)),
    ),
    ...(canInstall(run) ? text('Press i to install it first; that shows its own plan.', boldStyle(theme.text)) : []),
    ...text(
      `${canInstall(run) ? 'Otherwise nothing is installed. ' : install === undefined ? 'Nothing is installed. ' : ''}On each measured host, a server runs for one measurement and then exits.`,
      mutedStyle(theme),
    ),
    [],
    ...plan.slots.flatMap((slot, index) => text(`${index + 1}: ${slotWords(slot)}`)),
  ]
  const document = documentOf(rows)
  return [
    rowsPane({
      id: ' mesh',
      title:
        phase === 'survey'
          ? 'mesh: plan'
          : canStart(run)
            ? 'mesh: plan ready, Enter starts it'
            : 'mesh: nothing can be measured',
      hasKeys: true,
      isBusy: phase === 'survey',
      document,
      place: { offset, isFollowing: false },
      rect,
      theme,
    }),
  ]
}
