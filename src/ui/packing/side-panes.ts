/** Beside or below the picture of the Packing tab: the selected block, the jobs with their letters, and those that wait. Pure. */
import { printable } from '../../base/printable.ts'
import { clip, textWidth } from '../../base/text-width.ts'
import { whenText } from '../../base/time-text.ts'
import type { PackedHost } from '../../scheduler/jobs/packing.ts'
import { WHOLE_MILLI } from '../../scheduler/model/resources.ts'
import { boldStyle, mutedStyle, type PaneView, type Rect, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import type { RealUse } from '../jobs/queue-view.ts'
import { documentOf, percentOf, type Row, rowsPane, rowWidth, wrapRows } from '../rows/rows-pane.ts'
import type { BlockSpot, TileLayout } from './arrange.ts'
import { colourGroup, jobSpan, signOf } from './blocks.ts'
import { PLAIN, timeLines } from './draw-tiles.ts'
import { nameWithTitle } from './engine-picture.ts'
import { gib, gpus, short, warn } from './figure-rows.ts'
import { MOST_LEGEND_NAME } from './head-rows.ts'
import type { Group, PackingInput } from './packing-input.ts'
import type { JobCard, PackedCluster, WaitingCard } from './picture.ts'
import { LOOSE_JOB } from './ray-picture.ts'
import { WHAT_IF_JOB } from './what-if.ts'

const MOST_WAITING_NAME = 40

/** The jobs of the visible tiles, those that hold most first. */
export function cardsOf(groups: readonly Group[], { tiles }: TileLayout, { whatIf }: PackingInput): readonly OwnCard[] {
  const amounts = new Map<string, { card: OwnCard; gpus: number; cpu: number }>()
  for (const { group, host } of tiles) {
    const { cluster } = groups[group] ?? {}
    if (cluster === undefined) continue
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

/** Letters of jobs with their numbers and names, the largest first, and how many more there are. */
export function legendRows(
  cards: readonly OwnCard[],
  most: number,
  columns: number,
  input: PackingInput,
): readonly Row[] {
  const { theme, isByUser } = input
  const rows: Span[][] = []
  let row: Span[] = []
  for (const [index, card] of cards.entries()) {
    const by = isByUser === true && card.user !== '' ? ` ${printable(card.user)}` : ''
    const entry = [
      { text: ' ', style: PLAIN },
      jobSpan(card.job, signOf(card.job), theme, colourGroup(card, input.isByUser)),
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
export function jobRows(cards: readonly OwnCard[], { width, height }: Rect, input: PackingInput): readonly Row[] {
  const { theme, nowMs } = input
  const most = Math.max(1, height - 2)
  const shown = cards.slice(0, cards.length > most ? most - 1 : most)
  const rows = shown.map((card): Row => {
    const end = card.end === undefined ? '' : whenText(card.end.atMs, nowMs)
    const name = clip(printable(card.name), Math.max(8, width - 26))
    const user = clip(printable(card.user), 10)
    return [
      { text: ' ', style: PLAIN },
      jobSpan(card.job, signOf(card.job), theme, colourGroup(card, input.isByUser)),
      { text: ` ${name}${' '.repeat(Math.max(0, width - 27 - textWidth(name)))} `, style: styleOf(theme.text) },
      { text: `${user}${' '.repeat(Math.max(0, 10 - textWidth(user)))} `, style: mutedStyle(theme) },
      { text: end, style: mutedStyle(theme) },
    ]
  })
  return shown.length < cards.length
    ? [...rows, [{ text: ` ${cards.length - shown.length} more`, style: mutedStyle(theme) }]]
    : rows
}

export function chosenPane(
  groups: readonly Group[],
  spot: BlockSpot | undefined,
  rect: Rect,
  input: PackingInput,
): PaneView {
  const { theme } = input
  const { cluster, title = '' } = (spot && groups[spot.group]) ?? {}
  const host = cluster?.hosts.find(({ name }) => name === spot?.host)
  if (spot === undefined || cluster === undefined || host === undefined)
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
  return factRows(job, colourGroup(card, input.isByUser), printable(card.name), facts, columns, theme)
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
export function waitingCardRows(
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

const expectedText = (expectedMs: number | undefined, nowMs: number): string =>
  expectedMs === undefined ? '' : `expected ${whenText(expectedMs, nowMs)}: `
