/** The Packing tab: figures, a box for each host, and the jobs that wait with the reason. Pure. */

import { printable } from '../../base/printable.ts'
import { clip, clipName, textWidth } from '../../base/text-width.ts'
import { whenText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { enginePlace, placeTitle } from '../../scheduler/jobs/engine.ts'
import type { Job } from '../../scheduler/jobs/job.ts'
import { letterOf, type PackedHost, packingFigures } from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import { BOLD, INVERSE } from '../../terminal/cells.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import { NO_SCHEDULER, pictureAt, type QueueStatus, type QueueView, type RealUse } from '../jobs/queue-view.ts'
import type { RayStatus } from '../ray/ray-view.ts'
import { documentOf, type Row, rowsPane, rowWidth, wrapRows } from '../rows/rows-pane.ts'
import type { ConsoleState } from '../state/console-state.ts'
import { type EnginePicture, isWaiting, nameWithTitle } from './engine-picture.ts'
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

export type PackingInput = {
  /** What can be shown, and which of it is. */
  readonly sources?: Sources
  readonly status: QueueStatus | undefined
  readonly trouble: string | undefined
  /** Undefined: the queue is shown. */
  readonly ray?: RayPicture | undefined
  /** Of an engine; a string: why it, or Ray, cannot be drawn. Undefined: the queue or Ray is shown. */
  readonly cluster?: EnginePicture | string | undefined
  readonly whatIf?: { readonly gang: WhatIf; readonly trial: TryOut | undefined } | undefined
  /** By host. */
  readonly used?: ReadonlyMap<string, RealUse>
  /** Rows of boxes scrolled out above. */
  readonly offset: number
  readonly rect: Rect
  readonly theme: Theme
  readonly nowMs: number
}

/** Without Ray's picture. */
export function queueInput(state: ConsoleState, rect: Rect, theme: Theme, nowMs: number): PackingInput {
  const { status, trouble, whatIf, trial, used, packingOffset: offset, picture } = state.queue
  const sources = sourcesOf(state).map((source) => ({ title: sourceTitle(source), isShown: source === picture }))
  const own = { sources, status, trouble, whatIf: whatIf && { gang: whatIf, trial }, used, offset, rect, theme, nowMs }
  return { ...own, cluster: picture === 'ray' ? rayTrouble(state.ray) : clusterOf(state.queue) }
}

const clusterOf = (queue: QueueView) =>
  queue.picture === 'queue' ? undefined : (pictureAt(queue, queue.picture) ?? NO_ANSWER)

function rayTrouble({ view, usage }: RayStatus): string | undefined {
  if (usage !== undefined) return undefined
  const reason = 'reason' in view ? view.reason : 'its head is not open in the console'
  return reason === '' ? NO_ANSWER : `the head of Ray does not answer: ${reason}`
}

type Source = QueueView['picture']

/** What the Packing tab can show, in the order of `y`. */
export function sourcesOf({ ray, queue }: Pick<ConsoleState, 'ray' | 'queue'>): readonly Source[] {
  const withRay = ray.view.kind !== 'none' || queue.picture === 'ray'
  return ['queue', ...(withRay ? (['ray'] as const) : []), ...queue.clusters]
}

export const sourceTitle = (source: Source): string =>
  source === 'queue' ? 'own hosts' : source === 'ray' ? 'Ray' : placeTitle(source)

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

/** With the frame. */
const LEAST_BOX_COLUMNS = 24
const MOST_BOX_COLUMNS = 60
const LEAST_DEVICE_CELLS = 4
const MOST_DEVICE_CELLS = 12
const MOST_WAITING_ROWS = 8
const MOST_WAITING_NAME = 40
/** Of a host, beside its use. */
const LEAST_NAME = 8

export function packingPanes(input: PackingInput): readonly PaneView[] {
  const { rect, theme, trouble } = input
  const pane = (id: string, title: string, area: Rect, rows: readonly Row[], hasKeys = false): PaneView =>
    rowsPane({ id, title, hasKeys, document: documentOf(rows), rect: area, theme })
  const engine = input.ray !== undefined ? 'Ray' : typeof input.cluster === 'object' ? input.cluster.title : undefined
  const title = engine === undefined ? 'packing' : `packing of ${engine}`
  const picture = pictureOf(input)
  if (typeof picture === 'string') {
    const style = trouble === undefined ? mutedStyle(theme) : boldStyle(theme.danger)
    const words = wrapRows(printable(picture), rect.width - 2, '  ', style)
    return [pane(' packing', title, rect, [...sourcesRow(input.sources, theme), [], ...words], true)]
  }
  const { top, boxes, waiting, bottom } = layOut(picture, rect)
  const waitingTitle = `waiting: ${picture.waitingCount}`
  return [
    pane(' packing', title, top, picture.figures, true),
    ...boxesOf(picture.hosts, boxes, input).map(([host, area]) => {
      const boxTitle = titleOf(host.name, input.used?.get(host.name), area.width - 6)
      return pane(` box ${host.name}`, boxTitle, area, hostRows(host, area.width - 2, theme, picture.down[host.name]))
    }),
    ...(waiting.length === 0 ? [] : [pane(' waiting', waitingTitle, bottom, waiting)]),
  ]
}

/** What is drawn, of the queue or of Ray. */
type Picture = {
  readonly hosts: readonly PackedHost[]
  readonly down: Readonly<Record<string, string>>
  readonly figures: readonly Row[]
  readonly waiting: readonly Row[]
  readonly waitingCount: number
}

/** A sentence where there is nothing to draw. */
function pictureOf(input: PackingInput): Picture | string {
  const picture = pictureBelow(input)
  if (typeof picture === 'string') return picture
  return { ...picture, figures: [...sourcesRow(input.sources, input.theme), ...picture.figures] }
}

function pictureBelow({ status, trouble, ray, cluster, whatIf, rect, theme, nowMs }: PackingInput): Picture | string {
  if (typeof cluster === 'string') return cluster
  if (cluster !== undefined) {
    const { hosts, down, jobs, title, note } = cluster
    if (hosts.length === 0 && jobs.length === 0) return note ?? `${title} has no nodes`
    const active = status?.active ?? []
    const waiting = jobs.filter(isWaiting)
    const rows = waiting.slice(0, MOST_WAITING_ROWS).map((one) => {
      const name = clip(printable(nameWithTitle(one, active)), MOST_WAITING_NAME)
      return namedRow(one.job, signOf(one.job), name, expectedText(one.expectedMs, nowMs) + one.why, theme)
    })
    const figures = clusterFigureRows(cluster, active, rect.width - 2, theme)
    return { hosts, down, figures, waiting: rows, waitingCount: waiting.length }
  }
  if (ray !== undefined) {
    const waiting = ray.waiting.map((one) => rayWaitingRow(one, theme))
    return { hosts: ray.hosts, down: {}, figures: rayFigureRows(ray, theme), waiting, waitingCount: waiting.length }
  }
  if (trouble !== undefined) return trouble
  if (status === undefined) return 'reading the queue …'
  if (status.hosts.length === 0) return 'no hosts in hosts.yaml'
  const { gang, trial } = whatIf ?? {}
  const hosts = gang && trial ? withTrial(status.hosts, gang, trial) : status.hosts
  const figures = figureRows({ ...status, hosts }, rect.width - 2, theme)
  return {
    hosts,
    down: status.down,
    figures: gang ? [...figures.slice(0, 1), slidersRow(gang, theme), whatIfRow(gang, trial, theme)] : figures,
    waiting: status.waiting.map((one) => waitingRow(one, theme, nowMs)),
    waitingCount: status.counts.get('queued') ?? status.waiting.length,
  }
}

/** Figures above, waiting jobs below in what the boxes leave free, boxes between. */
function layOut({ hosts, figures, waiting }: Picture, rect: Rect) {
  const above = figures.length + 2
  const least = Math.max(1, Math.floor(rect.height / 12))
  const free = rect.height - above - 2
  const boxRows = arrangeBoxes(hosts, rect.width, free - least).need
  const most = Math.min(MOST_WAITING_ROWS, Math.max(least, free - boxRows))
  const shown = waiting.slice(0, most)
  const below = shown.length === 0 ? 0 : shown.length + 2
  return {
    top: { ...rect, height: Math.min(above, rect.height) },
    boxes: { ...rect, row: rect.row + above, height: Math.max(0, rect.height - above - below) },
    waiting: shown,
    bottom: { ...rect, row: rect.row + rect.height - below, height: below },
  }
}

function whatIfRow(gang: WhatIf, trial: TryOut | undefined, theme: Theme): Row {
  const request: Span = { text: ` ${whatIfWords(gang)}: `, style: boldStyle(theme.accent) }
  if (trial === undefined) return [request]
  if (trial.places === undefined) return [request, { text: printable(trial.why.join(' ')), style: warn(theme) }]
  const hosts = foldHostSet([...new Set(trial.places.map(({ host }) => host))])
  return [request, { text: printable(`+ on ${hosts}`), style: boldStyle(theme.ok) }]
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

/** The last offset that still shows hosts. */
export function lastOffset(input: PackingInput): number {
  const picture = pictureOf(input)
  return typeof picture === 'string' ? 0 : lastRow(picture.hosts, layOut(picture, input.rect).boxes)
}

function lastRow(hosts: readonly PackedHost[], { width, height }: Rect): number {
  const { across, boxRows } = arrangeBoxes(hosts, width, height)
  return Math.max(0, Math.ceil(hosts.length / across) - Math.max(1, Math.floor(height / boxRows)))
}

function boxesOf(hosts: readonly PackedHost[], area: Rect, { offset }: PackingInput): (readonly [PackedHost, Rect])[] {
  const { across, boxRows } = arrangeBoxes(hosts, area.width, area.height)
  const rows = Math.max(1, Math.floor(area.height / boxRows))
  const first = Math.min(offset, lastRow(hosts, area)) * across
  // Boxes of the greatest width stay together at the left.
  const leftOf = (box: number) => Math.min(MOST_BOX_COLUMNS * box, Math.floor((area.width * box) / across))
  return hosts.slice(first, first + rows * across).map((host, index) => {
    const column = leftOf(index % across)
    const rect = {
      column: area.column + column,
      row: area.row + Math.floor(index / across) * boxRows,
      width: leftOf((index % across) + 1) - column,
      height: Math.min(boxRows, area.height),
    }
    return [host, rect]
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

/** The widest boxes that all fit, or else the narrowest ones. */
function arrangeBoxes(hosts: readonly PackedHost[], columns: number, rows: number) {
  const most = Math.max(1, Math.min(hosts.length, Math.floor(columns / LEAST_BOX_COLUMNS)))
  const arranged = (across: number) => {
    const width = Math.min(MOST_BOX_COLUMNS, Math.floor(columns / across)) - 2
    const boxRows = Math.max(...hosts.map((host) => 4 + deviceLayout(host.devices.length, width).lines))
    return { across, boxRows, need: Math.ceil(hosts.length / across) * boxRows }
  }
  for (let across = Math.max(1, Math.ceil(columns / MOST_BOX_COLUMNS)); across <= most; across++) {
    const found = arranged(across)
    if (found.need <= rows) return found
  }
  return arranged(most)
}

/** Devices per line and cells per device, in as few lines as possible. */
function deviceLayout(count: number, columns: number) {
  const most = Math.max(1, Math.floor((columns + 1) / (LEAST_DEVICE_CELLS + 1)))
  const lines = Math.ceil(count / most)
  const perLine = lines === 0 ? 0 : Math.ceil(count / lines)
  const cells = perLine === 0 ? 0 : Math.min(MOST_DEVICE_CELLS, Math.floor((columns + 1) / perLine) - 1)
  return { lines, perLine, cells: Math.max(1, cells) }
}

/** `trouble`: why the host does not answer; shown in place of its memory. */
function hostRows(host: PackedHost, columns: number, theme: Theme, trouble: string | undefined): readonly Row[] {
  const cores = host.unknown?.includes('cores') ? ' -' : ` ${cpuWords(host)}`
  const memory = host.unknown?.includes('memory') ? ' -' : ` ${gib(host.memoryUsedBytes)}/${gib(host.memoryBytes)}G`
  const width = Math.max(cores.length, memory.length)
  const label = (text: string) => ({ text, style: mutedStyle(theme) })
  const amountRow = (name: string, key: 'cpuMilli' | 'memoryBytes', text: string, style = styleOf(theme.text)): Row => [
    label(`${name} `),
    ...shareCells(
      host.holdings.map(({ job, [key]: amount }) => ({ job, amount })),
      host[key],
      Math.max(1, columns - 4 - width),
      theme,
    ),
    { text: text.padStart(width), style },
  ]
  const { lines, perLine, cells } = deviceLayout(host.devices.length, columns)
  const devices = Array.from({ length: lines }, (_, line): Row => {
    return host.devices.slice(line * perLine, (line + 1) * perLine).flatMap((shares, index) => [
      ...(index === 0 ? [] : [label(' ')]),
      ...shareCells(
        shares.map(({ job, milli }) => ({ job, amount: milli })),
        WHOLE_MILLI,
        cells,
        theme,
      ),
    ])
  })
  const core = amountRow('cpu', 'cpuMilli', cores, host.strandedMilli > 0 ? warn(theme) : styleOf(theme.text))
  if (trouble === undefined) return [core, amountRow('mem', 'memoryBytes', memory), ...devices]
  return [[{ text: clip(printable(trouble), columns), style: boldStyle(theme.danger) }], core, ...devices]
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
    withLegend(
      [
        bold(` ${here.length} running, ${counts.get('queued') ?? 0} waiting`),
        ...(here.length < active.length
          ? [{ text: `, ${active.length - here.length} with ${engines.join(' and ')}`, style: styleOf(theme.text) }]
          : []),
        ...(downCount > 0
          ? [{ text: `  ${downCount} ${downCount === 1 ? 'host' : 'hosts'} down`, style: warning }]
          : []),
        driver === undefined
          ? { text: `  ${NO_SCHEDULER}`, style: warning }
          : { text: `  scheduler: ${printable(driver)}`, style: mutedStyle(theme) },
      ],
      here,
      columns,
      theme,
    ),
  ]
}

const MOST_LEGEND_NAME = 24

/** The letters of jobs with their numbers and names, as many as there is room for. */
function withLegend(row: Row, jobs: readonly Job[], columns: number, theme: Theme): Row {
  const all = [...row]
  for (const { id, spec } of jobs) {
    const sign = letterOf(id)
    const name = ` ${id} ${clip(printable(spec.name), MOST_LEGEND_NAME)}`
    const entry = [
      { text: '   ', style: styleOf(theme.text) },
      jobSpan(id, sign, theme),
      { text: name, style: styleOf(theme.text) },
    ]
    if (rowWidth([...all, ...entry]) > columns) break
    all.push(...entry)
  }
  return all
}

const cpuWords = ({ cpuUsedMilli, cpuMilli }: { readonly cpuUsedMilli: number; readonly cpuMilli: number }) =>
  `${short(cpuUsedMilli / 1000)}/${short(cpuMilli / 1000)}`

const namedRow = (job: number, sign: string, name: string, why: string, theme: Theme): Row => [
  jobSpan(job, sign, theme),
  { text: ` ${name}  `, style: boldStyle(theme.text) },
  { text: printable(why), style: mutedStyle(theme) },
]

const expectedText = (expectedMs: number | undefined, nowMs: number): string =>
  expectedMs === undefined ? '' : `expected ${whenText(expectedMs, nowMs)}: `

function waitingRow({ job, why, expectedMs }: QueueStatus['waiting'][number], theme: Theme, nowMs: number): Row {
  const name = `${job.id} ${clip(printable(job.spec.name), 24)}`
  return namedRow(job.id, letterOf(job.id), name, expectedText(expectedMs, nowMs) + why, theme)
}

const rayWaitingRow = ({ group = LOOSE_JOB, name, why }: RayPicture['waiting'][number], theme: Theme): Row =>
  namedRow(group, signOf(group), clip(printable(name), 24), why, theme)

function clusterFigureRows(
  { hosts, down, own, others, note }: EnginePicture,
  active: readonly Job[],
  columns: number,
  theme: Theme,
): readonly Row[] {
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
    withLegend(
      [
        { text: ` ${own.length} of the queue`, style: boldStyle(theme.text) },
        { text: others === 0 ? '' : `  * ${others} other ${others === 1 ? 'job' : 'jobs'}`, style: mutedStyle(theme) },
      ],
      active.filter(({ id }) => own.includes(id)),
      columns,
      theme,
    ),
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
