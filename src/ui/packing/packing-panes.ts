/** The Packing tab: figures, a box a host, who waits and why. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, textWidth } from '../../base/text-width.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { letterOf, type PackedHost, packingFigures } from '../../scheduler/jobs/packing.ts'
import { BOLD } from '../../terminal/cells.ts'
import type { PaneView, Rect, Span } from '../compositor/scene.ts'
import type { QueueSight } from '../jobs/jobs-port.ts'
import type { QueueView } from '../jobs/queue-view.ts'
import { type Row, wrapRows } from '../rows/row-document.ts'
import { rowsPane } from '../rows/rows-pane.ts'
import { mutedStyle, styleOf, type Theme } from '../theme/theme.ts'
import { LOOSE_JOB, type RayPicture } from './ray-picture.ts'
import { jobSpan, shareCells, signOf } from './share-cells.ts'
import {
  SLIDERS,
  type Slider,
  STRATEGIES,
  type Trial,
  WHAT_IF_POLICIES,
  type WhatIf,
  whatIfWords,
  withTrial,
} from './what-if.ts'

/** What is really used of a host, whoever uses it. */
export type RealUse = { readonly cpu: number; readonly memoryBytes: number }

export type PackingInput = {
  readonly sight: QueueSight | undefined
  readonly trouble: string | undefined
  /** Undefined: the queue is shown. */
  readonly ray?: RayPicture | undefined
  readonly whatIf?: { readonly gang: WhatIf; readonly trial: Trial | undefined } | undefined
  /** By host. */
  readonly used?: ReadonlyMap<string, RealUse>
  /** Rows of boxes above. */
  readonly offset: number
  readonly rect: Rect
  readonly theme: Theme
}

export function queueInput(queue: QueueView, rect: Rect, theme: Theme): PackingInput {
  const { sight, trouble, whatIf, trial, packingOffset } = queue
  return { sight, trouble, whatIf: whatIf && { gang: whatIf, trial }, offset: packingOffset, rect, theme }
}

/** With its frame. */
const LEAST_BOX_COLUMNS = 24
const MOST_BOX_COLUMNS = 60
const LEAST_DEVICE_CELLS = 4
const MOST_DEVICE_CELLS = 12
const MOST_WAITING_ROWS = 8

export function packingPanes(input: PackingInput): readonly PaneView[] {
  const { rect, theme } = input
  const look = { theme, columns: rect.width - 2, rows: rect.height - 2, column: 0 }
  const title = input.ray === undefined ? 'packing' : 'packing of Ray'
  const sight = shownOf(input)
  if (typeof sight === 'string') {
    const style = input.trouble === undefined ? mutedStyle(theme) : styleOf(theme.danger, undefined, BOLD)
    return [pane(' packing', title, rect, [[], ...wrapRows(printable(sight), look, '  ', style)], theme, true)]
  }
  const topRows = sight.figures.length + 2
  const top = { ...rect, height: Math.min(topRows, rect.height) }
  const figures = pane(' packing', title, top, sight.figures, theme, true)
  const waiting = waitingPane(sight, rect, theme)
  const area: Rect = {
    ...rect,
    row: rect.row + topRows,
    height: Math.max(0, rect.height - topRows - (waiting?.rect.height ?? 0)),
  }
  return [figures, ...boxPanes(sight, area, input), ...(waiting === undefined ? [] : [waiting])]
}

/** What is drawn, of the queue or of Ray. */
type Shown = {
  readonly hosts: readonly PackedHost[]
  readonly down: Readonly<Record<string, string>>
  readonly figures: readonly Row[]
  readonly waiting: readonly Row[]
  readonly waitingCount: number
}

/** A sentence where there is nothing to draw. */
function shownOf({ sight, trouble, ray, whatIf, rect, theme }: PackingInput): Shown | string {
  if (ray !== undefined) {
    const waiting = ray.waiting.map((one) => rayWaitingRow(one, theme))
    return { hosts: ray.hosts, down: {}, figures: rayFigureRows(ray, theme), waiting, waitingCount: waiting.length }
  }
  if (trouble !== undefined) return trouble
  if (sight === undefined) return 'reading the queue …'
  if (sight.hosts.length === 0) return 'hosts.yaml names no host.'
  const { trial } = whatIf ?? {}
  const hosts = whatIf && trial ? withTrial(sight.hosts, whatIf.gang, trial) : sight.hosts
  const figures = figureRows({ ...sight, hosts }, rect.width - 2, theme)
  return {
    hosts,
    down: sight.down,
    figures:
      whatIf === undefined
        ? figures
        : [...figures.slice(0, 1), slidersRow(whatIf.gang, theme), whatIfRow(whatIf, theme)],
    waiting: sight.waiting.map((one) => waitingRow(one, theme)),
    waitingCount: sight.counts.get('queued') ?? sight.waiting.length,
  }
}

function whatIfRow({ gang, trial }: NonNullable<PackingInput['whatIf']>, theme: Theme): Row {
  const words: Span = { text: ` ${whatIfWords(gang)}: `, style: styleOf(theme.accent, undefined, BOLD) }
  if (trial === undefined) return [words]
  if (trial.places === undefined) return [words, { text: printable(trial.why.join(' ')), style: warn(theme) }]
  const hosts = foldHostSet([...new Set(trial.places.map(({ host }) => host))])
  return [words, { text: printable(`+ on ${hosts}`), style: styleOf(theme.ok, undefined, BOLD) }]
}

/** `strategy ●─── PACK  ▸policy ─●──────── ray   bundles 4`: the one that the arrow keys change is marked. */
function slidersRow(whatIf: WhatIf, theme: Theme): Row {
  const knob = (at: number, count: number) => `${'─'.repeat(at)}●${'─'.repeat(Math.max(0, count - at - 1))}`
  const words: Readonly<Record<Slider, string>> = {
    policy: `${knob(WHAT_IF_POLICIES.indexOf(whatIf.by), WHAT_IF_POLICIES.length)} ${whatIf.by.padEnd(14)}`,
    strategy: `${knob(STRATEGIES.indexOf(whatIf.strategy), STRATEGIES.length)} ${whatIf.strategy.padEnd(13)}`,
    bundles: String(whatIf.bundles),
  }
  return SLIDERS.flatMap((slider): Span[] => {
    const isMarked = slider === whatIf.slider
    const name = {
      text: ` ${isMarked ? '▸' : ' '}${slider} `,
      style: isMarked ? styleOf(theme.accent, undefined, BOLD) : mutedStyle(theme),
    }
    return [
      name,
      { text: words[slider], style: isMarked ? styleOf(theme.accent, undefined, BOLD) : styleOf(theme.text) },
    ]
  })
}

/** How far down it may be scrolled. */
export function lastOffset(input: PackingInput): number {
  const { rect, theme } = input
  const sight = shownOf(input)
  if (typeof sight === 'string') return 0
  const height = Math.max(
    0,
    rect.height - sight.figures.length - 2 - (waitingPane(sight, rect, theme)?.rect.height ?? 0),
  )
  const { across, boxRows } = arrangeBoxes(sight.hosts, rect.width, height)
  return Math.max(0, Math.ceil(sight.hosts.length / across) - Math.max(1, Math.floor(height / boxRows)))
}

function boxPanes(sight: Shown, area: Rect, { offset, theme, ...rest }: PackingInput): readonly PaneView[] {
  const { across, boxRows } = arrangeBoxes(sight.hosts, area.width, area.height)
  const down = Math.max(1, Math.floor(area.height / boxRows))
  const first = Math.min(offset, lastOffset({ ...rest, offset, theme })) * across
  return sight.hosts.slice(first, first + down * across).map((host, index) => {
    const at = index % across
    // Wide ones stay side by side where there is room for more than they may take.
    const leftOf = (box: number) => Math.min(MOST_BOX_COLUMNS * box, Math.floor((area.width * box) / across))
    const column = leftOf(at)
    const rect: Rect = {
      column: area.column + column,
      row: area.row + Math.floor(index / across) * boxRows,
      width: leftOf(at + 1) - column,
      height: Math.min(boxRows, area.height),
    }
    const trouble = sight.down[host.name]
    const title = boxTitle(host.name, rest.used?.get(host.name), rect.width - 6)
    return pane(` box ${host.name}`, title, rect, boxRowsOf(host, rect.width - 2, theme, trouble), theme, false)
  })
}

/** With what is really used: of cores, and of memory where there is room. */
function boxTitle(name: string, used: RealUse | undefined, columns: number): string {
  if (used === undefined) return clip(name, columns)
  const cpu = `uses ${Math.round(used.cpu * 100)} %`
  const long = `${name} · ${cpu} cpu, ${short(used.memoryBytes / 2 ** 30)}G`
  return [long, `${name} · ${cpu}`].find((text) => textWidth(text) <= columns) ?? clip(name, columns)
}

/** The widest boxes of which all fit; where none do, the smallest ones. */
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

/** Devices a line, and cells each: as few lines as there may be. */
function deviceLayout(count: number, columns: number) {
  const most = Math.max(1, Math.floor((columns + 1) / (LEAST_DEVICE_CELLS + 1)))
  const lines = Math.ceil(count / most)
  const perLine = lines === 0 ? 0 : Math.ceil(count / lines)
  const cells = perLine === 0 ? 0 : Math.min(MOST_DEVICE_CELLS, Math.floor((columns + 1) / perLine) - 1)
  return { lines, perLine, cells: Math.max(1, cells) }
}

function boxRowsOf(host: PackedHost, columns: number, theme: Theme, trouble: string | undefined): readonly Row[] {
  const cores = host.unknown?.includes('cores') ? ' -' : ` ${cpuWords(host)}`
  const gib = 2 ** 30
  const memory = host.unknown?.includes('memory')
    ? ' -'
    : ` ${short(host.memoryUsedBytes / gib)}/${short(host.memoryBytes / gib)}G`
  const text = Math.max(cores.length, memory.length)
  const bar = Math.max(1, columns - 4 - text)
  const label = (words: string) => ({ text: words, style: mutedStyle(theme) })
  const amounts = (key: 'cpuMilli' | 'memoryBytes') => host.holdings.map((own) => ({ job: own.job, amount: own[key] }))
  const { lines, perLine, cells } = deviceLayout(host.devices.length, columns)
  const devices = Array.from({ length: lines }, (_, line): Row => {
    return host.devices.slice(line * perLine, (line + 1) * perLine).flatMap((shares, index) => [
      ...(index === 0 ? [] : [label(' ')]),
      ...shareCells(
        shares.map(({ job, milli }) => ({ job, amount: milli })),
        1000,
        cells,
        theme,
      ),
    ])
  })
  const isFull = { text: cores.padStart(text), style: host.strandedMilli > 0 ? warn(theme) : styleOf(theme.text) }
  const core: Row = [label('cpu '), ...shareCells(amounts('cpuMilli'), host.cpuMilli, bar, theme), isFull]
  if (trouble !== undefined)
    return [
      [{ text: clip(printable(trouble), columns), style: styleOf(theme.danger, undefined, BOLD) }],
      core,
      ...devices,
    ]
  return [
    core,
    [
      label('mem '),
      ...shareCells(amounts('memoryBytes'), host.memoryBytes, bar, theme),
      { text: memory.padStart(text), style: styleOf(theme.text) },
    ],
    ...devices,
  ]
}

function figureRows(
  { hosts, active, counts, driver, down }: QueueSight,
  columns: number,
  theme: Theme,
): readonly Row[] {
  const figures = packingFigures(hosts, down)
  const text = (words: string) => ({ text: words, style: styleOf(theme.text) })
  const bold = (words: string) => ({ text: words, style: styleOf(theme.text, undefined, BOLD) })
  const part = (milli: number, words: string, style = styleOf(theme.text)) =>
    milli > 0 ? [{ text: `, ${gpus(milli)} ${words}`, style }] : []
  const waiting = counts.get('queued') ?? 0
  const downCount = hosts.filter(({ name }) => down[name] !== undefined).length
  const gpuRow = (isShort: boolean): Row => [
    bold(` GPUs ${gpus(figures.heldMilli)}/${figures.devices}`),
    text(`${isShort ? '' : ' held'}, ${figures.freeDevices} free`),
    ...part(
      figures.downMilli,
      isShort ? 'down' : downCount === 1 ? 'on a host that is down' : 'on hosts that are down',
      warn(theme),
    ),
    ...part(figures.piecesMilli, 'fragmented'),
    ...part(figures.strandedMilli, isShort ? 'stranded' : 'stranded (no core)', warn(theme)),
    bold(`  cores ${hosts.every(({ unknown }) => unknown?.includes('cores')) ? '-' : cpuWords(figures)}`),
  ]
  return [
    [gpuRow(false), gpuRow(true)].find((row) => rowWidth(row) <= columns) ?? gpuRow(true),
    [
      bold(` ${active.length} running, ${waiting} waiting`),
      ...(downCount > 0
        ? [{ text: `  ${downCount} ${downCount === 1 ? 'host' : 'hosts'} down`, style: warn(theme) }]
        : []),
      driver === undefined
        ? { text: '  nobody drives it: muster job work', style: warn(theme) }
        : { text: `  driven by ${printable(driver)}`, style: mutedStyle(theme) },
    ],
  ]
}

const cpuWords = ({ cpuUsedMilli, cpuMilli }: { readonly cpuUsedMilli: number; readonly cpuMilli: number }) =>
  `${short(cpuUsedMilli / 1000)}/${short(cpuMilli / 1000)}`

const rowWidth = (row: Row): number => row.reduce((sum, { text }) => sum + textWidth(text), 0)

function waitingRow({ job, why, expectedMs }: QueueSight['waiting'][number], theme: Theme): Row {
  const when = expectedMs === undefined ? '' : `expected ${new Date(expectedMs).toISOString().slice(11, 16)} UTC: `
  return [
    jobSpan(job.id, letterOf(job.id), theme),
    { text: ` ${job.id} ${clip(printable(job.spec.name), 24)}  `, style: styleOf(theme.text, undefined, BOLD) },
    { text: printable(when + why), style: mutedStyle(theme) },
  ]
}

function rayWaitingRow({ group, name, why }: RayPicture['waiting'][number], theme: Theme): Row {
  const job = group ?? LOOSE_JOB
  return [
    jobSpan(job, signOf(job), theme),
    { text: ` ${clip(printable(name), 24)}  `, style: styleOf(theme.text, undefined, BOLD) },
    { text: printable(why), style: mutedStyle(theme) },
  ]
}

function rayFigureRows({ hosts, dead, groupCount, actors }: RayPicture, theme: Theme): readonly Row[] {
  const figures = packingFigures(hosts)
  const bold = (words: string) => ({ text: words, style: styleOf(theme.text, undefined, BOLD) })
  const counts = [...actors].map(([state, count]) => `${count} ${state.toLowerCase()}`).join(', ')
  return [
    [
      bold(` GPUs ${gpus(figures.heldMilli)}/${figures.devices}`),
      bold(`  cores ${cpuWords(figures)}`),
      { text: `  of ${hosts.length} nodes`, style: styleOf(theme.text) },
      dead.length > 0
        ? { text: `  dead: ${printable(dead.join(', '))}`, style: styleOf(theme.danger, undefined, BOLD) }
        : { text: '', style: mutedStyle(theme) },
    ],
    [
      bold(` ${groupCount} placement ${groupCount === 1 ? 'group' : 'groups'}`),
      { text: `${counts === '' ? '' : `, actors: ${counts}`}  * tasks and actors in none`, style: mutedStyle(theme) },
    ],
  ]
}

function waitingPane({ waiting, waitingCount }: Shown, rect: Rect, theme: Theme): PaneView | undefined {
  if (waiting.length === 0) return undefined
  const most = Math.max(1, Math.min(MOST_WAITING_ROWS, Math.floor(rect.height / 12)))
  const rows = waiting.slice(0, most)
  const height = rows.length + 2
  const area = { ...rect, row: rect.row + rect.height - height, height }
  return pane(' waiting', `waiting: ${waitingCount}`, area, rows, theme, false)
}

function pane(id: string, title: string, rect: Rect, rows: readonly Row[], theme: Theme, hasKeys: boolean): PaneView {
  const document = { head: [], length: rows.length, row: (index: number) => rows[index] ?? [] }
  const place = { offset: 0, isFollowing: false }
  return rowsPane({ id, title, hasKeys, isBusy: false, document, place, rect, theme })
}

const warn = (theme: Theme) => styleOf(theme.warning, undefined, BOLD)
const gpus = (milli: number): string => short(milli / 1000)
/** With one digit behind the point where there is one. */
const short = (value: number): string =>
  value >= 100 ? String(Math.round(value)) : String(Math.round(value * 10) / 10)
