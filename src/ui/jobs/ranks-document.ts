/** The ranks of a job on their hosts: a row a host, a cell a rank with its step; what is wrong above them, their folded log below. Pure. */

import { nearest } from '../../base/collections.ts'
import { counted } from '../../base/counted.ts'
import { formatBitRate, shortBitRate } from '../../base/format-bit-rate.ts'
import { formatNumberSet } from '../../base/number-set.ts'
import { printable } from '../../base/printable.ts'
import { clip, padEnd, textWidth } from '../../base/text-width.ts'
import { ageText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import type { Sample } from '../../ops/net/watch/sample.ts'
import { failuresOf, isActive, isFinal, type Job } from '../../scheduler/jobs/job.ts'
import { failedRanks, type RankReading, type RankRow, type RankTail, ranksOf } from '../../scheduler/jobs/ranks.ts'
import { type FoldedLine, foldLines, formatRanksOf } from '../../scheduler/launch/fold.ts'
import {
  cpuPartOf,
  findStragglers,
  formatLag,
  type Lag,
  type Silence,
  silenceOf,
} from '../../scheduler/launch/straggler.ts'
import { endWords, formatFirstFailure, rankFailures } from '../../scheduler/launch/verdict.ts'
import { boldStyle, mutedStyle, type Span, type Style, styleOf, type Theme } from '../compositor/scene.ts'
import { documentOf, percentOf, type Row, type RowDocument, rowStyle, wrapRows } from '../rows/rows-pane.ts'
import { FIRST_TABLE_VIEW, findHost, shownRows, type TableColumn, type TableView } from '../rows/table-view.ts'
import type { JobDetails, RanksSeen, RanksView } from './queue-view.ts'

/** `behind`: it runs, but its steps lag. `unknown`: its host cannot be read. `claimed`: another host says that it has it as well. */
type RankSort = RankRow['state'] | 'behind' | 'unknown' | 'claimed'

const MARKS: Readonly<Record<RankSort, string>> = {
  running: '●',
  behind: '▲',
  claimed: '‖',
  failed: '✗',
  lost: '✗',
  stopped: '■',
  done: '✓',
  waiting: '○',
  unknown: '?',
}

/** Words for states whose name says too little. */
const SORT_WORDS: Readonly<Partial<Record<RankSort, string>>> = { unknown: 'not read', claimed: 'claimed twice' }

/** In trouble come first when a rank is chosen for the user. */
const TROUBLED: readonly RankSort[] = ['failed', 'lost', 'claimed', 'behind', 'unknown']
const BY_STATE: readonly RankSort[] = [...TROUBLED, 'stopped', 'running', 'waiting', 'done']

export type RankPicture = {
  readonly job: Job
  /** By host, in the order of ranks. */
  readonly hosts: ReadonlyMap<string, readonly RankRow[]>
  /** `hosts`, with the ranks that the filter leaves, in the order that the user chose. */
  readonly shown: ReadonlyMap<string, readonly RankRow[]>
  readonly count: number
  readonly troubles: ReadonlyMap<string, string>
  readonly lags: ReadonlyMap<number, Lag>
  readonly silence: Silence | undefined
  readonly tails: readonly RankTail[]
  /** Bundles whose files were deleted. */
  readonly deleted: ReadonlySet<number>
  /** Why it failed, else what it wrote last, if known. */
  wordsOf(row: RankRow): string | undefined
  readonly selected: RankRow | undefined
  sortOf(row: RankRow): RankSort
  /** Part of a core, as last read. */
  cpuOf(row: RankRow): number | undefined
}

const SILENT_S = 600
const NONE_DELETED: ReadonlySet<number> = new Set()

/** Of one job and one reading it is made once. */
let last: { readonly job: Job; readonly seen: RanksSeen | undefined; readonly picture: RankPicture } | undefined

export function rankPicture(
  { job }: JobDetails,
  view: RanksView,
  known: RanksSeen | undefined,
  table: TableView = FIRST_TABLE_VIEW,
): RankPicture {
  const seen = known?.job === job.id ? known : undefined
  if (last?.job !== job || last.seen !== seen) last = { job, seen, picture: newPicture(job, seen) }
  const { picture } = last
  const rows = shownRows([...picture.hosts.values()].flat(), rankColumns(picture), table)
  // The likely cause of a failure, else what is wrong first.
  const [cause] = failedRanks(job, rows)
  const selected =
    rows.find(({ rank, bundle }) => rank === view.rank && bundle === view.bundle) ??
    rows.find(({ rank }) => rank === view.rank) ??
    cause ??
    TROUBLED.flatMap((sort) => rows.find((row) => picture.sortOf(row) === sort) ?? []).at(0) ??
    rows[0]
  return { ...picture, shown: Map.groupBy(rows, ({ host }) => host), selected }
}

/** Their titles are those of every job. */
export const anyRankColumns = () =>
  rankColumns({ sortOf: ({ state }) => state, wordsOf: ({ text }) => text, troubles: new Map() })

export const rankColumns = ({
  sortOf,
  wordsOf,
  troubles,
}: Pick<RankPicture, 'sortOf' | 'wordsOf' | 'troubles'>): readonly TableColumn<RankRow>[] => [
  { title: 'RANK', text: ({ title }) => title, order: ({ rank }) => rank },
  { title: 'HOST', text: ({ host }) => host, find: findHost(({ host }) => host) },
  {
    title: 'STATE',
    text: (row) => SORT_WORDS[sortOf(row)] ?? sortOf(row),
    order: (row) => BY_STATE.indexOf(sortOf(row)),
  },
  {
    title: 'TEXT',
    text: (row) => wordsOf(row) ?? troubles.get(row.host) ?? '',
    isHidden: true,
  },
]

function newPicture(job: Job, seen: RanksSeen | undefined): RankPicture {
  const {
    troubles = new Map<string, string>(),
    traces = new Map(),
    tails = [],
    deleted = NONE_DELETED,
    readings,
  } = seen ?? {}
  const rows = ranksOf(job, readings)
  // What was read over time of a rank that several hosts claim is that of all of them.
  const running = rows.flatMap(({ state, rank, reading, claimedBy }) =>
    state === 'running' && reading?.process !== undefined && claimedBy === undefined ? [rank] : [],
  )
  const isWatched = isActive(job.state) && job.state.kind !== 'ending'
  const lags = isWatched ? findStragglers(traces, running) : new Map<number, Lag>()
  const allRun = rows.every(({ state, rank }) => state === 'done' || running.includes(rank))
  const hosts = Map.groupBy(rows, ({ host }) => host)
  return {
    job,
    hosts,
    shown: hosts,
    count: rows.length,
    troubles,
    lags,
    silence: isWatched && allRun ? silenceOf(traces, running, job.spec.silence?.seconds ?? SILENT_S) : undefined,
    tails,
    deleted,
    selected: undefined,
    sortOf({ state, rank, host, claimedBy }) {
      if (claimedBy !== undefined && state !== 'failed' && state !== 'lost') return 'claimed'
      if (state !== 'running') return state
      return troubles.has(host) ? 'unknown' : lags.has(rank) ? 'behind' : 'running'
    },
    cpuOf: ({ rank, claimedBy }) => (claimedBy === undefined ? cpuPartOf(traces, rank) : undefined),
    wordsOf: (row) =>
      // Readings are of running ranks.
      row.text ?? (row.state === 'running' ? undefined : lastWords(tails, row)) ?? row.reading?.line,
  }
}

/** Of the file that was written to last. */
const lastWords = (tails: readonly RankTail[], row: RankRow): string | undefined =>
  tailsOf(tails, row)
    .at(-1)
    ?.lines.findLast((line) => line.trim() !== '')

/** As its host has it. */
const tailsOf = (tails: readonly RankTail[], { rank, host }: RankRow): readonly RankTail[] =>
  tails.filter((tail) => tail.rank === rank && tail.host === host)

const ENDED: ReadonlySet<RankSort> = new Set(['done', 'failed', 'lost', 'stopped'])
const hasEnded = ({ state }: RankRow): boolean => ENDED.has(state)

/** `rank 3` is `3`, `ps 0` stays. */
const labelOf = ({ title }: RankRow) => title.replace(/^rank /, '')

type GridLine = { readonly host: string; readonly isFirst: boolean; readonly ranks: readonly RankRow[] }
type Grid = {
  readonly lines: readonly GridLine[]
  readonly hostWidth: number
  readonly labelWidth: number
  readonly stepWidth: number
}

const MOST_HOST = 24

/** A host whose ranks do not fit on one line has several. */
function gridOf({ hosts, shown }: RankPicture, columns: number): Grid {
  const rows = [...hosts.values()].flat()
  const widest = (texts: readonly string[]) => Math.max(0, ...texts.map(textWidth))
  const hostWidth = Math.min(MOST_HOST, widest([...hosts.keys()])) + 2
  const labelWidth = widest(rows.map(labelOf))
  const stepWidth = widest(rows.map(({ reading }) => String(reading?.step ?? '')))
  const most = Math.max(1, Math.floor((columns - 1 - hostWidth) / cellWidth(labelWidth, stepWidth)))
  const lines = [...shown].flatMap(([host, own]) =>
    Array.from({ length: Math.ceil(own.length / most) }, (_, index) => ({
      host,
      isFirst: index === 0,
      ranks: own.slice(index * most, (index + 1) * most),
    })),
  )
  return { lines, hostWidth, labelWidth, stepWidth }
}

const cellWidth = (label: number, step: number) => label + 2 + (step === 0 ? 0 : step + 1) + 3

/** The rank to which a key moves; lines are those of the grid. */
export function movedRank(
  picture: RankPicture,
  columns: number,
  by: { readonly ranks?: number; readonly lines?: number },
): RankRow | undefined {
  const { lines } = gridOf(picture, columns)
  const { selected } = picture
  if (selected === undefined) return undefined
  if (by.ranks !== undefined) {
    const all = lines.flatMap(({ ranks }) => ranks)
    return nearest(all, all.indexOf(selected) + by.ranks)
  }
  const line = lines.findIndex(({ ranks }) => ranks.includes(selected))
  const at = lines[line]?.ranks.indexOf(selected) ?? 0
  const to = nearest(lines, line + (by.lines ?? 0))?.ranks ?? []
  return to[Math.min(at, to.length - 1)]
}

/** The next rank in trouble after the selected one; undefined: there is none. */
export function nextInTrouble({ shown, selected, sortOf }: RankPicture): RankRow | undefined {
  const rows = [...shown.values()].flat()
  const at = selected === undefined ? -1 : rows.indexOf(selected)
  return [...rows.slice(at + 1), ...rows.slice(0, at + 1)].find((row) => TROUBLED.includes(sortOf(row)))
}

type RanksInput = {
  readonly details: JobDetails
  readonly picture: RankPicture
  /** The last sample of each host that the Network tab watches. */
  readonly samples: ReadonlyMap<string, Sample>
  readonly columns: number
  /** Of the head at most. */
  readonly headRows: number
  readonly theme: Theme
  readonly nowMs: number
}

export type RanksDocument = RowDocument & {
  /** That of the selected rank. */
  readonly line: number
  /** The rank that is drawn at a column of a row, or the nearest one of the row. */
  rankAt(row: number, column: number): RankRow | undefined
}

export function ranksDocument(input: RanksInput): RanksDocument {
  const { picture, samples, columns, theme } = input
  const { selected } = picture
  const grid = gridOf(picture, columns)
  const muted = mutedStyle(theme)
  return {
    head: headOf(input),
    length: grid.lines.length,
    line: Math.max(
      0,
      grid.lines.findIndex(({ ranks }) => selected !== undefined && ranks.includes(selected)),
    ),
    rankAt(row, column) {
      const ranks = grid.lines[row]?.ranks ?? []
      const at = Math.floor((column - 1 - grid.hostWidth) / cellWidth(grid.labelWidth, grid.stepWidth))
      return nearest(ranks, at)
    },
    row(index) {
      const line = grid.lines[index]
      if (line === undefined) return []
      const trouble = picture.troubles.get(line.host)
      const own = picture.hosts.get(line.host) ?? []
      const [only] = own.length === 1 ? line.ranks : []
      // What the host does now is not theirs.
      const usage = own.every(hasEnded) ? '-' : usageText(samples.get(line.host))
      const beside =
        trouble !== undefined
          ? { text: trouble, style: styleOf(theme.warning) }
          : { text: (only && picture.wordsOf(only)) ?? usage, style: muted }
      return [
        {
          text: ` ${line.isFirst ? padEnd(clip(printable(line.host), grid.hostWidth - 1), grid.hostWidth) : ' '.repeat(grid.hostWidth)}`,
          style: boldStyle(theme.text),
        },
        ...line.ranks.flatMap((row) => cellOf(row, row === selected, grid, picture, theme)),
        { text: line.isFirst || trouble === undefined ? printable(beside.text) : '', style: beside.style },
      ]
    },
  }
}

function cellOf(row: RankRow, isSelected: boolean, grid: Grid, { sortOf }: RankPicture, theme: Theme): readonly Span[] {
  const sort = sortOf(row)
  const plain = rowStyle(theme, isSelected)
  const step = grid.stepWidth === 0 ? '' : ` ${padEnd(String(row.reading?.step ?? ''), grid.stepWidth)}`
  return [
    { text: isSelected ? '▸' : ' ', style: plain },
    { text: `${labelOf(row).padStart(grid.labelWidth)} `, style: plain },
    { text: MARKS[sort], style: boldStyle(colourOf(sort, theme)) },
    { text: step, style: plain },
    { text: '  ', style: styleOf(theme.text) },
  ]
}

function colourOf(sort: RankSort, theme: Theme): Theme['text'] {
  if (sort === 'done') return theme.ok
  if (sort === 'failed' || sort === 'lost') return theme.danger
  if (sort === 'behind' || sort === 'unknown') return theme.warning
  return sort === 'running' ? theme.accent : theme.muted
}

function headOf({ details, picture, samples, columns, headRows, theme, nowMs }: RanksInput): readonly Row[] {
  const { job, selected } = picture
  const say = (text: string, style: Style) => wrapRows(printable(text), columns, ' ', style)
  const about = say(titleText(picture, nowMs), boldStyle(theme.text))
  const wrong = [
    ...failureTexts(job).map((text, index) => say(text, index === 0 ? boldStyle(theme.danger) : mutedStyle(theme))),
    ...details.why.map((text) => say(text, styleOf(theme.warning))),
    ...silenceTexts(picture).map((text) => say(text, boldStyle(theme.warning))),
    ...lagTexts(picture, samples).map((text) => say(text, boldStyle(theme.warning))),
  ].flat()
  const below = selected === undefined ? [] : [selectedRow(selected, picture, theme)]
  const sorts = new Set([...picture.hosts.values()].flat().map(picture.sortOf))
  const legend: Row = [
    { text: ' ', style: mutedStyle(theme) },
    ...Object.entries(MARKS).flatMap(([sort, mark]): Span[] =>
      sorts.has(sort as RankSort)
        ? [
            { text: `${mark} `, style: boldStyle(colourOf(sort as RankSort, theme)) },
            { text: `${SORT_WORDS[sort as RankSort] ?? sort}  `, style: mutedStyle(theme) },
          ]
        : [],
    ),
  ]
  const room = Math.max(1, headRows - about.length - below.length)
  return [...about, ...wrong.slice(0, room), ...(wrong.length < room ? [legend] : []), ...below]
}

/** `17 train.py · torchrun · 8 ranks on 2 hosts · attempt 1 · running 12:31 · ring 941 Mbit/s` */
function titleText({ job, hosts, count }: RankPicture, nowMs: number): string {
  const { spec, state, id, attempt } = job
  const startedMs = 'startedMs' in state ? state.startedMs : undefined
  const ran = startedMs === undefined ? '' : ` ${clockText((isFinal(state) ? state.endedMs : nowMs) - startedMs)}`
  const ring = 'ring' in state ? state.ring : undefined
  return [
    `${id} ${spec.name}`,
    ...(spec.launch === undefined ? [] : [spec.launch.kind]),
    // Between two attempts, a job has no ranks.
    ...(count === 0 ? [] : [`${counted(count, 'rank')} on ${counted(hosts.size, 'host')}`]),
    `attempt ${attempt}`,
    `${state.kind}${ran}`,
    ...(ring === undefined ? [] : [`ring ${formatBitRate(ring.bitsPerSecond)}`]),
  ].join(' · ')
}

/** `12:31`, `1:02:31` */
function clockText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const parts = [Math.floor(seconds / 60) % 60, seconds % 60].map((part) => String(part).padStart(2, '0'))
  return seconds < 3600 ? `${Number(parts[0])}:${parts[1]}` : `${Math.floor(seconds / 3600)}:${parts.join(':')}`
}

const MOST_CONSEQUENCES = 3

/** The first failure, then what came of it. */
function failureTexts(job: Job): readonly string[] {
  const { state, spec } = job
  if (!('places' in state)) return []
  const failures = failuresOf(spec, state)
  const first = formatFirstFailure(failures)
  const cause = state.kind === 'ending' && state.cause?.kind === 'refused' ? state.cause.reason : undefined
  const reason = isFinal(state) ? state.reason : cause
  // Ranks that Muster stopped have not failed by themselves; the reason of a job that failed by its ranks is that same sentence.
  if (reason !== undefined && reason !== first) return [reason]
  const isStopped = state.kind === 'cancelled' || (state.kind === 'ending' && state.stop !== undefined)
  if (first === undefined || isStopped) return []
  const others = rankFailures(failures)
    .slice(1)
    .map((one) => `${one.title} on ${one.host}, ${endWords(one)}`)
  const more = others.length > MOST_CONSEQUENCES ? [`${others.length - MOST_CONSEQUENCES} more`] : []
  const shown = [...others.slice(0, MOST_CONSEQUENCES), ...more]
  return [first, ...(shown.length === 0 ? [] : [`Consequences: ${shown.join('; ')}`])]
}

/** Ranks that wait in the same function of the kernel are named together. */
function silenceTexts({ silence, hosts, cpuOf }: RankPicture): readonly string[] {
  if (silence === undefined) return []
  const { quietS, watchedS, usesCpu } = silence
  const quiet = `no rank has written anything for ${ageText(quietS * 1000)}`
  if (usesCpu) {
    const rows = [...hosts.values()].flat()
    const busy = rows.filter((row) => (cpuOf(row) ?? 0) > 0.5).map(({ rank }) => rank)
    const who = busy.length === rows.length ? 'all ranks use' : `${busy.length} of ${rows.length} ranks use`
    return [`quiet: ${quiet}; ${who} a core (MPI and NCCL do so also while they wait). s shows the stack of a rank.`]
  }
  const waits = Map.groupBy([...hosts.values()].flat(), ({ reading }) => {
    const { state = '', waitsIn } = reading?.process ?? {}
    return state === '' ? '' : `${waitsIn ?? 'an unknown place'}${state === 'D' ? ' (disk)' : ''}`
  })
  const where = [...waits].flatMap(([name, rows]) =>
    name === ''
      ? []
      : [`${rows.length === 1 ? 'rank' : 'ranks'} ${formatNumberSet(rows.map(({ rank }) => rank))} in ${name}`],
  )
  return [
    `looks stuck: ${quiet}, and none used its processor in the last ${ageText(watchedS * 1000)}. s shows the stack of a rank.`,
    `Waiting: ${where.join('; ')}`,
  ]
}

const MOST_LAGS = 3

function lagTexts({ lags, hosts }: RankPicture, samples: ReadonlyMap<string, Sample>): readonly string[] {
  const rows = [...hosts.values()].flat().filter(({ rank }) => lags.has(rank))
  const texts = rows.slice(0, MOST_LAGS).map((row) => {
    const use = usageText(samples.get(row.host))
    return `${formatLag(row.title, lags.get(row.rank) as Lag)} (${row.host}${use === '' ? '' : `: ${use}`})`
  })
  return rows.length > MOST_LAGS ? [...texts, `and ${rows.length - MOST_LAGS} more are behind`] : texts
}

/** `CPU 34%, GPU 96% 71 °C, in 941M, out 12M`: bits a second. Empty: nothing is known. */
function usageText(sample: Sample | undefined): string {
  if (sample === undefined) return ''
  const gpus = sample.gpus.map(({ id, busy, celsius }) =>
    [
      `GPU ${id}`,
      ...(busy === undefined ? [] : [percentOf(busy)]),
      ...(celsius === undefined ? [] : [`${celsius} °C`]),
    ].join(' '),
  )
  const { receivedBytes, sentBytes } = sample
  return [
    `CPU ${percentOf(sample.cpu)}`,
    ...gpus,
    ...(receivedBytes === undefined ? [] : [`in ${shortBitRate(receivedBytes * 8)}`]),
    ...(sentBytes === undefined ? [] : [`out ${shortBitRate(sentBytes * 8)}`]),
  ].join(', ')
}

function selectedRow(row: RankRow, { sortOf, cpuOf, wordsOf }: RankPicture, theme: Theme): Row {
  const { reading, code, restart, title, host, claimedBy } = row
  const sort = sortOf(row)
  const cpu = cpuOf(row)
  const process = row.state === 'running' ? reading?.process : undefined
  const facts = [
    sort === 'unknown' ? 'its host cannot be read' : sort === 'claimed' ? row.state : sort,
    ...(claimedBy === undefined ? [] : [`claimed by ${foldHostSet(claimedBy)}`]),
    ...(code === undefined ? [] : [`exit ${code}`]),
    ...(restart === 0 ? [] : [`restart ${restart}`]),
    ...(reading?.step === undefined ? [] : [`step ${reading.step}`]),
    ...(process === undefined || reading === undefined ? [] : [wroteText(reading)]),
    ...(cpu === undefined || process === undefined ? [] : [`${percentOf(cpu)} CPU`]),
  ]
  return [
    { text: printable(` ▸ ${title} on ${host}: `), style: boldStyle(theme.accent) },
    { text: facts.join(', '), style: styleOf(theme.text) },
    { text: printable(`  ${wordsOf(row) ?? ''}`), style: mutedStyle(theme) },
  ]
}

/** Its file is as old as its start if it wrote nothing. */
const wroteText = ({ bytes, quietS }: RankReading): string =>
  bytes === 0 ? 'wrote nothing yet' : `wrote ${ageText(quietS * 1000)} ago`

const folded = new WeakMap<readonly RankTail[], readonly FoldedLine[]>()

/** Folding is done once for each reading. */
function foldedLines(tails: readonly RankTail[]): readonly FoldedLine[] {
  const known = folded.get(tails) ?? foldLines(tails)
  folded.set(tails, known)
  return known
}

const MOST_SET = 12

/** What stands below the ranks, and its title. */
export function belowDocument(picture: RankPicture, view: RanksView, columns: number, theme: Theme) {
  const { tails, selected, count } = picture
  const text = styleOf(theme.text)
  const muted = mutedStyle(theme)
  const who = selected === undefined ? 'no rank' : `${selected.title} on ${selected.host}`
  if (view.below === 'stack') return { title: `stack of ${who}`, document: stackDocument(view, columns, theme) }
  if (view.below === 'log of rank') {
    const own = selected === undefined ? [] : tailsOf(tails, selected)
    const rows = own.flatMap(({ lines }) => lines.map((line): Row => [{ text: ` ${printable(line)}`, style: text }]))
    return {
      title: `log of ${who}`,
      document: documentOf(rows.length > 0 ? rows : [[{ text: ` ${noneText(picture, selected)}`, style: muted }]]),
    }
  }
  const all = foldedLines(tails)
  const odd = all.filter(({ isOdd }) => isOdd)
  const lines = view.below === 'log' ? all : odd
  const setOf = (line: FoldedLine) =>
    `${line.ranks.length === count ? 'all' : clip(formatRanksOf(line), MOST_SET)}${line.varies ? '~' : ''}`
  const width = Math.max(4, ...lines.map((line) => textWidth(setOf(line))))
  const few = all.length === 0 ? '' : `, ${odd.length} of ${all.length} lines differ`
  const numbers = lines.some(({ varies }) => varies) ? ', ~ in numbers' : ''
  const title =
    view.below === 'log'
      ? `log of ${count} ranks${few}${numbers}${all.length === 0 ? '' : deletedText(picture)}`
      : `lines of at most half of the ranks: ${odd.length} of ${all.length}${numbers}`
  const document: RowDocument = {
    head: [],
    length: Math.max(1, lines.length),
    row(index) {
      const line = lines[index]
      if (line === undefined)
        return [
          {
            text: all.length === 0 ? ` ${noneText(picture)}` : ' every line is from more than half of the ranks',
            style: muted,
          },
        ]
      const style = line.isOdd ? boldStyle(theme.warning) : muted
      return [
        { text: `${line.isOdd ? '▸' : ' '}${padEnd(setOf(line), width)}  `, style },
        { text: printable(line.text), style: line.isOdd ? boldStyle(theme.warning) : text },
      ]
    },
  }
  return { title, document }
}

/** In place of the output of a rank, or of all of them. */
function noneText({ hosts, deleted }: RankPicture, row?: RankRow): string {
  const rows = row === undefined ? [...hosts.values()].flat() : [row]
  return rows.some(({ bundle }) => deleted.has(bundle)) ? 'the output was deleted' : 'no output yet'
}

/** `, deleted on n2`; empty: nothing was. */
function deletedText({ hosts, deleted }: RankPicture): string {
  const names = [...hosts].flatMap(([host, rows]) => (rows.some(({ bundle }) => deleted.has(bundle)) ? [host] : []))
  return names.length === 0 ? '' : `, deleted on ${foldHostSet(names)}`
}

function stackDocument({ stack }: RanksView, columns: number, theme: Theme): RowDocument {
  if (stack === undefined) return documentOf([[{ text: ' reading …', style: mutedStyle(theme) }]])
  const trouble =
    stack.trouble === undefined ? [] : wrapRows(printable(stack.trouble), columns, ' ', styleOf(theme.danger))
  return documentOf([
    ...trouble,
    ...stack.lines.map((line): Row => [{ text: ` ${printable(line)}`, style: styleOf(theme.text) }]),
  ])
}
