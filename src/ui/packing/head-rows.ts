/** Above the picture of the Packing tab: figures, what fragments free GPUs, and the what-if. Pure. */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { clip, textWidth } from '../../base/text-width.ts'
import { whenText } from '../../base/time-text.ts'
import { foldHostSet } from '../../inventory/host-set.ts'
import { fragmentation } from '../../scheduler/jobs/packing.ts'
import { boldStyle, mutedStyle, type Rect, type Span, styleOf, type Theme } from '../compositor/scene.ts'
import { type Row, wrapRows } from '../rows/rows-pane.ts'
import { gpus, warn } from './figure-rows.ts'
import { type Group, type PackingInput, sourcesRow } from './packing-input.ts'
import type { PackedCluster } from './picture.ts'
import { SLIDERS, type Slider, STRATEGIES, type TryOut, WHAT_IF_POLICIES, type WhatIf, whatIfWords } from './what-if.ts'

export const MOST_LEGEND_NAME = 20

/** From this height of the tab on, there are more rows for what changes. */
const HIGH_ROWS = 36

/** So many rows, whatever there is to say. */
export const padRows = (rows: readonly Row[], count: number): readonly Row[] =>
  Array.from({ length: count }, (_, at) => rows[at] ?? [])

/**
 * What can be shown, the figures of what is, the what-if, and what fragments the free GPUs. As many rows for each state of
 * the jobs, so that the hosts below keep their places.
 */
export function headRows(groups: readonly Group[], input: PackingInput, { width }: Rect): readonly Row[] {
  const isHigh = input.rect.height >= HIGH_ROWS
  const { theme, whatIf, sources } = input
  const columns = width - 2
  const own = groups.length === 1 ? (groups[0]?.figures ?? []) : []
  if (whatIf) {
    const { gang, trial } = whatIf
    const most = isHigh ? 5 : 3
    const effect = trial === undefined ? '' : effectText(trial, input.nowMs)
    const answer = whatIfRows(gang, trial, columns, effect === '' ? most : most - 1, theme)
    return [
      ...sourcesRow(sources, theme),
      ...(groups.find(({ cluster }) => cluster.key === 'queue')?.figures.slice(0, 1) ?? []),
      slidersRow(gang, input),
      ...padRows([...answer, ...fewRows(effect, columns, most - answer.length, warn(theme))], most),
    ]
  }
  const texts = groups.flatMap(({ cluster, title }) => {
    const text = fragmentationText(cluster)
    return text === '' ? [] : [groups.length === 1 ? text : `${title}: ${text}`]
  })
  // Of several clusters each has one row.
  const most = isHigh && groups.length === 1 ? 2 : 1
  const reason = padRows(
    texts.flatMap((text) => fewRows(text, columns, most, mutedStyle(theme))),
    most * Math.min(2, groups.length),
  )
  return [...sourcesRow(sources, theme), ...own, ...reason]
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

/** Why some free GPUs are unusable; empty: all are usable. */
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
    ...(strandedMilli > 0 ? [`${gpus(strandedMilli)} without a free core on ${foldHostSet(stranded)}`] : []),
  ]
  return parts.length === 0 ? '' : `fragmentation: ${parts.join('; ')}`
}

function whatIfRows(
  gang: WhatIf,
  trial: TryOut | undefined,
  columns: number,
  most: number,
  theme: Theme,
): readonly Row[] {
  const words = ` ${whatIfWords(gang)}: `
  const request: Span = { text: words, style: boldStyle(theme.accent) }
  if (trial === undefined) return [[request]]
  const hosts = foldHostSet([...new Set(trial.places?.map(({ host }) => host))])
  const [text, style] =
    trial.places === undefined
      ? [sentences(trial.why), warn(theme)]
      : [
          `+ on ${hosts}${trial.unknown === undefined ? '' : `, if it has room there: ${trial.unknown}`}`,
          boldStyle(trial.unknown === undefined ? theme.ok : theme.warning),
        ]
  const room = columns - textWidth(words)
  if (textWidth(text) <= room) return [[request, { text: printable(text), style }]]
  return [[request], ...fewRows(printable(text), columns, most - 1, style)]
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

/** `strategy ●─── PACK  ▸policy ─●──────── ray   bundles 4 - +`; Left and Right move the marked one, and clicks any. */
function slidersRow(whatIf: WhatIf, { theme, slide }: PackingInput): Row {
  return SLIDERS.flatMap((slider): Span[] => {
    const isMarked = slider === whatIf.slider
    const style = isMarked ? boldStyle(theme.accent) : styleOf(theme.text)
    const set = (change: Partial<WhatIf>) => () => slide?.({ ...whatIf, slider, ...change })
    const knobs = <T>(options: readonly T[], now: T, changeOf: (option: T) => Partial<WhatIf>): Span[] =>
      options.map((option) => ({ text: option === now ? '●' : '─', style, press: set(changeOf(option)) }))
    const parts: Readonly<Record<Slider, () => Span[]>> = {
      strategy: () => [
        ...knobs(STRATEGIES, whatIf.strategy, (strategy) => ({ strategy })),
        { text: ` ${whatIf.strategy.padEnd(13)}`, style, press: 's' },
      ],
      policy: () => [
        ...knobs(WHAT_IF_POLICIES, whatIf.by, (by) => ({ by })),
        { text: ` ${whatIf.by.padEnd(14)}`, style, press: 'p' },
      ],
      bundles: () => [
        { text: String(whatIf.bundles), style },
        { text: ' -', style, press: '-' },
        { text: ' +', style, press: '+' },
      ],
    }
    const title = ` ${isMarked ? '▸' : ' '}${slider} `
    return [{ text: title, style: isMarked ? style : mutedStyle(theme), press: set({}) }, ...parts[slider]()]
  })
}
