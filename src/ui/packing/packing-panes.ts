/** The Packing tab: figures, hosts as tiles with a block for each device, the selected block, the jobs with their letters, and those that wait. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, clipName, textWidth } from '../../base/text-width.ts'
import { timeText, whenText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import {
  type DeviceHold,
  fragmentation,
  holdsOf,
  type PackedHost,
  packingFigures,
} from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import {
  type EnginePlace,
  NO_SCHEDULER,
  pictureAt,
  type QueueStatus,
  type QueueView,
  type RealGpu,
  type RealUse,
} from '../jobs/queue-view.ts'
import type { RayStatus } from '../ray/ray-view.ts'
import {
  clipRow,
  documentOf,
  percentOf,
  type Row,
  type RowDocument,
  rowsPane,
  rowWidth,
  splitColumns,
  splitRows,
  wrapRows,
} from '../rows/rows-pane.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { arrange, type Block, type BlockSpot, firstSpot, spotIn, type Tile, type TileLayout } from './arrange.ts'
import { blockRows, groupOfUser, jobSpan, PAST_WORDS, pastRows, pastStyle, signOf } from './blocks.ts'
import { type EnginePicture, nameWithTitle } from './engine-picture.ts'
import { type Past, pastCells, UseHistory } from './history.ts'
import {
  clusterOfEngine,
  clusterOfQueue,
  clusterOfRay,
  type JobCard,
  type PackedCluster,
  type WaitingCard,
} from './picture.ts'
import { LOOSE_JOB, type RayPicture } from './ray-picture.ts'
import {
  SLIDERS,
  type Slider,
  STRATEGIES,
  type TryOut,
  WHAT_IF_JOB,
  WHAT_IF_POLICIES,
  type WhatIf,
  whatIfWords,
  withTrial,
} from './what-if.ts'

type Sources = readonly { readonly title: string; readonly isShown: boolean }[]

/** A cluster that is drawn; a string: why it cannot be. */
export type ShownCluster =
  | { readonly kind: 'queue' }
  | { readonly kind: 'ray'; readonly picture: RayPicture | string; readonly history?: Remembered | undefined }
  | {
      readonly kind: 'engine'
      readonly place: EnginePlace
      readonly picture: EnginePicture | string
      readonly history?: Remembered | undefined
    }

/** What the console has seen of a cluster. */
export type Remembered = { readonly holds: readonly DeviceHold[]; readonly sinceMs: number | undefined }

export type PackingInput = {
  /** What can be shown, and which of it is. */
  readonly sources?: Sources
  readonly status: QueueStatus | undefined
  readonly trouble: string | undefined
  /** The queue's own hosts unless given. */
  readonly shown?: readonly ShownCluster[]
  readonly whatIf?: { readonly gang: WhatIf; readonly trial: TryOut | undefined } | undefined
  /** By host, or by the address of one. */
  readonly used?: ReadonlyMap<string, RealUse>
  /** Hosts by their addresses, as an engine may name its nodes. */
  readonly machines?: ReadonlyMap<string, string>
  readonly history?: UseHistory
  readonly spot?: BlockSpot | undefined
  readonly isInWaiting?: boolean
  readonly waitingOffset?: number
  readonly isByUser?: boolean
  /** Rows of the picture scrolled out above. */
  readonly offset: number
  readonly rect: Rect
  readonly theme: Theme
  readonly nowMs: number
  /** A click on a block, and the wheel over the jobs that wait. */
  select?(spot: BlockSpot): void
  scrollWaiting?(rows: number): void
}

/** What was drawn, for keys and clicks. */
export type PackingScene = {
  readonly panes: readonly PaneView[]
  /** Undefined: there are no hosts. */
  readonly arrangement?: TileLayout
  /** Where its first visible row is on the screen. */
  readonly area: Rect
  readonly offset: number
  readonly lastOffset: number
  readonly spot?: BlockSpot | undefined
  readonly lastWaitingOffset: number
}

export function queueInput(state: ConsoleState, rect: Rect, theme: Theme, nowMs: number): PackingInput {
  const { queue } = state
  const { status, trouble, whatIf, trial, used, packingOffset: offset, picture } = queue
  const sources = sourcesOf(state).map((source) => ({ title: sourceTitle(source), isShown: source === picture }))
  const { spot, isInWaiting, waitingOffset, isByUser } = queue
  return {
    ...{ sources, status, trouble, whatIf: whatIf && { gang: whatIf, trial }, used, offset, rect, theme, nowMs },
    ...{ spot, isInWaiting: isInWaiting === true, waitingOffset, isByUser: isByUser === true },
    shown: shownPlaces(state).map((place): ShownCluster => {
      if (place === 'queue') return { kind: 'queue' }
      if (place === 'ray') return { kind: 'ray', picture: rayTrouble(state.ray) }
      return { kind: 'engine', place, picture: pictureAt(queue, place) ?? NO_ANSWER }
    }),
  }
}

/** Why Ray cannot be drawn. */
function rayTrouble({ view }: RayStatus): string {
  const reason = 'reason' in view ? view.reason : 'its head is not open in the console'
  return reason === '' ? NO_ANSWER : `the head of Ray does not answer: ${reason}`
}

export type Source = QueueView['picture']
type Place = Exclude<Source, 'all'>

/** What the Packing tab can show, in the order of `y`. */
export function sourcesOf(state: Pick<ConsoleState, 'ray' | 'queue'>): readonly Source[] {
  const places = placesOf(state)
  return places.length > 1 ? ['all', ...places] : places
}

function placesOf({ ray, queue }: Pick<ConsoleState, 'ray' | 'queue'>): readonly Place[] {
  const withRay = ray.view.kind !== 'none' || queue.picture === 'ray'
  return ['queue', ...(withRay ? (['ray'] as const) : []), ...queue.clusters]
}

/** The clusters of the picture. */
export const shownPlaces = (state: Pick<ConsoleState, 'ray' | 'queue'>): readonly Place[] =>
  state.queue.picture === 'all' ? placesOf(state) : [state.queue.picture]

export const sourceTitle = (source: Source): string =>
  source === 'all' ? 'all' : source === 'queue' ? 'own hosts' : source === 'ray' ? 'Ray' : placeTitle(source)

/** `y:  own hosts  [Slurm]  K8s`; none where there is nothing to choose. */
export function sourcesRow(sources: Sources = [], theme: Theme): readonly Row[] {
  if (sources.length < 2) return []
  const cells = sources.map(
    ({ title, isShown }): Span =>
      isShown
        ? { text: ` [${title}] `, style: boldStyle(theme.accent) }
        : { text: `  ${title}  `, style: mutedStyle(theme) },
  )
  return [[{ text: ' y:', style: boldStyle(theme.text) }, ...cells]]
}

export const NO_ANSWER = 'no answer yet …'

const MOST_LEGEND_NAME = 20
const MOST_WAITING_NAME = 40
/** Of a host, beside its use. */
const LEAST_NAME = 8
/** From these sizes on, jobs and the selected block are beside the picture. */
const SIDE_COLUMNS = 150
const SIDE_ROWS = 24
/** Strips need this many rows of a block. */
const STRIP_FROM = 3

/** A cluster as it is drawn. */
type Group = {
  readonly title: string
  /** A string: why there is nothing to draw. */
  readonly cluster: PackedCluster | string
  readonly figures: readonly Row[]
  readonly sinceMs?: number | undefined
  readonly holds: ReadonlyMap<string, readonly DeviceHold[]>
}

export const packingPanes = (input: PackingInput): readonly PaneView[] => drawPacking(input).panes

export function drawPacking(input: PackingInput): PackingScene {
  const { rect, theme, shown = [{ kind: 'queue' }] } = input
  const groups = shown.map((one) => groupOf(one, input))
  const [only] = groups
  const nothing = { area: rect, offset: 0, lastOffset: 0, lastWaitingOffset: 0 }
  const title =
    groups.length === 1 && only !== undefined && shown[0]?.kind !== 'queue' ? `packing of ${only.title}` : 'packing'
  if (groups.length === 1 && typeof only?.cluster === 'string') {
    const style = input.trouble === undefined ? mutedStyle(theme) : boldStyle(theme.danger)
    const words = wrapRows(printable(only.cluster), rect.width - 2, '  ', style)
    const document = documentOf([...sourcesRow(input.sources, theme), [], ...words])
    return { ...nothing, panes: [rowsPane({ id: ' packing', title, hasKeys: true, document, rect, theme })] }
  }
  const waiting = groups.flatMap(({ cluster }) => (typeof cluster === 'string' ? [] : cluster.waiting))
  const isWide = rect.width >= SIDE_COLUMNS && rect.height >= SIDE_ROWS
  const parts = isWide ? besides(rect) : below(rect, waiting.length > 0)
  const head = headRows(groups, input, parts.picture)
  const inside = { ...parts.picture, column: parts.picture.column + 1, row: parts.picture.row + 1 }
  const columns = parts.picture.width - 2
  const hosts = groups.map(({ cluster }) => (typeof cluster === 'string' ? [] : cluster.hosts))
  const room = parts.picture.height - 2 - head.length
  const legendRoom = isWide ? 0 : Math.max(1, Math.min(4, Math.floor(rect.height / 8)))
  const first = arrange(hosts, columns, Math.max(1, room - legendRoom))
  const legend = isWide ? [] : legendRows(cardsOf(groups, first, input), legendRoom, columns, input)
  const rows = Math.max(1, room - legend.length)
  const arrangement = legend.length === legendRoom ? first : arrange(hosts, columns, rows)
  const lastOffset = Math.max(0, arrangement.rows - rows)
  const offset = Math.max(0, Math.min(input.offset, lastOffset))
  const spot = input.spot !== undefined && hasSpot(arrangement, input.spot) ? input.spot : firstSpot(arrangement)
  const { lines, pasts } = pictureRows({ groups, arrangement, offset, rows, columns, spot, input })
  const pane = (
    id: string,
    paneTitle: string,
    area: Rect,
    document: RowDocument,
    hasKeys = false,
    badges: readonly Span[] = [],
  ) => rowsPane({ id, title: paneTitle, hasKeys, badges, document, rect: area, theme })
  const isWaitingShown = waiting.length > 0 && parts.waiting !== undefined
  const isInWaiting = input.isInWaiting === true && isWaitingShown
  const waitingCount = groups.reduce(
    (sum, { cluster }) => sum + (typeof cluster === 'string' ? 0 : cluster.waitingCount),
    0,
  )
  const waitingRows = isWaitingShown
    ? waiting.flatMap((one) => waitingCardRows(one, (parts.waiting?.width ?? 0) - 2, input))
    : []
  const place = { offset: input.waitingOffset ?? 0, isFollowing: false }
  return {
    panes: [
      rowsPane({
        id: ' packing',
        title,
        hasKeys: !isInWaiting,
        badges: [...scrollBadge(offset, rows, arrangement.rows, theme), ...pastBadge(pasts, columns, theme)],
        document: documentOf([...head, ...legend, ...lines]),
        list: {
          select(row, column) {
            const at = spotIn(arrangement, column, row - head.length - legend.length + offset)
            if (at !== undefined) input.select?.(at)
          },
        },
        rect: parts.picture,
        theme,
      }),
      ...(parts.chosen === undefined ? [] : [chosenPane(groups, spot, parts.chosen, input)]),
      ...(parts.jobs === undefined
        ? []
        : [
            pane(
              ' jobs',
              'jobs',
              parts.jobs,
              documentOf(jobRows(cardsOf(groups, arrangement, input), parts.jobs, input)),
            ),
          ]),
      ...(isWaitingShown && parts.waiting !== undefined
        ? [
            rowsPane({
              id: ' waiting',
              title: `waiting: ${waitingCount}`,
              hasKeys: isInWaiting,
              document: documentOf(waitingRows),
              place,
              scroll: (by) => input.scrollWaiting?.(by),
              rect: parts.waiting,
              theme,
            }),
          ]
        : []),
    ],
    arrangement,
    area: { ...inside, row: inside.row + head.length + legend.length, width: columns, height: rows },
    offset,
    lastOffset,
    spot,
    lastWaitingOffset: Math.max(0, waitingRows.length - Math.max(1, (parts.waiting?.height ?? 2) - 2)),
  }
}

type Parts = { readonly picture: Rect; readonly chosen?: Rect; readonly jobs?: Rect; readonly waiting?: Rect }

/** The picture at the left; the selected block, the jobs and those that wait at the right. */
function besides(rect: Rect): Parts {
  const width = Math.max(44, Math.min(64, Math.round(rect.width * 0.27)))
  const [picture, side] = splitColumns(rect, rect.width - width)
  const [chosen, rest] = splitRows(side, Math.max(8, Math.floor(rect.height * 0.25)))
  const [jobs, waiting] = splitRows(rest, Math.ceil(rest.height * 0.5))
  return { picture, chosen, jobs, waiting }
}

/** The picture above; the selected block and the jobs that wait below. */
function below(rect: Rect, hasWaiting: boolean): Parts {
  if (rect.height < 14) return { picture: rect }
  const height = Math.max(6, Math.min(10, Math.floor(rect.height * 0.24)))
  const [picture, bottom] = splitRows(rect, rect.height - height)
  if (!hasWaiting) return { picture, chosen: bottom }
  const [chosen, waiting] = splitColumns(bottom, Math.floor(bottom.width / 2))
  return { picture, chosen, waiting }
}

const hasSpot = ({ tiles }: TileLayout, { group, host, part }: BlockSpot): boolean =>
  tiles.some(
    (tile) => tile.group === group && tile.host.name === host && tile.blocks.some((block) => block.part === part),
  )

function groupOf(shown: ShownCluster, { status, trouble, whatIf, rect, theme }: PackingInput): Group {
  const columns = rect.width - 2
  if (shown.kind === 'queue') {
    const empty = { title: 'own hosts', figures: [], holds: new Map() }
    if (trouble !== undefined) return { ...empty, cluster: trouble }
    if (status === undefined) return { ...empty, cluster: 'reading the queue …' }
    if (status.hosts.length === 0) return { ...empty, cluster: 'no hosts in hosts.yaml' }
    const { gang, trial } = whatIf ?? {}
    const hosts = gang && trial ? withTrial(status.hosts, gang, trial) : status.hosts
    const holds = [...status.active.flatMap(holdsOf), ...(status.past ?? [])]
    return {
      title: 'own hosts',
      cluster: clusterOfQueue(status, hosts, holds),
      figures: figureRows({ ...status, hosts }, columns, theme),
      holds: Map.groupBy(holds, ({ host }) => host),
    }
  }
  const title = shown.kind === 'ray' ? 'Ray' : placeTitle(shown.place)
  const { picture, history } = shown
  const holds = Map.groupBy(history?.holds ?? [], ({ host }) => host)
  const rest = { title, holds, sinceMs: history?.sinceMs ?? Number.POSITIVE_INFINITY }
  if (typeof picture === 'string') return { ...rest, cluster: picture, figures: [] }
  if (shown.kind === 'ray')
    return {
      ...rest,
      cluster: clusterOfRay(shown.picture as RayPicture),
      figures: rayFigureRows(shown.picture as RayPicture, theme),
    }
  const engine = shown.picture as EnginePicture
  if (engine.hosts.length === 0 && engine.jobs.length === 0)
    return { ...rest, cluster: engine.note ?? `${title} has no nodes`, figures: [] }
  return {
    ...rest,
    cluster: clusterOfEngine(shown.place, engine, status?.active ?? []),
    figures: clusterFigureRows(engine, theme),
  }
}

/** What can be shown, the figures of what is, the what-if, and what fragments the free GPUs. */
function headRows(groups: readonly Group[], input: PackingInput, { width }: Rect): readonly Row[] {
  const { theme, whatIf, sources } = input
  const columns = width - 2
  const own = groups.length === 1 ? (groups[0]?.figures ?? []) : []
  if (whatIf) {
    const { gang, trial } = whatIf
    const figures = (
      groups.find(({ cluster }) => typeof cluster !== 'string' && cluster.key === 'queue')?.figures ?? []
    ).slice(0, 1)
    const effects = trial === undefined ? [] : effectRows(trial, columns, input)
    return [
      ...sourcesRow(sources, theme),
      ...figures,
      slidersRow(gang, theme),
      ...whatIfRows(gang, trial, columns, theme),
      ...effects,
    ]
  }
  const texts = groups.flatMap(({ cluster, title }) => {
    const text = typeof cluster === 'string' ? '' : fragmentationText(cluster)
    return text === '' ? [] : [groups.length === 1 ? text : `${title}: ${text}`]
  })
  const reason = texts.flatMap((text) => wrapRows(text, columns, ' ', mutedStyle(theme)).slice(0, 2))
  return [...sourcesRow(sources, theme), ...own, ...reason]
}

/** Why free GPUs are of less use than their number says; empty: they are not. */
function fragmentationText({ hosts, down }: PackedCluster): string {
  const { free, mostOnOneHost, largestHost, piecesMilli, largestPieceMilli, strandedMilli, stranded } = fragmentation(
    hosts,
    down,
  )
  const parts = [
    ...(free > mostOnOneHost && mostOnOneHost < largestHost
      ? [`${free} ${free === 1 ? 'GPU is' : 'GPUs are'} free, at most ${mostOnOneHost} on one host`]
      : []),
    ...(piecesMilli > 0
      ? [
          piecesMilli === largestPieceMilli
            ? `${gpus(piecesMilli)} is left on a shared GPU`
            : `${gpus(piecesMilli)} is left on shared GPUs, at most ${gpus(largestPieceMilli)} on one`,
        ]
      : []),
    ...(strandedMilli > 0
      ? [`${gpus(strandedMilli)} cannot be used: no core is free on ${foldHostSet(stranded)}`]
      : []),
  ]
  return parts.length === 0 ? '' : `fragmentation: ${parts.join('; ')}`
}

function whatIfRows(gang: WhatIf, trial: TryOut | undefined, columns: number, theme: Theme): readonly Row[] {
  const words = ` ${whatIfWords(gang)}: `
  const request: Span = { text: words, style: boldStyle(theme.accent) }
  if (trial === undefined) return [[request]]
  const hosts = foldHostSet([...new Set(trial.places?.map(({ host }) => host))])
  const [text, style] =
    trial.places === undefined ? [trial.why.join(' '), warn(theme)] : [`+ on ${hosts}`, boldStyle(theme.ok)]
  const room = columns - textWidth(words)
  if (textWidth(text) <= room) return [[request, { text: printable(text), style }]]
  return [[request], ...wrapRows(printable(text), columns, '   ', style).slice(0, 2)]
}

/** Which jobs would wait longer, or have to end. */
function effectRows(
  { later = [], victims, places }: TryOut,
  columns: number,
  { theme, nowMs }: PackingInput,
): readonly Row[] {
  const nameOf = ({ job, name }: { readonly job: number; readonly name: string }) =>
    `${job} ${clip(printable(name), MOST_LEGEND_NAME)}`
  const rowsOf = (text: string) => wrapRows(text, columns, ' ', warn(theme)).slice(0, 2)
  if (places === undefined)
    return victims === undefined || victims.length === 0
      ? []
      : rowsOf(`It would fit if these jobs ended: ${victims.map(nameOf).join(', ')}`)
  if (later.length === 0) return []
  const when = (ms: number | undefined) => (ms === undefined ? 'no known start' : whenText(ms, nowMs))
  return rowsOf(
    `If it ran for an hour, these would start later: ${later.map((one) => `${nameOf(one)} (${when(one.fromMs)} → ${when(one.toMs)})`).join(', ')}`,
  )
}

/** `strategy ●─── PACK  ▸policy ─●──────── ray   bundles 4`; Left and Right move the marked one. */
function slidersRow(whatIf: WhatIf, theme: Theme): Row {
  const knob = (at: number, count: number) => `${'─'.repeat(at)}●${'─'.repeat(Math.max(0, count - at - 1))}`
  const words: Readonly<Record<Slider, string>> = {
    policy: `${knob(WHAT_IF_POLICIES.indexOf(whatIf.by), WHAT_IF_POLICIES.length)} ${whatIf.by.padEnd(14)}`,
    strategy: `${knob(STRATEGIES.indexOf(whatIf.strategy), STRATEGIES.length)} ${whatIf.strategy.padEnd(13)}`,
    bundles: String(whatIf.bundles),
  }
  return SLIDERS.flatMap((slider): Span[] => {
    const marked = slider === whatIf.slider ? boldStyle(theme.accent) : undefined
    return [
      { text: ` ${marked ? '▸' : ' '}${slider} `, style: marked ?? mutedStyle(theme) },
      { text: words[slider], style: marked ?? styleOf(theme.text) },
    ]
  })
}

/** With the use of cores, memory and GPUs as far as there is room. */
function titleOf(name: string, used: RealUse | undefined, columns: number): string {
  if (used === undefined) return clipName(name, columns)
  const percent = (share: number) => `${Math.round(share * 100)} %`
  const cpu = ` · uses ${percent(used.cpu)}`
  const long = `${cpu} cpu, ${gib(used.memoryBytes)}G`
  const withGpus = used.gpu === undefined ? [] : [`${long}, ${percent(used.gpu)} gpu`]
  const whole = [...withGpus, long, cpu].find((use) => textWidth(name + use) <= columns)
  if (whole !== undefined) return name + whole
  const room = columns - textWidth(cpu)
  return room < LEAST_NAME ? clipName(name, columns) : clipName(name, room) + cpu
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
function pictureRows({ groups, arrangement, offset, rows, columns, spot, input }: PictureInput) {
  const canvas = new Canvas(columns, rows)
  const pasts = new Set<Past>()
  arrangement.headings.forEach((row, index) => {
    const group = groups[index]
    if (group !== undefined) canvas.put(row - offset, 0, headingRow(group, columns, input.theme))
  })
  const context = groups.map((group) =>
    typeof group.cluster === 'string' ? undefined : { group, cluster: group.cluster },
  )
  for (const tile of arrangement.tiles) {
    if (tile.rect.row + tile.rect.height <= offset || tile.rect.row >= offset + rows) continue
    const own = context[tile.group]
    if (own === undefined) continue
    drawTile(canvas, tile, { ...own, arrangement, offset, spot, input, pasts })
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
    own.width = Math.max(own.width, column) + rowWidth(clipped)
  }

  lines(): readonly Row[] {
    return this.#rows.map(({ spans }) => spans)
  }
}

const PLAIN = styleOf(undefined)

function headingRow({ title, figures, cluster }: Group, columns: number, theme: Theme): Row {
  const name: Span = { text: `── ${title} `, style: boldStyle(theme.accent) }
  const rest: Row =
    typeof cluster === 'string' ? [{ text: ` ${printable(cluster)} `, style: mutedStyle(theme) }] : (figures[0] ?? [])
  const short = [name, ...rest]
  const long = [...short, ...(figures[1] ?? [])]
  const row = rowWidth(long) <= columns ? long : short
  const left = columns - rowWidth(row) - 1
  return left > 0 ? [...row, { text: ` ${'─'.repeat(left)}`, style: styleOf(theme.frame) }] : row
}

type TileContext = {
  readonly group: Group
  readonly cluster: PackedCluster
  readonly arrangement: TileLayout
  readonly offset: number
  readonly spot: BlockSpot | undefined
  readonly input: PackingInput
  readonly pasts: Set<Past>
}

function drawTile(canvas: Canvas, tile: Tile, context: TileContext): void {
  const { cluster, arrangement, offset, spot, input } = context
  const { host, rect, blocks } = tile
  const { theme } = input
  const isOwn = spot?.group === tile.group && spot.host === host.name
  const nameStyle = isOwn ? boldStyle(theme.accent) : boldStyle(theme.text)
  const trouble = cluster.down[host.name]
  const top = rect.row - offset
  if (rect.height === 1) {
    const name = clipName(host.name, arrangement.nameColumns)
    canvas.put(top, rect.column, [{ text: name, style: trouble === undefined ? nameStyle : boldStyle(theme.danger) }])
  } else canvas.put(top, rect.column, titleRow(tile, nameStyle, context))
  for (const block of blocks) {
    const isChosen = isOwn && spot.part === block.part
    const rows = drawBlockAt(block, tile, isChosen, context)
    for (const [at, row] of rows.entries()) canvas.put(top + block.rect.row + at, rect.column + block.rect.column, row)
  }
}

/** The name, why the host is down, or its amounts and its use, and a line to the end of the tile. */
function titleRow({ host, rect, blocks }: Tile, style: Span['style'], { cluster, input }: TileContext): Row {
  const { theme, used } = input
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
  const left = rect.width - rowWidth(row) - 1
  return left > 0 ? [...row, { text: ` ${'─'.repeat(left)}`, style: styleOf(theme.frame) }] : clipRow(row, rect.width)
}

const coresText = (host: PackedHost): string => (host.unknown?.includes('cores') ? '-' : `${cpuWords(host)}c`)

function drawBlockAt({ part, rect }: Block, tile: Tile, isChosen: boolean, context: TileContext): readonly Row[] {
  const { host } = tile
  const { cluster, group, input, pasts } = context
  const { theme, used, history = NO_USE, machines, nowMs, isByUser } = input
  const machine = machines?.get(host.name) ?? host.name
  const style = {
    theme,
    isChosen,
    groupOf: (job: number) => {
      const user = isByUser === true ? cluster.cards.get(job)?.user : undefined
      return user === undefined || user === '' ? job : groupOfUser(user)
    },
  }
  const stripRows = (columns: number, height: number, of: number | 'cores') => {
    const { holds, sinceMs } = group
    const cells = pastCells({ use: history, holds, sinceMs }, host.name, machine, of, columns, nowMs)
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
  return [
    ...blockRows(shares, WHOLE_MILLI, { width: rect.width, height }, { ...style, linesOf, freeText: `GPU ${part}` }),
    ...(strip === 0 ? [] : stripRows(rect.width, strip, part)),
  ]
}

const NO_USE = new UseHistory()

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

/** `isShort`: without what the end follows from. */
const timeLines = ({ sinceMs, end }: JobCard, nowMs: number, isShort = false): readonly string[] => [
  ...(sinceMs === undefined ? [] : [`since ${timeText(sinceMs, nowMs)}`]),
  ...(end === undefined ? [] : [isShort ? endText(end, nowMs).replace(/ \(.*/, '') : endText(end, nowMs)]),
]

const endText = ({ atMs, by }: NonNullable<JobCard['end']>, nowMs: number): string =>
  atMs <= nowMs && by === 'estimate' ? 'later than estimated' : `ends ${whenText(atMs, nowMs)} (${by})`

/** The jobs of the visible tiles, those that hold most first. */
function cardsOf(groups: readonly Group[], { tiles }: TileLayout, { whatIf }: PackingInput): readonly OwnCard[] {
  const amounts = new Map<string, { card: OwnCard; gpus: number; cpu: number }>()
  for (const { group, host } of tiles) {
    const { cluster } = groups[group] ?? {}
    if (cluster === undefined || typeof cluster === 'string') continue
    const noted = (job: number) => {
      const key = `${group} ${job}`
      const known = amounts.get(key)
      if (known !== undefined) return known
      const card = cluster.cards.get(job)
      if (card === undefined) return undefined
      const made = { card: { ...card, cluster: groups.length > 1 ? cluster.key : '' }, gpus: 0, cpu: 0 }
      amounts.set(key, made)
      return made
    }
    for (const { job, cpuMilli } of host.holdings) {
      const own = noted(job)
      if (own !== undefined) own.cpu += cpuMilli
    }
    for (const shares of host.devices)
      for (const { job, milli } of shares) {
        const own = noted(job)
        if (own !== undefined) own.gpus += milli
      }
  }
  const own = [...amounts.values()].sort(
    (one, other) => other.gpus - one.gpus || other.cpu - one.cpu || one.card.job - other.card.job,
  )
  return whatIf?.trial?.places === undefined
    ? own.map(({ card }) => card)
    : [WHAT_IF_CARD, ...own.map(({ card }) => card)]
}

type OwnCard = JobCard & { readonly cluster: string }

const WHAT_IF_CARD: OwnCard = {
  job: WHAT_IF_JOB,
  name: 'what-if',
  title: 'what-if',
  user: '',
  holds: () => '',
  cluster: '',
}

const colourGroup = ({ job, user }: JobCard, { isByUser }: PackingInput): number =>
  isByUser === true && user !== '' && job > 0 ? groupOfUser(user) : job

/** Letters of jobs with their numbers and names, the largest first, and how many more there are. */
function legendRows(cards: readonly OwnCard[], most: number, columns: number, input: PackingInput): readonly Row[] {
  const { theme, isByUser } = input
  const rows: Span[][] = []
  let row: Span[] = []
  for (const [index, card] of cards.entries()) {
    const by = isByUser === true && card.user !== '' ? ` ${printable(card.user)}` : ''
    const entry = [
      { text: ' ', style: PLAIN },
      jobSpan(card.job, signOf(card.job), theme, colourGroup(card, input)),
      { text: ` ${clip(printable(card.name), MOST_LEGEND_NAME)}${by} `, style: styleOf(theme.text) },
    ]
    const more: Span = { text: ` ${cards.length - index} more`, style: mutedStyle(theme) }
    const isLastRow = rows.length === most - 1
    const needed = rowWidth([...row, ...entry]) + (isLastRow && index < cards.length - 1 ? more.text.length + 2 : 0)
    if (needed > columns && row.length > 0) {
      if (isLastRow) {
        row.push(more)
        break
      }
      rows.push(row)
      row = []
    }
    row.push(...entry)
  }
  return row.length > 0 ? [...rows, row] : rows
}

/** All jobs of the picture, a row each. */
function jobRows(cards: readonly OwnCard[], { width, height }: Rect, input: PackingInput): readonly Row[] {
  const { theme, nowMs } = input
  const most = Math.max(1, height - 2)
  const shown = cards.slice(0, cards.length > most ? most - 1 : most)
  const rows = shown.map((card): Row => {
    const end = card.end === undefined ? '' : whenText(card.end.atMs, nowMs)
    const name = clip(printable(card.name), Math.max(8, width - 26))
    const user = clip(printable(card.user), 10)
    return [
      { text: ' ', style: PLAIN },
      jobSpan(card.job, signOf(card.job), theme, colourGroup(card, input)),
      { text: ` ${name}${' '.repeat(Math.max(0, width - 27 - textWidth(name)))} `, style: styleOf(theme.text) },
      { text: `${user}${' '.repeat(Math.max(0, 10 - textWidth(user)))} `, style: mutedStyle(theme) },
      { text: end, style: mutedStyle(theme) },
    ]
  })
  return shown.length < cards.length
    ? [...rows, [{ text: ` ${cards.length - shown.length} more`, style: mutedStyle(theme) }]]
    : rows
}

function chosenPane(groups: readonly Group[], spot: BlockSpot | undefined, rect: Rect, input: PackingInput): PaneView {
  const { theme } = input
  const { cluster, title = '' } = (spot && groups[spot.group]) ?? {}
  const host = typeof cluster === 'object' && spot ? cluster.hosts.find(({ name }) => name === spot.host) : undefined
  if (spot === undefined || typeof cluster !== 'object' || host === undefined)
    return rowsPane({ id: ' chosen', title: 'selected', hasKeys: false, document: documentOf([]), rect, theme })
  const model = typeof spot.part === 'number' ? input.used?.get(host.name)?.gpus?.get(spot.part)?.name : undefined
  const what =
    typeof spot.part === 'number' ? `GPU ${spot.part}${model === undefined ? '' : ` (${printable(model)})`}` : spot.part
  const where = groups.length > 1 ? `${title}: ` : ''
  const document = documentOf(chosenRows(cluster, host, spot, rect.width - 2, input))
  return rowsPane({ id: ' chosen', title: `${where}${host.name} ${what}`, hasKeys: false, document, rect, theme })
}

/** What the selected block is: its use, what of it is free, and each job on it. */
function chosenRows(
  cluster: PackedCluster,
  host: PackedHost,
  { part }: BlockSpot,
  columns: number,
  input: PackingInput,
): readonly Row[] {
  const { theme, used, nowMs } = input
  const trouble = cluster.down[host.name]
  const use = used?.get(host.name)
  const shares =
    typeof part === 'number'
      ? (host.devices[part] ?? []).map(({ job, milli }) => ({
          job,
          own: milli < WHOLE_MILLI ? `${gpus(milli)} of it` : '',
          amount: milli,
        }))
      : host.holdings
          .map(({ job, cpuMilli, memoryBytes }) =>
            part === 'cores'
              ? { job, own: `${short(cpuMilli / 1000)} cores`, amount: cpuMilli }
              : { job, own: `${gib(memoryBytes)} GiB`, amount: memoryBytes },
          )
          .filter(({ amount }) => amount > 0)
  const held = shares.reduce((sum, { amount }) => sum + amount, 0)
  const now = nowText(part, use)
  const left =
    typeof part === 'number'
      ? WHOLE_MILLI - held <= 0
        ? ''
        : held === 0
          ? 'free'
          : `${gpus(WHOLE_MILLI - held)} is free`
      : host.unknown?.includes(part)
        ? `its ${part === 'cores' ? 'number of cores' : 'memory'} is not known yet`
        : part === 'cores'
          ? `${short((host.cpuMilli - held) / 1000)} of ${short(host.cpuMilli / 1000)} cores are free`
          : `${gib(host.memoryBytes - held)} of ${gib(host.memoryBytes)} GiB is free`
  const facts = [left, now].filter((text) => text !== '').join(' · ')
  return [
    ...(trouble === undefined ? [] : wrapRows(printable(trouble), columns, ' ', boldStyle(theme.danger))),
    ...(facts === '' ? [] : wrapRows(facts, columns, ' ', styleOf(theme.text))),
    ...(host.strandedMilli > 0 && typeof part === 'number' && held < WHOLE_MILLI
      ? wrapRows('It cannot be used: no core of the host is free.', columns, ' ', warn(theme))
      : []),
    ...shares.flatMap(({ job, own }) => holderRows(cluster, host, part, job, own, columns, input, nowMs)),
  ]
}

function holderRows(
  cluster: PackedCluster,
  host: PackedHost,
  part: BlockSpot['part'],
  job: number,
  own: string,
  columns: number,
  input: PackingInput,
  nowMs: number,
): readonly Row[] {
  const { theme } = input
  if (job === LOOSE_JOB) {
    const others = cluster.othersOn(host.name, typeof part === 'number' ? part : undefined)
    const texts =
      others.length === 0
        ? [`not a job that you can see${own === '' ? '' : `: ${own}`}`]
        : others.map((other) => nameWithTitle(other, []))
    return texts.flatMap((text) => factRows(job, job, printable(text), [], columns, theme))
  }
  const card = job === WHAT_IF_JOB ? WHAT_IF_CARD : cluster.cards.get(job)
  if (card === undefined) return factRows(job, job, `job ${job}`, [own], columns, theme)
  const facts = [printable(card.user), own, card.holds(), ...timeLines(card, nowMs)]
  return factRows(job, colourGroup(card, input), printable(card.name), facts, columns, theme)
}

/** A letter and a name, and facts about them in as few rows as they need. */
function factRows(
  job: number,
  colour: number,
  name: string,
  facts: readonly string[],
  columns: number,
  theme: Theme,
): readonly Row[] {
  const [first = '', ...rest] = wrapRows(
    [name, ...facts.filter((fact) => fact !== '')].join(' · '),
    columns - 3,
    '',
    styleOf(theme.text),
  ).map((row) => row.map(({ text }) => text).join(''))
  return [
    [
      { text: ' ', style: PLAIN },
      jobSpan(job, signOf(job), theme, colour),
      { text: ` ${first}`, style: styleOf(theme.text) },
    ],
    ...rest.map((text): Row => [{ text: `   ${text}`, style: styleOf(theme.text) }]),
  ]
}

function nowText(part: BlockSpot['part'], use: RealUse | undefined): string {
  if (use === undefined) return ''
  if (part === 'cores') return `${percentOf(use.cpu)} busy`
  if (part === 'memory') return `${gib(use.memoryBytes)} GiB in use`
  const gpu = use.gpus?.get(part)
  if (gpu === undefined) return ''
  const memory =
    gpu.usedBytes === undefined || gpu.totalBytes === undefined
      ? []
      : [`${gib(gpu.usedBytes)} of ${gib(gpu.totalBytes)} GiB in use`]
  return [...(gpu.busy === undefined ? [] : [`${percentOf(gpu.busy)} busy`]), ...memory].join(', ')
}

/** A job that waits, when it is expected to start, and the whole reason. */
function waitingCardRows(
  { job, name, why, expectedMs }: WaitingCard,
  columns: number,
  { theme, nowMs }: PackingInput,
): readonly Row[] {
  const title = clip(printable(name), MOST_WAITING_NAME)
  const reason = printable(expectedText(expectedMs, nowMs) + why)
  const first: Row = [jobSpan(job, signOf(job), theme), { text: ` ${title}  `, style: boldStyle(theme.text) }]
  const room = columns - rowWidth(first)
  if (textWidth(reason) <= room) return [[...first, { text: reason, style: mutedStyle(theme) }]]
  return [first, ...wrapRows(reason, columns, '  ', mutedStyle(theme))]
}

const scrollBadge = (offset: number, rows: number, all: number, theme: Theme): readonly Span[] =>
  all <= rows ? [] : [{ text: ` rows ${offset + 1}–${offset + rows} of ${all} `, style: mutedStyle(theme) }]

/** What the strips mean, as far as there are any. */
function pastBadge(pasts: ReadonlySet<Past>, columns: number, theme: Theme): readonly Span[] {
  const shown = (Object.keys(PAST_WORDS) as (keyof typeof PAST_WORDS)[]).filter((past) => pasts.has(past))
  if (shown.length === 0) return []
  const spans = shown.flatMap((past): Span[] => [
    { text: ` ${PAST_WORDS[past][0]}`, style: pastStyle(past, theme) },
    { text: ` ${PAST_WORDS[past][1]} `, style: mutedStyle(theme) },
  ])
  const row = [{ text: ' last 10 min:', style: mutedStyle(theme) }, ...spans]
  return rowWidth(row) <= columns - 14 ? row : []
}

function figureRows(
  { hosts, active, counts, driver, down }: QueueStatus,
  columns: number,
  theme: Theme,
): readonly Row[] {
  const figures = packingFigures(hosts, down)
  const warning = warn(theme)
  const bold = (text: string) => ({ text, style: boldStyle(theme.text) })
  const part = (milli: number, text: string, style = styleOf(theme.text)) =>
    milli > 0 ? [{ text: `, ${gpus(milli)} ${text}`, style }] : []
  const here = active.filter(({ spec }) => spec.engine === undefined)
  const engines = [...new Set(active.flatMap(({ spec }) => (spec.engine === undefined ? [] : [spec.engine])))]
    .map(enginePlace)
    .map(placeTitle)
  const downCount = hosts.filter(({ name }) => down[name] !== undefined).length
  const onDown = downCount === 1 ? 'on a host that is down' : 'on hosts that are down'
  const gpuRow = (isShort: boolean): Row => [
    bold(` GPUs ${gpus(figures.heldMilli)}/${figures.devices}`),
    { text: `${isShort ? '' : ' held'}, ${figures.freeDevices} free`, style: styleOf(theme.text) },
    ...part(figures.downMilli, isShort ? 'down' : onDown, warning),
    ...part(figures.piecesMilli, 'fragmented'),
    ...part(figures.strandedMilli, isShort ? 'stranded' : 'stranded (no core)', warning),
    bold(`  cores ${hosts.every(({ unknown }) => unknown?.includes('cores')) ? '-' : cpuWords(figures)}`),
  ]
  return [
    [gpuRow(false), gpuRow(true)].find((row) => rowWidth(row) <= columns) ?? gpuRow(true),
    [
      bold(` ${here.length} running, ${counts.get('queued') ?? 0} waiting`),
      ...(here.length < active.length
        ? [{ text: `, ${active.length - here.length} with ${engines.join(' and ')}`, style: styleOf(theme.text) }]
        : []),
      ...(downCount > 0 ? [{ text: `  ${downCount} ${downCount === 1 ? 'host' : 'hosts'} down`, style: warning }] : []),
      driver === undefined
        ? { text: `  ${NO_SCHEDULER}`, style: warning }
        : { text: `  scheduler: ${printable(driver)}`, style: mutedStyle(theme) },
    ],
  ]
}

const cpuWords = ({ cpuUsedMilli, cpuMilli }: { readonly cpuUsedMilli: number; readonly cpuMilli: number }) =>
  `${short(cpuUsedMilli / 1000)}/${short(cpuMilli / 1000)}`

const expectedText = (expectedMs: number | undefined, nowMs: number): string =>
  expectedMs === undefined ? '' : `expected ${whenText(expectedMs, nowMs)}: `

function clusterFigureRows({ hosts, down, own, others, note }: EnginePicture, theme: Theme): readonly Row[] {
  const figures = packingFigures(hosts, down)
  const isBlind = hosts.some(({ unknown }) => unknown !== undefined)
  const [heldGpus, cores] = isBlind
    ? [`${gpus(figures.heldMilli)} held`, `${short(figures.cpuUsedMilli / 1000)} held`]
    : [`${gpus(figures.heldMilli)}/${figures.devices}`, cpuWords(figures)]
  const downCount = Object.keys(down).length
  return [
    [
      {
        text: ` GPUs ${heldGpus}  cores ${cores}`,
        style: boldStyle(theme.text),
      },
      { text: `  of ${hosts.length} ${hosts.length === 1 ? 'node' : 'nodes'}`, style: styleOf(theme.text) },
      { text: downCount > 0 ? `  ${downCount} down or drained` : '', style: warn(theme) },
    ],
    [
      { text: ` ${own.length} of the queue`, style: boldStyle(theme.text) },
      { text: others === 0 ? '' : `  * ${others} other ${others === 1 ? 'job' : 'jobs'}`, style: mutedStyle(theme) },
    ],
    ...(note === undefined ? [] : [[{ text: ` ${printable(note)}`, style: warn(theme) }]]),
  ]
}

function rayFigureRows({ hosts, dead, groupCount, actors }: RayPicture, theme: Theme): readonly Row[] {
  const figures = packingFigures(hosts)
  const counts = [...actors].map(([state, count]) => `${count} ${state.toLowerCase()}`).join(', ')
  return [
    [
      {
        text: ` GPUs ${gpus(figures.heldMilli)}/${figures.devices}  cores ${cpuWords(figures)}`,
        style: boldStyle(theme.text),
      },
      { text: `  of ${hosts.length} nodes`, style: styleOf(theme.text) },
      { text: dead.length > 0 ? `  dead: ${printable(dead.join(', '))}` : '', style: boldStyle(theme.danger) },
    ],
    [
      { text: ` ${groupCount} placement ${groupCount === 1 ? 'group' : 'groups'}`, style: boldStyle(theme.text) },
      { text: `${counts === '' ? '' : `, actors: ${counts}`}  * not in a group`, style: mutedStyle(theme) },
    ],
  ]
}

const warn = (theme: Theme) => boldStyle(theme.warning)
const gpus = (milli: number): string => short(milli / 1000)
const gib = (bytes: number): string => short(bytes / 2 ** 30)
const short = (value: number): string => String(value >= 100 ? Math.round(value) : Math.round(value * 10) / 10)
