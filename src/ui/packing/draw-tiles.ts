/** The hosts of the Packing tab as tiles with bars and blocks. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, clipName, partsWidth, textWidth } from '../../base/text-width.ts'
import { timeText, whenText } from '../../base/time-text.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import { boldStyle, mutedStyle, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import type { RealGpu, RealUse } from '../jobs/queue-view.ts'
import { clipRow, percentOf, type Row } from '../rows/rows-pane.ts'
import type { Block, BlockSpot, Tile, TileLayout } from './arrange.ts'
import { blockRows, colourGroup, PAST_WORDS, pastRows, pastStyle } from './blocks.ts'
import { nameWithTitle } from './engine-picture.ts'
import { cpuWords, gib, warn } from './figure-rows.ts'
import { isInUse, type Past, type PastCell, pastCells, type UsedPart, UseHistory } from './history.ts'
import type { Group, PackingInput } from './packing-input.ts'
import type { JobCard, PackedCluster } from './picture.ts'
import { LOOSE_JOB } from './ray-picture.ts'
import { WHAT_IF_JOB } from './what-if.ts'

/** Strips need this many rows of a block. */
const STRIP_FROM = 3

/** Columns of a block that is used without a job for words about it. */
const LEAST_WORDS = 10

/** Of a host, beside its use. */
const LEAST_NAME = 8

/** With the use of cores, memory and GPUs as far as there is room. */
function titleOf(name: string, used: RealUse | undefined, columns: number): string {
  if (used === undefined) return clipName(name, columns)
  const percent = (share: number) => `${Math.round(share * 100)} %`
  // Never without what it is of; the memory is left out first.
  const cpu = ` · uses ${percent(used.cpu)}`
  const long = `${cpu} cpu, ${gib(used.memoryBytes)}G`
  const withGpus = used.gpu === undefined ? [] : [`${long}, ${percent(used.gpu)} gpu`]
  const whole = [...withGpus, long, `${cpu} cpu`].find((use) => textWidth(name + use) <= columns)
  if (whole !== undefined) return name + whole
  const short = ` · ${percent(used.cpu)} cpu`
  const room = columns - textWidth(short)
  return room < Math.min(LEAST_NAME, textWidth(name)) ? clipName(name, columns) : clipName(name, room) + short
}

type PictureInput = {
  readonly groups: readonly Group[]
  readonly arrangement: TileLayout
  readonly offset: number
  readonly rows: number
  readonly columns: number
  readonly spot: BlockSpot | undefined
  readonly input: PackingInput
}

/** The visible rows of all tiles; `pasts`: what their strips show. */
export function pictureRows({ groups, arrangement, offset, rows, columns, spot, input }: PictureInput) {
  const canvas = new Canvas(columns, rows)
  const pasts = new Set<Past>()
  arrangement.headings.forEach((row, index) => {
    const group = groups[index]
    if (group !== undefined) canvas.put(row - offset, 0, headingRow(group, columns, input.theme))
  })
  for (const tile of arrangement.tiles) {
    if (tile.rect.row + tile.rect.height <= offset || tile.rect.row >= offset + rows) continue
    const group = groups[tile.group]
    if (group !== undefined) drawTile(canvas, tile, { group, arrangement, offset, spot, input, pasts })
  }
  return { lines: canvas.lines(), pasts }
}

/** Rows that are filled piece by piece, from the left to the right. */
class Canvas {
  readonly #columns: number
  readonly #rows: { spans: Span[]; width: number }[]

  constructor(columns: number, rows: number) {
    this.#columns = columns
    this.#rows = Array.from({ length: rows }, () => ({ spans: [], width: 0 }))
  }

  put(row: number, column: number, spans: Row): void {
    const own = this.#rows[row]
    if (own === undefined) return
    if (column > own.width) own.spans.push({ text: ' '.repeat(column - own.width), style: PLAIN })
    const clipped = clipRow(spans, this.#columns - column)
    own.spans.push(...clipped)
    own.width = Math.max(own.width, column) + partsWidth(clipped)
  }

  lines(): readonly Row[] {
    return this.#rows.map(({ spans }) => spans)
  }
}

export const PLAIN = styleOf(undefined)

function headingRow({ title, figures, trouble, alert }: Group, columns: number, theme: Theme): Row {
  const name: Span = { text: `── ${title} `, style: boldStyle(theme.accent) }
  const rest: Row =
    trouble === undefined ? (figures[0] ?? []) : [{ text: ` ${printable(trouble)} `, style: mutedStyle(theme) }]
  const short = [name, ...rest]
  const long = [...short, { text: ' ', style: PLAIN }, ...(figures[1] ?? [])]
  const warning: Row = alert === undefined ? [] : [{ text: `  ${alert}`, style: warn(theme) }]
  const row = [long, [...short, ...warning]].find((one) => partsWidth(one) <= columns) ?? short
  const left = columns - partsWidth(row) - 1
  return left > 0 ? [...row, { text: ` ${'─'.repeat(left)}`, style: styleOf(theme.frame) }] : row
}

type TileContext = {
  readonly group: Group
  readonly arrangement: TileLayout
  readonly offset: number
  readonly spot: BlockSpot | undefined
  readonly input: PackingInput
  readonly pasts: Set<Past>
}

function drawTile(canvas: Canvas, tile: Tile, context: TileContext): void {
  const { group, arrangement, offset, spot, input } = context
  const { host, rect, blocks } = tile
  const { theme } = input
  const isOwn = spot?.group === tile.group && spot.host === host.name
  const nameStyle = isOwn ? boldStyle(theme.accent) : boldStyle(theme.text)
  const trouble = group.cluster.down[host.name]
  const top = rect.row - offset
  if (rect.height === 1) {
    const name = clipName(host.name, arrangement.nameColumns)
    const [text, style] = trouble === undefined ? [name, nameStyle] : [`${name}!`, boldStyle(theme.danger)]
    canvas.put(top, rect.column, [{ text, style }])
  } else canvas.put(top, rect.column, titleRow(tile, nameStyle, context))
  for (const block of blocks) {
    const isChosen = isOwn && spot.part === block.part
    const rows = drawBlockAt(block, tile, isChosen, context)
    for (const [at, row] of rows.entries()) canvas.put(top + block.rect.row + at, rect.column + block.rect.column, row)
  }
  if (rect.height > 1 || host.devices.length === 0) return
  const cores = coresText(host)
  const end = blocks.reduce((most, block) => Math.max(most, block.rect.column + block.rect.width), 0)
  // No job gets its free devices where all its cores are held.
  const style = host.strandedMilli > 0 ? warn(theme) : styleOf(theme.text)
  if (rect.width - end > cores.length)
    canvas.put(top, rect.column + rect.width - cores.length, [{ text: cores, style }])
}

/** The name, why the host is down, or its amounts and its use, and a line to the end of the tile. */
function titleRow(
  { host, rect, blocks }: Tile,
  style: Span['style'],
  { group: { cluster, used }, input }: TileContext,
): Row {
  const { theme } = input
  const trouble = cluster.down[host.name]
  const hasBar = (part: Block['part']) => blocks.some((block) => block.part === part)
  const amounts = hasBar('cores') ? '' : ` ${coresText(host)}`
  const name = titleOf(host.name, used?.get(host.name), rect.width - amounts.length - 1)
  const row: Span[] =
    trouble === undefined
      ? [
          { text: name.slice(0, host.name.length), style },
          { text: name.slice(host.name.length), style: styleOf(theme.text) },
          { text: amounts, style: mutedStyle(theme) },
        ]
      : [
          { text: `${clipName(host.name, Math.max(LEAST_NAME, Math.floor(rect.width / 3)))} `, style },
          {
            text: clip(printable(trouble), Math.max(1, rect.width - host.name.length - 1)),
            style: boldStyle(theme.danger),
          },
        ]
  const left = rect.width - partsWidth(row) - 1
  return left > 0 ? [...row, { text: ` ${'─'.repeat(left)}`, style: styleOf(theme.frame) }] : clipRow(row, rect.width)
}

const coresText = (host: PackedHost): string => (host.unknown?.includes('cores') ? '-' : `${cpuWords(host)}c`)

function drawBlockAt({ part, rect }: Block, tile: Tile, isChosen: boolean, context: TileContext): readonly Row[] {
  const { host } = tile
  const { group, input, pasts } = context
  const { cluster, used } = group
  const { theme, nowMs, isByUser } = input
  const style = {
    theme,
    isChosen,
    isDown: cluster.down[host.name] !== undefined,
    letters: input.letters,
    groupOf: (job: number) => colourGroup(cluster.cards.get(job) ?? { job, user: '' }, isByUser),
  }
  const stripRows = (columns: number, height: number, of: number | 'cores') => {
    const cells = blockPast(group, host, of, columns, input)
    for (const { past } of cells) pasts.add(past)
    return pastRows(cells, height, theme)
  }
  const strip = rect.height < STRIP_FROM ? 0 : rect.height < 8 ? 1 : rect.height < 14 ? 2 : 3
  if (typeof part !== 'number') {
    const key = part === 'cores' ? 'cpuMilli' : 'memoryBytes'
    const shares = host.holdings.map(({ job, [key]: amount }) => ({ job, amount }))
    const own = part === 'cores' ? strip : 0
    const size = { width: rect.width, height: rect.height - own }
    const linesOf = (job: number) => [cardTitle(cluster, job, host, undefined)]
    if (tile.rect.height === 1)
      return barRows(shares, host[key], size, { ...style, linesOf: () => [] }, '', coresText(host))
    const label = part === 'cores' ? 'cpu ' : 'mem '
    const isUnknown = host.unknown?.includes(part)
    const text = isUnknown
      ? '-'
      : part === 'cores'
        ? cpuWords(host)
        : `${gib(host.memoryUsedBytes)}/${gib(host.memoryBytes)}G`
    const width = Math.max(text.length, 6)
    const bar = barRows(
      shares,
      host[key],
      size,
      { ...style, linesOf: size.height > 1 ? linesOf : () => [] },
      label,
      text.padStart(width),
      part === 'cores' && host.strandedMilli > 0,
    )
    if (own === 0) return bar
    const inner = Math.max(1, rect.width - label.length - width - 1)
    return [...bar, ...stripRows(inner, own, 'cores').map((row): Row => [{ text: '    ', style: PLAIN }, ...row])]
  }
  const shares = (host.devices[part] ?? []).map(({ job, milli }) => ({ job, amount: milli }))
  const isAlone = shares.length === 1
  const use = used?.get(host.name)?.gpus?.get(part)
  const linesOf = (job: number) => {
    const card = cluster.cards.get(job)
    return [
      cardTitle(cluster, job, host, part),
      ...(isAlone && use !== undefined ? [gpuText(use)] : []),
      ...(card === undefined || card.user === '' ? [] : [printable(card.user)]),
      ...(card === undefined ? [] : timeLines(card, nowMs, true)),
    ].filter((line) => line !== '')
  }
  const height = rect.height - strip
  const isTaken = shares.length === 0 && cluster.key === 'queue' && use !== undefined && isInUse(use)
  if (isTaken) pasts.add('taken')
  const takenLines = isTaken
    ? rect.width < LEAST_WORDS
      ? []
      : [`GPU ${part} ${PAST_WORDS.taken[1]}`, gpuText(use), processesText(use)].filter((line) => line !== '')
    : undefined
  return [
    ...blockRows(
      shares,
      WHOLE_MILLI,
      { width: rect.width, height },
      {
        ...style,
        linesOf,
        freeText: `GPU ${part}`,
        takenLines,
      },
    ),
    ...(strip === 0 ? [] : stripRows(rect.width, strip, part)),
  ]
}

const NO_USE = new UseHistory()

/** The last ten minutes of a device, or of the cores of a host. */
export function blockPast(
  { holds, sinceMs }: Group,
  { name }: PackedHost,
  part: UsedPart,
  columns: number,
  { history = NO_USE, machines, nowMs }: PackingInput,
): readonly PastCell[] {
  return pastCells({ use: history, holds, sinceMs }, name, machines?.get(name) ?? name, part, columns, nowMs)
}

/** A label, cells and figures; the label and the figures are in the first row only. */
function barRows(
  shares: Parameters<typeof blockRows>[0],
  whole: number,
  { width, height }: { readonly width: number; readonly height: number },
  block: Parameters<typeof blockRows>[3],
  label: string,
  text: string,
  isWarning = false,
): readonly Row[] {
  const { theme } = block
  const cells = Math.max(1, width - label.length - text.length - 1)
  return blockRows(shares, whole, { width: cells, height }, block).map((row, at): Row => {
    const isFirst = at === 0
    return [
      { text: isFirst ? label : ' '.repeat(label.length), style: mutedStyle(theme) },
      ...row,
      {
        text: isFirst ? ` ${text}` : ' '.repeat(text.length + 1),
        style: isWarning ? warn(theme) : styleOf(theme.text),
      },
    ]
  })
}

/** The name of the job of a block, or of what an engine runs there for others. */
function cardTitle(cluster: PackedCluster, job: number, host: PackedHost, device: number | undefined): string {
  if (job === LOOSE_JOB) {
    const [other] = cluster.othersOn(host.name, device)
    return other === undefined ? '' : printable(nameWithTitle(other, []))
  }
  return job === WHAT_IF_JOB ? 'what-if' : printable(cluster.cards.get(job)?.title ?? '')
}

const gpuText = ({ busy, usedBytes, totalBytes }: RealGpu): string =>
  [
    busy === undefined ? '' : percentOf(busy),
    usedBytes === undefined || totalBytes === undefined ? '' : `${gib(usedBytes)}/${gib(totalBytes)}G`,
  ]
    .filter((part) => part !== '')
    .join(' ')

/** Pids of what computes on it; empty: none is known. */
export function processesText({ processes = [] }: RealGpu): string {
  if (processes.length === 0) return ''
  const shown = processes.slice(0, MOST_PIDS).join(', ')
  const more = processes.length > MOST_PIDS ? ` and ${processes.length - MOST_PIDS} more` : ''
  return `${processes.length === 1 ? 'pid' : 'pids'} ${shown}${more}`
}

const MOST_PIDS = 4

/** `isShort`: without what the end follows from. */
export const timeLines = ({ sinceMs, end }: JobCard, nowMs: number, isShort = false): readonly string[] => [
  ...(sinceMs === undefined ? [] : [`since ${timeText(sinceMs, nowMs)}`]),
  ...(end === undefined ? [] : [isShort ? endText(end, nowMs).replace(/ \(.*/, '') : endText(end, nowMs)]),
]

const endText = ({ atMs, by }: NonNullable<JobCard['end']>, nowMs: number): string =>
  atMs <= nowMs && by === 'estimate' ? 'later than estimated' : `ends ${whenText(atMs, nowMs)} (${by})`

/** What the strips mean, as far as there are any. */
export function pastBadge(pasts: ReadonlySet<Past>, columns: number, theme: Theme): readonly Span[] {
  const words = pastWordsOf(pasts, theme)
  const row = [{ text: ' last 10 min:', style: mutedStyle(theme) }, ...words.flat()]
  return words.length > 0 && partsWidth(row) <= columns - 14 ? row : []
}

/** The same, wrapped. */
export function pastWords(pasts: ReadonlySet<Past>, columns: number, theme: Theme): readonly Row[] {
  const rows: Span[][] = []
  for (const word of pastWordsOf(pasts, theme)) {
    const last = rows.at(-1)
    if (last === undefined || partsWidth([...last, ...word]) > columns) rows.push([...word])
    else last.push(...word)
  }
  return rows
}

const pastWordsOf = (pasts: ReadonlySet<Past>, theme: Theme): readonly Row[] =>
  (Object.keys(PAST_WORDS) as (keyof typeof PAST_WORDS)[])
    .filter((past) => pasts.has(past))
    .map((past) => [
      { text: ` ${PAST_WORDS[past][0]}`, style: pastStyle(past, theme) },
      { text: ` ${PAST_WORDS[past][1]} `, style: mutedStyle(theme) },
    ])
