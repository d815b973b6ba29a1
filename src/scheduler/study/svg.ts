/** The plots of a study as one SVG document: no script, nothing loaded, light or dark as its reader wishes. Pure. */
import { counted } from '../../base/counted.ts'
import { printable } from '../../base/printable.ts'
import { clip } from '../../base/text-width.ts'
import type { Metric } from '../jobs/metric.ts'
import type { Axis } from './axis.ts'
import { explainStudy } from './explain.ts'
import { countTrials } from './front.ts'
import type { Importance } from './importance.ts'
import { describeBest, type ParallelPlot, type Place, type Places, type Plot, studyPlots } from './plots.ts'
import type { Study, Trial } from './study.ts'

const WIDTH = 960
const EDGE = 24
const GAP = 20
const PANEL_HEIGHT = 250
const LINE_HEIGHT = 17
const ROW_HEIGHT = 24
/** Room of a plot for its title above, its axis on the left and below. */
const TOP = 26
const LEFT = 64
const BOTTOM = 42
const RIGHT = 10
const MOST_LABEL = 14
/** Characters of a line of text, and lines of a sentence. */
const MOST_SENTENCE = 150
const MOST_LINES = 6
/** Lines of one class lie above those of the next; the best trials are the first of them. */
const CLASSES = 5
/** Above so many, dots are smaller and let others through. */
const MANY_DOTS = 1000

const STYLE = `
svg{--paper:#fff;--ink:#1f2328;--muted:#656d76;--rule:#d8dee4;--dot:#0969da;--best:#cf222e;--line:#bc4c00;background:var(--paper)}
@media (prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#e6edf3;--muted:#8b949e;--rule:#30363d;--dot:#58a6ff;--best:#ff7b72;--line:#f0883e}}
text{font:12px system-ui,sans-serif;fill:var(--ink)}
.name{font-size:20px;font-weight:600}.title{font-size:13px;font-weight:600}.muted{fill:var(--muted)}.small{font-size:11px}
.end{text-anchor:end}.middle{text-anchor:middle}
path{fill:none;stroke-linecap:round;stroke-linejoin:round}
.paper{fill:var(--paper)}.frame{stroke:var(--rule)}.bar{fill:var(--dot)}
.done,.pruned{stroke:var(--dot);stroke-width:5;stroke-opacity:.6}.pruned{stroke:var(--muted)}
.many .done,.many .pruned{stroke-width:3;stroke-opacity:.3}
.halo{stroke:var(--paper);stroke-width:3px;paint-order:stroke}
.best{stroke:var(--best);stroke-width:8}.line{stroke:var(--line);stroke-width:1.5}
.p0{stroke:var(--best);stroke-opacity:.9;stroke-width:1.5}.p1{stroke:var(--dot);stroke-opacity:.5}.p2{stroke:var(--dot);stroke-opacity:.3}.p3{stroke:var(--muted);stroke-opacity:.25}.p4{stroke:var(--muted);stroke-opacity:.15}`

/** For the text of an element and for attributes: no character of it acts, and XML allows all of them. */
const escaped = (text: string): string =>
  printable(text)
    .replace(/[\ufffe\uffff]/g, '\ufffd')
    .replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`)

const text = (x: number, y: number, content: string, classes = ''): string =>
  `<text x="${round(x)}" y="${round(y)}"${classes === '' ? '' : ` class="${classes}"`}>${escaped(content)}</text>`

const round = (value: number): number => Math.round(value * 10) / 10

/** A part of the document, from its upper edge. */
type Panel = { readonly height: number; draw(x: number, y: number): string }

/** `metric`: the first one of the study unless another one is given. */
export function studySvg(
  study: Pick<Study, 'name' | 'spec' | 'state'>,
  trials: readonly Trial[],
  metric: Metric | undefined = study.spec.metrics[0],
): string {
  const counts = countTrials(trials)
  const plots = studyPlots(study, trials, metric)
  const sentences = [
    `${counts.done} done, ${counts.pruned} pruned, ${counts.failed} failed, ${counts.cancelled === 0 ? '' : `${counts.cancelled} cancelled, `}${counts.open} open`,
    ...(metric === undefined ? [] : [describeBest(study, trials, metric)]),
    ...explainStudy(study, counts, trials),
  ].flatMap(wrapped)
  const isMany = trials.length > MANY_DOTS
  const half = (WIDTH - 2 * EDGE - GAP) / 2
  const rows: Panel[] = [
    header(study.name, sentences),
    ...(plots === undefined
      ? []
      : [
          ...(plots.front === undefined
            ? [plotPanel(plots.history, WIDTH - 2 * EDGE)]
            : [beside(plotPanel(plots.history, half), plotPanel(plots.front, half), half)]),
          ...pairs(plots.parameters.map((plot) => plotPanel(plot, half))).map(([one, other]) =>
            beside(one, other, half),
          ),
          ...(plots.parallel.axes.length > 2 ? [parallelPanel(plots.parallel)] : []),
          ...(plots.importance === undefined ? [] : [importancePanel(plots.importance, metric?.name ?? '')]),
        ]),
  ]
  let y = EDGE
  const drawn = rows.map((panel) => {
    const part = panel.draw(EDGE, y)
    y += panel.height + GAP
    return part
  })
  const name = escaped(`study ${study.name}`)
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${y}" width="${WIDTH}" height="${y}" role="img" aria-label="${name}">`,
    `<title>${name}</title>`,
    `<style>${STYLE}</style>`,
    `<rect class="paper" width="${WIDTH}" height="${y}"/>`,
    `<g${isMany ? ' class="many"' : ''}>`,
    ...drawn,
    '</g>',
    '</svg>',
    '',
  ].join('\n')
}

/** In lines that fit the width. */
function wrapped(sentence: string): readonly string[] {
  const lines: string[] = []
  for (const word of sentence.split(' ')) {
    const last = lines.at(-1)
    if (last !== undefined && last.length + 1 + word.length <= MOST_SENTENCE)
      lines[lines.length - 1] = `${last} ${word}`
    else lines.push(clip(word, MOST_SENTENCE))
  }
  return lines.slice(0, MOST_LINES)
}

function header(name: string, sentences: readonly string[]): Panel {
  return {
    height: 20 + sentences.length * LINE_HEIGHT,
    draw: (x, y) =>
      [
        text(x, y + 14, `study ${name}`, 'name'),
        ...sentences.map((sentence, index) =>
          text(x, y + 36 + index * LINE_HEIGHT, sentence, index === 0 ? '' : 'muted'),
        ),
      ].join('\n'),
  }
}

function beside(one: Panel, other: Panel | undefined, width: number): Panel {
  return {
    height: Math.max(one.height, other?.height ?? 0),
    draw: (x, y) => [one.draw(x, y), ...(other === undefined ? [] : [other.draw(x + width + GAP, y)])].join('\n'),
  }
}

function pairs<T>(items: readonly T[]): readonly (readonly [T, T | undefined])[] {
  return items.flatMap((item, index) => (index % 2 === 0 ? [[item, items[index + 1]] as const] : []))
}

function plotPanel(plot: Plot, width: number): Panel {
  return {
    height: PANEL_HEIGHT,
    draw(x, y) {
      const [left, top] = [x + LEFT, y + TOP]
      const [across, up] = [width - LEFT - RIGHT, PANEL_HEIGHT - TOP - BOTTOM]
      const at = (place: Place) => `${round(left + place.x * across)} ${round(top + (1 - place.y) * up)}`
      const dots = (places: Places, name: string) =>
        places.length === 0 ? [] : [`<path class="${name}" d="${dotsOf(places, left, top, across, up)}"/>`]
      const line = plot.line.length < 2 ? [] : [`<path class="line" d="M${plot.line.map(at).join('L')}"/>`]
      const note = plot.note === undefined ? [] : [text(x + width - RIGHT, y + 14, plot.note, 'end small muted')]
      return [
        text(left, y + 14, clip(plot.title, 60), 'title'),
        ...note,
        frame(plot, left, top, across, up),
        ...dots(plot.pruned, 'pruned'),
        ...dots(plot.done, 'done'),
        ...line,
        ...dots(plot.best, 'best'),
      ].join('\n')
    },
  }
}

/** Of many, one for each pixel. */
function dotsOf(places: Places, left: number, top: number, across: number, up: number): string {
  const isMany = places.length > 2 * MANY_DOTS
  const factor = isMany ? 1 : 10
  const columns = Math.ceil(across) + 1
  const isTaken = new Uint8Array(isMany ? columns * (Math.ceil(up) + 1) : 0)
  let path = ''
  for (let index = 0; index < places.length; index += 2) {
    const x = Math.round((places[index] ?? 0) * across * factor)
    const y = Math.round((1 - (places[index + 1] ?? 0)) * up * factor)
    if (isMany) {
      const pixel = y * columns + x
      if (isTaken[pixel] === 1) continue
      isTaken[pixel] = 1
    }
    path += `M${(left * factor + x) / factor} ${(top * factor + y) / factor}h0`
  }
  return path
}

/** Rules at the ticks, their labels, and the names of the axes. */
function frame(plot: Plot, left: number, top: number, across: number, up: number): string {
  const bottom = top + up
  const rules = [
    ...plot.y.ticks.map(({ at }) => `M${left} ${round(bottom - at * up)}h${across}`),
    ...plot.x.ticks.map(({ at }) => `M${round(left + at * across)} ${bottom}v4`),
    `M${left} ${top}v${up}h${across}`,
  ]
  return [
    `<path class="frame" d="${rules.join('')}"/>`,
    ...plot.y.ticks.map(({ at, text: label }) =>
      text(left - 6, bottom - at * up + 4, clip(label, MOST_LABEL - 5), 'end small muted'),
    ),
    ...labelsBelow(plot.x, across).map(({ at, text: label }) =>
      text(left + at * across, bottom + 16, label, 'middle small muted'),
    ),
    text(left + across / 2, bottom + 33, clip(plot.x.label, 60), 'middle small'),
    `<text class="middle small" transform="translate(${round(left - LEFT + 12)} ${round(top + up / 2)}) rotate(-90)">${escaped(clip(plot.y.label, 34))}</text>`,
  ].join('\n')
}

const CHARACTER = 6.5

/** As many labels as find room beside each other. */
function labelsBelow(axis: Axis, across: number): Axis['ticks'] {
  const labels = axis.ticks.map(({ at, text: label }) => ({ at, text: clip(label, MOST_LABEL) }))
  const widest = Math.max(1, ...labels.map(({ text: label }) => label.length)) * CHARACTER + 8
  const every = Math.max(1, Math.ceil((labels.length * widest) / across))
  return labels.filter((_, index) => index % every === 0)
}

function parallelPanel({ axes, lines, trials }: ParallelPlot): Panel {
  const height = PANEL_HEIGHT + 40
  const width = WIDTH - 2 * EDGE
  return {
    height,
    draw(x, y) {
      const [left, top] = [x + LEFT / 2, y + TOP + 22]
      const up = height - TOP - 22 - 24
      const step = (width - LEFT) / (axes.length - 1)
      // What a trial does not have lies below the axis.
      const at = (place: number | undefined, index: number) =>
        `${round(left + index * step)} ${round(place === undefined ? top + up + 14 : top + (1 - place) * up)}`
      const below = lines.some((line) => line.includes(undefined)) ? '; below an axis: not part of the trial' : ''
      const classes = Array.from({ length: CLASSES }, (_, index) => {
        const [from, to] = [index / CLASSES, (index + 1) / CLASSES].map((share) =>
          Math.round(share * share * lines.length),
        )
        const paths = lines.slice(from, to).map((line) => `M${line.map(at).join('L')}`)
        return paths.length === 0 ? '' : `<path class="p${index}" d="${paths.join('')}"/>`
      })
      const shown = lines.length < trials ? `${lines.length} of ${counted(trials, 'trial')}; ` : ''
      return [
        text(x, y + 14, 'all parameters', 'title'),
        text(x + width, y + 14, `${shown}best in red${below}`, 'end small muted'),
        ...classes.toReversed().filter((part) => part !== ''),
        `<path class="frame" d="${axes.map((_, index) => `M${round(left + index * step)} ${top}v${up}`).join('')}"/>`,
        ...axes.map(({ label }, index) =>
          text(
            left + index * step,
            top - 10,
            clip(label, Math.max(2, Math.floor(step / CHARACTER) - 1)),
            'middle small',
          ),
        ),
        ...axes.flatMap(({ ticks }, index) =>
          (step < LEAST_STEP ? [] : sparse(ticks)).map(({ at: place, text: label }) =>
            text(
              left + index * step + (index === axes.length - 1 ? -5 : 5),
              top + (1 - place) * up + 4,
              clip(label, Math.min(MOST_LABEL, Math.max(3, Math.floor(step / CHARACTER) - 1))),
              `small muted halo${index === axes.length - 1 ? ' end' : ''}`,
            ),
          ),
        ),
      ].join('\n')
    },
  }
}

const MOST_AXIS_LABELS = 12
/** Axes closer together have no room for labels of their ticks. */
const LEAST_STEP = 50

const sparse = (ticks: Axis['ticks']): Axis['ticks'] => {
  const every = Math.ceil(ticks.length / MOST_AXIS_LABELS)
  return ticks.filter((_, index) => index % every === 0)
}

const NAME_WIDTH = 180
const MOST_NAME = 26

function importancePanel(importance: readonly Importance[], metric: string): Panel {
  const width = WIDTH - 2 * EDGE - NAME_WIDTH - 180
  return {
    height: TOP + importance.length * ROW_HEIGHT,
    draw: (x, y) =>
      [
        text(x, y + 14, `importance for ${clip(metric, MOST_NAME)} (variance of ranks, each parameter alone)`, 'title'),
        ...importance.flatMap(({ name, share, trials }, index) => {
          const top = y + TOP + index * ROW_HEIGHT
          return [
            text(x + NAME_WIDTH - 8, top + 14, clip(name, MOST_NAME), 'end'),
            `<rect class="bar" x="${x + NAME_WIDTH}" y="${top + 4}" width="${round(Math.max(1, share * width))}" height="13"/>`,
            text(
              x + NAME_WIDTH + Math.max(1, share * width) + 8,
              top + 14,
              `${Math.round(share * 100)} % of ${counted(trials, 'trial')}`,
              'small muted',
            ),
          ]
        }),
      ].join('\n'),
  }
}
