import { describe, expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import { metricAxis, numberAxis, parameterAxis, timeAxis } from '../../../../src/scheduler/study/axis.ts'
import { formatValue } from '../../../../src/scheduler/study/format-value.ts'
import { studyPlots } from '../../../../src/scheduler/study/plots.ts'
import { parseParameter } from '../../../../src/scheduler/study/space.ts'
import type { StudySpec } from '../../../../src/scheduler/study/study.ts'
import { studySvg } from '../../../../src/scheduler/study/svg.ts'
import { studyText, textPlot } from '../../../../src/scheduler/study/text-plot.ts'
import { trialOf } from './some-trials.ts'

const texts = (axis: { readonly ticks: readonly { readonly text: string }[] }) => axis.ticks.map(({ text }) => text)

describe('an axis', () => {
  it('has round ticks', () => {
    expect(texts(numberAxis('x', 0, 1, false))).toEqual(['0.0', '0.2', '0.4', '0.6', '0.8', '1.0'])
    expect(texts(numberAxis('x', -7, 113, false))).toEqual(['0', '50', '100'])
    expect(texts(numberAxis('x', 0.1234, 0.1239, false))).toEqual([
      '0.1234',
      '0.1235',
      '0.1236',
      '0.1237',
      '0.1238',
      '0.1239',
    ])
    expect(texts(numberAxis('x', 1e-5, 1e-1, true))).toEqual(['1e-5', '0.0001', '0.001', '0.01', '0.1'])
    expect(texts(numberAxis('x', 1, 9, true))).toEqual(['1', '2', '5'])
    expect(texts(numberAxis('x', 1e-12, 1e12, true))).toEqual(['1e-12', '1e-7', '0.01', '1000', '1e8'])
    expect(texts(numberAxis('x', 4, 4, false))).toContain('4.0')
  })

  it('takes any numbers', () => {
    for (const axis of [numberAxis('x', -1e308, 1e308, false), numberAxis('x', 1e-300, 1e300, true)])
      for (const value of [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0, 1e308, -1])
        expect(axis.place(value)).toSatisfy((place: number) => place >= 0 && place <= 1)
  })

  it('of a parameter shows its whole domain', () => {
    const axis = (text: string) => parameterAxis('p', parseParameter(text))
    expect(texts(axis('n=int:1:4'))).toEqual(['1', '2', '3', '4'])
    expect(texts(axis('lr=float:0.1:0.3:0.1'))).toEqual(['0.1', '0.2', '0.3'])
    expect(texts(axis('n=int:10:200:10'))).toEqual(['50', '100', '150', '200'])
    expect(texts(axis('opt=adam,sgd'))).toEqual(['adam', 'sgd'])
    expect(axis('opt=adam,sgd').place(1)).toBe(0.75)
    expect(axis('lr=log:1e-4:1').place(1e-2)).toBeCloseTo(0.5)
  })

  it('of a metric ends before values that are far worse, never before the best', () => {
    const values = Array.from({ length: 100 }, (_, index) => index / 100)
    expect(metricAxis({ name: 'm' }, [...values, 1e9]).isOutside(1e9)).toBe(true)
    expect(metricAxis({ name: 'm' }, [...values, -1e9]).isOutside(-1e9)).toBe(false)
    expect(metricAxis({ name: 'm', isMost: true }, [...values, -1e9]).isOutside(-1e9)).toBe(true)
    expect(metricAxis({ name: 'm' }, [...values, Number.POSITIVE_INFINITY]).isOutside(Number.POSITIVE_INFINITY)).toBe(
      true,
    )
    const wide = Array.from({ length: 100 }, (_, index) => 10 ** (index / 10))
    expect(metricAxis({ name: 'm' }, wide).isLog).toBe(true)
    expect(metricAxis({ name: 'm' }, []).isOutside(0.5)).toBe(false)
  })

  it('of time has a unit', () => {
    expect(timeAxis('time', 90).label).toBe('time (s)')
    expect(timeAxis('time', 5400).label).toBe('time (min)')
    expect(timeAxis('time', 86_400).label).toBe('time (h)')
    expect(timeAxis('time', 864_000).label).toBe('time (days)')
    expect(timeAxis('time', 5400).place(2700)).toBeCloseTo(0.5)
  })

  it.each([
    [0.91, '0.91'],
    [1234.5, '1235'],
    [123_456, '123456'],
    [1_234_567, '1.235e6'],
    [1e-5, '1e-5'],
    [0.000_15, '0.00015'],
    [1 / 3, '0.3333'],
    [0, '0'],
    [Number.NaN, 'not a number'],
    [Number.NEGATIVE_INFINITY, '-∞'],
  ])('%d reads as %s', (value, text) => {
    expect(formatValue(value)).toBe(text)
  })
})

const spec: StudySpec = {
  parameters: ['lr=log:1e-4:1', 'opt=adam,sgd', 'if opt=sgd momentum=float:0:0.9:0.3'],
  method: 'random',
  seed: 1,
  metrics: [{ name: 'loss' }, { name: 'acc', isMost: true }],
  repeat: 1,
  failures: 5,
}
const study = { name: 'wf', spec, state: { kind: 'running', repeated: 0, replaced: 0 } } as const
const trials = [
  trialOf(0, { loss: '0.5', acc: '0.5' }, { point: { lr: '0.01', opt: 'adam' }, endedMs: 1000 }),
  trialOf(
    1,
    { loss: '0.9', acc: '0.1' },
    { point: { lr: '1', opt: 'sgd', momentum: '0.9' }, endedMs: 2000, kind: 'pruned' },
  ),
  trialOf(2, { loss: '0.3', acc: '0.4' }, { point: { lr: '0.1', opt: 'sgd', momentum: '0' }, endedMs: 3000 }),
  trialOf(3, { loss: '0.4', acc: '0.2' }, { point: { lr: '0.1', opt: 'adam' }, endedMs: 5000 }),
  trialOf(4, {}, { kind: 'failed' }),
  trialOf(5, {}, { kind: 'open' }),
]

describe('the plots of a study', () => {
  it('show the best so far over time', () => {
    const history = studyPlots(study, trials)?.history
    expect(history?.line).toHaveLength(4)
    expect(history?.done).toHaveLength(6)
    expect(history?.pruned).toHaveLength(2)
    const last = history?.line.at(-1)
    expect(last?.x).toBeCloseTo(1 - 0.03 / 1.06)
    expect(last?.y).toBe(history?.best[1])
  })

  it('show each parameter only for trials that have it', () => {
    const plots = studyPlots(study, trials)
    expect(plots?.parameters.map(({ title, done, pruned }) => [title, done.length / 2, pruned.length / 2])).toEqual([
      ['loss over lr', 3, 1],
      ['loss over opt', 3, 1],
      ['loss over momentum', 1, 1],
    ])
    expect(plots?.parallel.lines).toHaveLength(3)
    expect(plots?.parallel.lines[0]?.[2]).toBeDefined()
    expect(plots?.parallel.lines[1]?.[2]).toBeUndefined()
    expect(plots?.importance).toBeUndefined()
  })

  it('show the front of two metrics', () => {
    expect(studyPlots(study, trials)?.front?.best).toHaveLength(4)
    expect(studyPlots({ spec: { ...spec, metrics: spec.metrics.slice(0, 1) } }, trials)?.front).toBeUndefined()
  })

  it('are of another metric if asked', () => {
    expect(studyPlots(study, trials, spec.metrics[1])?.history.title).toBe('best acc so far')
  })

  it('are none without a metric or a number', () => {
    expect(studyPlots({ spec: { ...spec, metrics: [] } }, trials)).toBeUndefined()
    expect(studyPlots(study, trials.slice(4))).toBeUndefined()
  })
})

describe('the SVG document', () => {
  it('is complete, follows light and dark, and loads nothing', () => {
    const svg = studySvg(study, trials)
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 960 \d+"/)
    expect(svg.trimEnd()).toMatch(/<\/svg>$/)
    expect(svg).toContain('prefers-color-scheme:dark')
    expect(svg.replace('http://www.w3.org/2000/svg', '')).not.toMatch(/<script|https?:|href|url\(|on\w+=/)
    expect(svg).not.toMatch(/NaN|undefined|Infinity/)
    for (const text of [
      'study wf',
      'best loss so far',
      'loss over momentum',
      'all parameters',
      'time since the first trial',
    ])
      expect(svg).toContain(text)
  })

  it('lets no name, value or reason act', () => {
    const evil = '"><script>alert(1)</script>&\x1b\ufffe'
    const svg = studySvg(
      {
        ...study,
        name: evil,
        spec: { ...spec, parameters: [`k=${evil},b`] },
        state: { ...study.state, trouble: evil },
      },
      [trialOf(0, { loss: '1' }, { point: { k: evil } }), trialOf(1, { loss: '2' }, { point: { k: 'b' } })],
    )
    expect(svg).not.toContain('<script')
    expect(svg).not.toMatch(/[\x00-\x08\x0b-\x1f\ufffe]/)
    expect(svg.match(/<svg/g)).toHaveLength(1)
    expect(svg.replace(/<[^<>]*>/g, '')).not.toMatch(/[<>]/)
    expect(svg.replace(/&#\d+;/g, '')).not.toContain('&')
  })

  it('says so when there is nothing to plot', () => {
    expect(studySvg(study, [])).toContain('no trial has a loss yet')
    expect(studySvg({ ...study, spec: { ...spec, metrics: [] } }, [])).toContain('study wf')
  })

  it('stays readable with very many trials', () => {
    const many = Array.from({ length: 5000 }, (_, number) =>
      trialOf(number, { loss: String((number * 7919) % 1000) }, { point: { lr: '0.1', opt: 'adam' } }),
    )
    const svg = studySvg(study, many)
    expect(svg).toContain('400 of 5000 trials')
    // All of them lie at one value of lr: one dot for each pixel of the axis.
    expect(svg.length).toBeLessThan(300_000)
  })
})

describe('plots as text', () => {
  it('fit the width and mark the best trial', () => {
    for (const columns of [40, 80, 100]) {
      const lines = studyText(study, trials, { columns })
      expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(columns)
      expect(lines[0]).toBe(
        'best loss 0.3 in trial 2: lr=0.1 opt=sgd momentum=0'.slice(0, columns - 1) + (columns < 51 ? '…' : ''),
      )
      expect(lines.join('\n')).toContain('◆')
      expect(lines.join('\n')).toContain('time since the first trial (s)')
    }
  })

  it('draw a line from the left to the right, and points where they are', () => {
    const x = numberAxis('n', 0, 10, false)
    const y = numberAxis('m', 0, 10, false)
    const plot = {
      title: 'm over n',
      x,
      y,
      done: [0, 0, 1, 1],
      pruned: [],
      best: [],
      line: [],
      note: '3 off the chart',
    }
    expect(textPlot(plot, { columns: 24, rows: 8 })).toEqual([
      'm over n  3 off the cha…',
      '  │                    ⠈',
      '8 ┤',
      '4 ┤',
      '  │',
      '0 ┤⡀',
      '  └─────────────────────',
      '    0  2   4   6   8  10',
    ])
    const line = [
      { x: 0, y: 1 },
      { x: 0.5, y: 1 },
      { x: 0.5, y: 0 },
      { x: 1, y: 0 },
    ]
    expect(textPlot({ ...plot, done: [], line }, { columns: 24, rows: 8 }).slice(1, 6)).toEqual([
      '  │⠉⠉⠉⠉⠉⠉⠉⠉⠉⠉⢹',
      '8 ┤          ⢸',
      '4 ┤          ⢸',
      '  │          ⢸',
      '0 ┤          ⢸⣀⣀⣀⣀⣀⣀⣀⣀⣀⣀',
    ])
  })

  it('have room for wide characters and long names', () => {
    const wide: StudySpec = { ...spec, parameters: ['k=漢字漢字漢字漢字漢字,b,c', `${'n'.repeat(60)}=int:1:3`] }
    const lines = studyText(
      { spec: wide },
      Array.from({ length: 12 }, (_, number) =>
        trialOf(
          number,
          { loss: String((number % 3) * 20 + number) },
          { point: { k: ['漢字漢字漢字漢字漢字', 'b', 'c'][number % 3] ?? '', ['n'.repeat(60)]: '2' } },
        ),
      ),
      { columns: 80 },
    )
    expect(Math.max(...lines.map(textWidth))).toBeLessThanOrEqual(80)
    expect(lines.join('\n')).toContain('importance for loss')
  })

  it('say so when there is nothing to plot', () => {
    expect(studyText(study, [], { columns: 80 })).toEqual(['no trial has a loss yet'])
    expect(studyText({ spec: { ...spec, metrics: [] } }, [], { columns: 80 })).toEqual(['no metric to plot'])
  })
})
