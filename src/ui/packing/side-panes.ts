/** Beside or below the picture of the Packing tab: the selected block, the jobs with their letters, and those that wait. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, padEnd, partsWidth, textWidth } from '../../base/text-width.ts'
import { whenText } from '../../base/time-text.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import type { RealUse } from '../jobs/queue-view.ts'
import { documentOf, percentOf, type Row, type RowDocument, rowStyle, rowsPane, wrapRows } from '../rows/rows-pane.ts'
import { sortMark } from '../rows/table-view.ts'
import type { BlockSpot, TileLayout } from './arrange.ts'
import { colourGroup, jobSpan, pastRows, signOf } from './blocks.ts'
import { blockPast, PLAIN, pastWords, processesText, timeLines } from './draw-tiles.ts'
import { nameWithTitle } from './engine-picture.ts'
import { gib, gpus, short, warn } from './figure-rows.ts'
import { MOST_LEGEND_NAME } from './head-rows.ts'
import { isInUse, type UsedPart } from './history.ts'
import { type Group, type HeldCard, JOB_COLUMNS, type PackingInput } from './packing-input.ts'
import type { PackedCluster, WaitingCard } from './picture.ts'
import { LOOSE_JOB } from './ray-picture.ts'
import { WHAT_IF_JOB } from './what-if.ts'

const MOST_WAITING_NAME = 40

/** The jobs of all tiles with what they hold, also of hosts without a tile; those that hold most first. */
export function cardsOf(
  groups: readonly Group[],
  { tiles }: TileLayout,
  { whatIf }: PackingInput,
): readonly HeldCard[] {
  const held = groups.flatMap(({ cluster }, group) => {
    const cards = new Map<number, Mutable<HeldCard>>()
    for (const { host } of tiles.filter((tile) => tile.group === group))
      for (const { job } of [...host.holdings, ...host.devices.flat()]) {
        const card = cluster.cards.get(job)
        if (card !== undefined && !cards.has(job)) cards.set(job, { ...card, group, gpuMilli: 0, cpuMilli: 0 })
      }
    for (const { holdings, devices } of cluster.hosts) {
      for (const { job, cpuMilli } of holdings) {
        const own = cards.get(job)
        if (own !== undefined) own.cpuMilli += cpuMilli
      }
      for (const { job, milli } of devices.flat()) {
        const own = cards.get(job)
        if (own !== undefined) own.gpuMilli += milli
      }
    }
    return [...cards.values()]
  })
  const own = held.sort(
    (one, other) => other.gpuMilli - one.gpuMilli || other.cpuMilli - one.cpuMilli || one.job - other.job,
  )
  return whatIf?.trial?.places === undefined ? own : [WHAT_IF_CARD, ...own]
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

const WHAT_IF_CARD: HeldCard = {
  ...{ job: WHAT_IF_JOB, name: 'what-if', title: 'what-if', user: '', group: 0, gpuMilli: 0, cpuMilli: 0 },
  holds: () => '',
}

/** Letters of jobs with their numbers and names, the largest first, and how many more there are. */
export function legendRows(
  cards: readonly HeldCard[],
  most: number,
  columns: number,
  { theme, isByUser, letters }: PackingInput,
): readonly Row[] {
  const rows: Span[][] = []
  let row: Span[] = []
  let left = cards.length
  for (const run of runsOf(cards)) {
    const [first, last] = [run[0], run.at(-1)]
    if (first === undefined || last === undefined) break
    const by = isByUser === true && first.user !== '' ? ` ${printable(first.user)}` : ''
    const name = run.length === 1 ? first.name : `${first.job}-${last.job} ${first.title}`
    const sign = (card: HeldCard) => jobSpan(card.job, signOf(card.job, letters), theme, colourGroup(card, isByUser))
    const entry: Span[] = [
      { text: ' ', style: PLAIN },
      ...(run.length <= MOST_LETTERS
        ? run.map(sign)
        : [sign(first), { text: '…', style: styleOf(theme.text) }, sign(last)]),
      { text: ` ${clip(printable(name), MOST_LEGEND_NAME)}${by} `, style: styleOf(theme.text) },
    ]
    const more: Span = { text: ` ${left} more: Tab`, style: mutedStyle(theme) }
    const isLastRow = rows.length === most - 1
    const needed = partsWidth([...row, ...entry]) + (isLastRow && run.length < left ? more.text.length + 2 : 0)
    if (needed > columns && row.length > 0) {
      if (isLastRow) {
        row.push(more)
        break
      }
      rows.push(row)
      row = []
    }
    row.push(...entry)
    left -= run.length
  }
  return row.length > 0 ? [...rows, row] : rows
}

/** Of a run with more jobs, only the first and the last letter are shown. */
const MOST_LETTERS = 8

/** Consecutive jobs with the same name and user form a run, so that an array has one entry. */
function runsOf(cards: readonly HeldCard[]): readonly (readonly HeldCard[])[] {
  const runs: HeldCard[][] = []
  for (const card of cards) {
    const before = runs.at(-1)?.at(-1)
    const isNext =
      before !== undefined &&
      card.job === before.job + 1 &&
      card.name === `${card.job} ${before.title}` &&
      card.user === before.user &&
      card.group === before.group
    if (isNext) runs.at(-1)?.push(card)
    else runs.push([card])
  }
  return runs
}

/** All jobs of the picture, a row each, below the titles of their columns. `selected`: while they have the keys. */
export function jobsDocument(
  cards: readonly HeldCard[],
  { width }: Rect,
  { theme, nowMs, isByUser, tables, letters }: PackingInput,
  selected?: number,
): RowDocument {
  const ends = cards.map(({ end }) => (end === undefined ? '' : whenText(end.atMs, nowMs)))
  const longest = (texts: readonly string[]) => texts.reduce((most, text) => Math.max(most, textWidth(text)), 5)
  const userColumns = Math.min(10, longest(cards.map(({ user }) => printable(user))))
  const nameColumns = Math.max(8, width - 8 - userColumns - GPU_COLUMNS - longest(ends))
  const cell = (text: string, columns: number) => `${padEnd(clip(text, columns), columns)} `
  const title = (text: string) => {
    const column = JOB_COLUMNS.find((one) => one.title === text)
    return tables === undefined || column === undefined ? text : `${text}${sortMark(tables.jobs, column)}`
  }
  const heading = [
    `   ${cell(title('JOB'), nameColumns)}`,
    cell(title('USER'), userColumns),
    `${title('GPUS').padStart(GPU_COLUMNS)} `,
    title('ENDS'),
  ]
  const rows = cards.map(
    (card, at): Row => [
      { text: at === selected ? '▸' : ' ', style: rowStyle(theme, at === selected) },
      jobSpan(card.job, signOf(card.job, letters), theme, colourGroup(card, isByUser)),
      { text: ` ${cell(printable(card.name), nameColumns)}`, style: rowStyle(theme, at === selected) },
      { text: cell(printable(card.user), userColumns), style: mutedStyle(theme) },
      {
        text: `${(card.gpuMilli === 0 ? '' : gpus(card.gpuMilli)).padStart(GPU_COLUMNS)} `,
        style: styleOf(theme.text),
      },
      { text: ends[at] ?? '', style: mutedStyle(theme) },
    ],
  )
  return documentOf(rows, [heading.map((text) => ({ text, style: mutedStyle(theme) }))])
}

const GPU_COLUMNS = 5

export function chosenPane(
  groups: readonly Group[],
  spot: BlockSpot | undefined,
  rect: Rect,
  input: PackingInput,
): PaneView {
  const { theme } = input
  const group = spot && groups[spot.group]
  const host = group?.cluster.hosts.find(({ name }) => name === spot?.host)
  if (spot === undefined || group === undefined || host === undefined)
    return rowsPane({ id: ' chosen', title: 'selected', hasKeys: false, document: documentOf([]), rect, theme })
  const model = typeof spot.part === 'number' ? group.used?.get(host.name)?.gpus?.get(spot.part)?.name : undefined
  const what =
    typeof spot.part === 'number' ? `GPU ${spot.part}${model === undefined ? '' : ` (${printable(model)})`}` : spot.part
  const where = groups.length > 1 ? `${group.title}: ` : ''
  const document = documentOf(chosenRows(group, host, spot, rect, input))
  return rowsPane({ id: ' chosen', title: `${where}${host.name} ${what}`, hasKeys: false, document, rect, theme })
}

/** `0.01` */
const LEAST_SHOWN_MILLI = 10

/** What the selected block is: its use, what of it is free, each job on it, and its last ten minutes. */
function chosenRows(
  group: Group,
  host: PackedHost,
  { part }: BlockSpot,
  { width, height }: Rect,
  input: PackingInput,
): readonly Row[] {
  const { cluster, used } = group
  const { theme, nowMs } = input
  const columns = width - 2
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
              ? { job, own: coresText(cpuMilli), amount: cpuMilli }
              : { job, own: `${gib(memoryBytes)} GiB`, amount: memoryBytes },
          )
          .filter(({ amount }) => amount > 0)
  const held = shares.reduce((sum, { amount }) => sum + amount, 0)
  const now = nowText(part, use)
  const gpu = typeof part === 'number' ? use?.gpus?.get(part) : undefined
  const isTaken = held === 0 && cluster.key === 'queue' && isInUse(gpu)
  const left =
    typeof part === 'number'
      ? WHOLE_MILLI - held < LEAST_SHOWN_MILLI
        ? ''
        : held === 0
          ? isTaken
            ? 'no job holds it, but it is in use'
            : 'free'
          : `${gpus(WHOLE_MILLI - held)} is free`
      : host.unknown?.includes(part)
        ? `its ${part === 'cores' ? 'number of cores' : 'memory'} is not known yet`
        : part === 'cores'
          ? `${short((host.cpuMilli - held) / 1000)} of ${coresText(host.cpuMilli)} free`
          : `${gib(host.memoryBytes - held)} of ${gib(host.memoryBytes)} GiB is free`
  const who = isTaken && gpu !== undefined ? processesText(gpu) : ''
  const facts = [left, now, who === '' ? '' : `${who} (the page of the host in Network shows whose)`]
    .filter((text) => text !== '')
    .join(' · ')
  const rows = [
    ...(trouble === undefined ? [] : wrapRows(printable(trouble), columns, ' ', boldStyle(theme.danger))),
    ...(facts === '' ? [] : wrapRows(facts, columns, ' ', styleOf(theme.text))),
    ...(host.strandedMilli > 0 && typeof part === 'number' && held < WHOLE_MILLI
      ? wrapRows('It cannot be used: no core of the host is free.', columns, ' ', warn(theme))
      : []),
    ...shares.flatMap(({ job, own }) => holderRows(cluster, host, part, job, own, columns, input, nowMs)),
  ]
  return part === 'memory' ? rows : [...rows, ...pastOf(group, host, part, columns, height - 2 - rows.length, input)]
}

/** The last ten minutes of a block, as far as there is room: a strip, its times, and what it means. */
function pastOf(
  group: Group,
  host: PackedHost,
  part: UsedPart,
  columns: number,
  room: number,
  input: PackingInput,
): readonly Row[] {
  const { theme } = input
  if (room < 1) return []
  const cells = blockPast(group, host, part, columns - 2, input)
  const words = room < 3 ? [] : pastWords(new Set(cells.map(({ past }) => past)), columns, theme)
  const times = room < 2 ? [] : [timesRow(columns - 2, theme)]
  const most = cells.some(({ busy }) => busy > 0) ? MOST_STRIP : 1
  const height = Math.max(1, Math.min(most, room - words.length - times.length))
  const strip = pastRows(cells, height, theme)
  const rows = [...strip, ...times].map((row): Row => [{ text: ' ', style: PLAIN }, ...row])
  return [...rows, ...(words.length + rows.length > room ? [] : words)]
}

const MOST_STRIP = 4

function timesRow(columns: number, theme: Theme): Row {
  const [from, now] = ['10 min ago', 'now']
  return [{ text: `${from}${now.padStart(Math.max(now.length + 1, columns - from.length))}`, style: mutedStyle(theme) }]
}

const coresText = (milli: number): string => `${short(milli / 1000)} ${milli === 1000 ? 'core' : 'cores'}`

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
  if (job === LOOSE_JOB) {
    const others = cluster.othersOn(host.name, typeof part === 'number' ? part : undefined)
    const texts =
      others.length === 0
        ? [`${cluster.looseText}${own === '' ? '' : `: ${own}`}`]
        : others.map((other) => nameWithTitle(other, []))
    return texts.flatMap((text) => factRows(job, job, printable(text), [], columns, input))
  }
  const card = job === WHAT_IF_JOB ? WHAT_IF_CARD : cluster.cards.get(job)
  if (card === undefined) return factRows(job, job, `job ${job}`, [own], columns, input)
  const all = card.holds()
  // Beside what the job has in all, unless that is all.
  const here = own === '' || typeof part === 'number' ? own : `${own} here`
  const amount =
    all === `${own} on ${host.name}`
      ? [all]
      : all === `${own.replace(' of it', ' GPUs')} on ${host.name}`
        ? [own]
        : [here, all]
  const facts = [printable(card.user), ...amount, ...timeLines(card, nowMs)]
  return factRows(job, colourGroup(card, input.isByUser), printable(card.name), facts, columns, input)
}

/** A letter and a name, and facts about them in as few rows as they need. */
function factRows(
  job: number,
  colour: number,
  name: string,
  facts: readonly string[],
  columns: number,
  { theme, letters }: PackingInput,
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
      jobSpan(job, signOf(job, letters), theme, colour),
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
export function waitingCardRows(
  { job, name, why, expectedMs }: WaitingCard,
  columns: number,
  { theme, nowMs, letters }: PackingInput,
  isSelected: boolean,
): readonly Row[] {
  const title = clip(printable(name), MOST_WAITING_NAME)
  const reason = printable(expectedText(expectedMs, nowMs) + why)
  const first: Row = [
    { text: isSelected ? '▸' : ' ', style: boldStyle(theme.accent) },
    jobSpan(job, signOf(job, letters), theme),
    { text: ` ${title}  `, style: boldStyle(theme.text) },
  ]
  const room = columns - partsWidth(first)
  if (textWidth(reason) <= room) return [[...first, { text: reason, style: mutedStyle(theme) }]]
  return [first, ...wrapRows(reason, columns, '   ', mutedStyle(theme))]
}

const expectedText = (expectedMs: number | undefined, nowMs: number): string =>
  expectedMs === undefined ? '' : `expected ${whenText(expectedMs, nowMs)}: `
