/** Above the picture of the Packing tab: figures, what fragments free GPUs, and the what-if. Pure. */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { clip } from '../../base/text-width.ts'
import { whenText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { fragmentation } from '../../scheduler/jobs/packing.ts'
import { fewerGpusLines } from '../../scheduler/model/fewer-gpus.ts'
import { boldStyle, mutedStyle, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import { type Row, wrapRows } from '../rows/rows-pane.ts'
import { gpus, warn } from './figure-rows.ts'
import { type Group, type PackingInput, sourcesRow } from './packing-input.ts'
import type { PackedCluster } from './picture.ts'
import { SLIDERS, type Slider, STRATEGIES, type TryOut, WHAT_IF_POLICIES, type WhatIf, whatIfWords } from './what-if.ts'

export const MOST_LEGEND_NAME = 20

/** From this height of the tab on, there are more rows for what changes. */
const HIGH_ROWS = 36

/** What can be shown, the figures of what is, and the sliders of a what-if: as many rows for each state of the jobs. */
export function headRows(groups: readonly Group[], input: PackingInput): readonly Row[] {
  const { theme, whatIf, sources } = input
  // Of several clusters each has its own figures in its heading.
  const figures = groups.length === 1 ? (groups[0]?.figures ?? []) : []
  if (whatIf === undefined) return [...sourcesRow(sources, theme), ...figures]
  return [...sourcesRow(sources, theme), ...figures.slice(0, 1), slidersRow(whatIf.gang, input)]
}

export type NoteRoom = { readonly note: number; readonly legend: number }

/**
 * How many rows below these figures the answer of a what-if has, or what fragments the free GPUs, and how many the letters of
 * jobs. So many, whatever there is to say, so that hosts keep their places when jobs come and go.
 */
export function noteRoom(groups: readonly Group[], { rect, whatIf }: PackingInput, hasLegend: boolean): NoteRoom {
  const isHigh = rect.height >= HIGH_ROWS
  const reason = isHigh ? 2 : 1
  const alone = Math.max(1, Math.min(3, Math.floor(rect.height / 8)))
  const legend = groups.length === 1 ? alone : reason
  return { note: whatIf === undefined ? reason : isHigh ? 5 : 3, legend: hasLegend ? legend : 0 }
}

/** `legend`: letters of jobs in at most so many rows; they have what the rest leaves. */
export function noteRows(
  groups: readonly Group[],
  { theme, whatIf, nowMs }: PackingInput,
  columns: number,
  room: NoteRoom,
  legend: (most: number) => readonly Row[],
): readonly Row[] {
  const own =
    whatIf === undefined
      ? fragmentationRows(groups, columns, room.note, theme)
      : answerRows(whatIf, columns, room, theme, nowMs)
  const count = room.note + room.legend
  const left = room.legend === 0 ? 0 : count - own.length
  const rows = [...own, ...(left > 0 ? legend(left) : [])]
  return Array.from({ length: count }, (_, at) => rows[at] ?? [])
}

function answerRows(
  { gang, trial }: NonNullable<PackingInput['whatIf']>,
  columns: number,
  { note, legend }: NoteRoom,
  theme: Theme,
  nowMs: number,
): readonly Row[] {
  // What does not fit adds no letter, and may have many reasons.
  const most = trial !== undefined && trial.places === undefined ? note + legend : note
  const effect = trial === undefined ? '' : effectText(trial, nowMs)
  const answer = whatIfRows(gang, trial, columns, effect === '' ? most : most - 1, theme)
  return effect === '' ? answer : [...answer, ...fewRows(effect, columns, most - answer.length, warn(theme))]
}

function fragmentationRows(groups: readonly Group[], columns: number, most: number, theme: Theme): readonly Row[] {
  const texts = groups.flatMap(({ cluster, title }) => {
    const text = fragmentationText(cluster)
    return text === '' ? [] : [groups.length === 1 ? text : `${title}: ${text}`]
  })
  const style = mutedStyle(theme)
  if (texts.length === 1 || texts.length > most) return fewRows(texts.join('; '), columns, most, style)
  return texts.flatMap((text) => fewRows(text, columns, 1, style))
}

/** Wrapped into so many rows; the last one is cut. */
function fewRows(text: string, columns: number, most: number, style: Span['style']): readonly Row[] {
  const rows = wrapRows(text, columns, ' ', style)
  const kept = rows.slice(0, most - 1)
  const rest = rows
    .slice(most - 1)
    .map((row) =>
      row
        .map((span) => span.text)
        .join('')
        .trim(),
    )
    .join(' ')
  return rest === '' ? kept : [...kept, [{ text: ` ${clip(rest, columns - 1)}`, style }]]
}

/** Which declared GPUs are not there, and why some free ones are unusable; empty: all are usable. */
function fragmentationText({ hosts, down }: PackedCluster): string {
  const { free, mostOnOneHost, largestHost, piecesMilli, largestPieceMilli, strandedMilli, stranded } = fragmentation(
    hosts,
    down,
  )
  const parts = [
    ...(free > mostOnOneHost && mostOnOneHost < largestHost
      ? [`${counted(free, 'GPU')} free, at most ${mostOnOneHost} on one host`]
      : []),
    ...(piecesMilli > 0
      ? [
          piecesMilli === largestPieceMilli
            ? `${gpus(piecesMilli)} left on a shared GPU`
            : `${gpus(piecesMilli)} left on shared GPUs, at most ${gpus(largestPieceMilli)} on one`,
        ]
      : []),
    ...(strandedMilli > 0
      ? [
          `${gpus(strandedMilli)} ${strandedMilli === 1000 ? 'GPU' : 'GPUs'} without a free core on ${foldHostSet(stranded)}`,
        ]
      : []),
  ]
  const fewer = fewerGpusLines(hosts.map((host) => ({ ...host, gpus: host.devices })))
  return [...fewer, ...(parts.length === 0 ? [] : [`fragmentation: ${parts.join('; ')}`])].join('; ')
}

function whatIfRows(
  gang: WhatIf,
  trial: TryOut | undefined,
  columns: number,
  most: number,
  theme: Theme,
): readonly Row[] {
  const request = ` ${whatIfWords(gang)}: `
  const requestStyle = boldStyle(theme.accent)
  if (trial === undefined) return [[{ text: request, style: requestStyle }]]
  const hosts = foldHostSet([...new Set(trial.places?.map(({ host }) => host))])
  const [text, style] =
    trial.places === undefined
      ? [sentences(trial.why), warn(theme)]
      : [
          `+ on ${hosts}${trial.unknown === undefined ? '' : `, if it has room there: ${trial.unknown}`}`,
          boldStyle(trial.unknown === undefined ? theme.ok : theme.warning),
        ]
  const [[first] = [], ...rest] = fewRows(`${request.trim()} ${printable(text)}`, columns, most, style)
  if (first === undefined) return []
  const [own, answer] = [first.text.slice(0, request.length), first.text.slice(request.length)]
  return [
    [
      { text: own, style: requestStyle },
      { text: answer, style },
    ],
    ...rest,
  ]
}

/** Lines as one text: what is neither a sentence nor a title is divided from the next one. */
const sentences = (lines: readonly string[]): string =>
  lines.reduce((text, line) => (text === '' ? line : `${text}${/[.:]$/.test(text) ? '' : ';'} ${line}`), '')

/** Which jobs would wait longer, or have to end; empty: none. */
function effectText({ later = [], victims = [], places }: TryOut, nowMs: number): string {
  const nameOf = ({ job, name }: { readonly job: number; readonly name: string }) =>
    `${job} ${clip(printable(name), MOST_LEGEND_NAME)}`
  if (places === undefined)
    return victims.length === 0 ? '' : `It would fit if these jobs ended: ${victims.map(nameOf).join(', ')}`
  if (later.length === 0) return ''
  const when = (ms: number | undefined) => (ms === undefined ? 'no known start' : whenText(ms, nowMs))
  return `If it ran for an hour, these would start later: ${later.map((one) => `${nameOf(one)} (${when(one.fromMs)} → ${when(one.toMs)})`).join(', ')}`
}

/**
 * `strategy ●─── PACK         ▸policy ─●──────── ray             bundles - + 4`; Left and Right move the marked one, and clicks
 * any. As wide for each choice, and at most 78 columns.
 */
function slidersRow(whatIf: WhatIf, { theme, slide }: PackingInput): Row {
  return SLIDERS.flatMap((slider): Span[] => {
    const isMarked = slider === whatIf.slider
    const style = isMarked ? boldStyle(theme.accent) : styleOf(theme.text)
    const set = (change: Partial<WhatIf>) => () => slide?.({ ...whatIf, slider, ...change })
    const choice = <T extends string>(
      options: readonly T[],
      now: T,
      press: string,
      changeOf: (option: T) => Partial<WhatIf>,
    ): Span[] => [
      ...options.map((option) => ({ text: option === now ? '●' : '─', style, press: set(changeOf(option)) })),
      { text: ` ${now.padEnd(Math.max(...options.map(({ length }) => length)))}`, style, press },
    ]
    const parts: Readonly<Record<Slider, () => Span[]>> = {
      strategy: () => choice(STRATEGIES, whatIf.strategy, 's', (strategy) => ({ strategy })),
      policy: () => choice(WHAT_IF_POLICIES, whatIf.by, 'p', (by) => ({ by })),
      bundles: () => [
        { text: '-', style, press: '-' },
        { text: ' +', style, press: '+' },
        { text: ` ${whatIf.bundles}`, style },
      ],
    }
    const title = `${isMarked ? '▸' : ' '}${slider} `
    return [{ text: title, style: isMarked ? style : mutedStyle(theme), press: set({}) }, ...parts[slider]()]
  })
}
