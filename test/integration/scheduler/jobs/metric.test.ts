/** Metrics: what is accepted, what a real shell and sed find in output, and what is the best. */
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type Metric, metricJson, parseMetric, rankBy } from '../../../../src/scheduler/jobs/metric.ts'
import { formatMetricProgram, parseMetricLines } from '../../../../src/scheduler/jobs/metric-reader.ts'

function metric(text: string): Metric {
  const parsed = parseMetric(text)
  if (typeof parsed === 'string') throw new Error(parsed)
  return parsed
}

/** As a host would find it in what a bundle wrote; undefined: it has a FIFO in place of its output. */
function found(output: string | Buffer | undefined, ...metrics: readonly string[]): readonly (string | undefined)[] {
  const directory = mkdtempSync(join(tmpdir(), 'muster-metric-'))
  try {
    mkdirSync(join(directory, 'k-1'))
    if (output === undefined) execFileSync('mkfifo', [join(directory, 'k-1', 'out')])
    else writeFileSync(join(directory, 'k-1', 'out'), output)
    const program = formatMetricProgram([{ key: 'k-1', metrics: metrics.map(metric) }])
    const text = execFileSync('sh', ['-s'], { cwd: directory, input: program, encoding: 'utf8', timeout: 5_000 })
    const values = parseMetricLines(text).get('k-1')
    return metrics.map((_, index) => values?.get(index))
  } finally {
    rmSync(directory, { recursive: true })
  }
}

describe('a metric', () => {
  it('has a name, a direction and a pattern', () => {
    expect(metric('loss')).toEqual({ name: 'loss' })
    expect(metric('max:val/acc')).toEqual({ name: 'val/acc', isMost: true })
    expect(metric('loss=a=([0-9.]+)')).toEqual({ name: 'loss', pattern: 'a=([0-9.]+)' })
    for (const wrong of [
      '',
      'a b',
      '=x',
      'loss=none',
      'loss=(',
      'loss=(a\nb)',
      'loss=(a\x02)',
      'loss=(a*)\\1',
      `loss=(${'a'.repeat(300)})`,
    ])
      expect(parseMetric(wrong), wrong).toBeTypeOf('string')
  })

  it('is found in the usual formats; the last one counts', () => {
    expect(found('loss=0.5\nepoch 2 loss=0.123 lr=1e-3\nbye\n', 'loss', 'lr')).toEqual(['0.123', '1e-3'])
    expect(found('{"loss": -1.5e+3, "acc": .5}\n', 'loss', 'max:acc')).toEqual(['-1.5e+3', '.5'])
    expect(found('val_loss: 9\nLoss: 8\n', 'loss')).toEqual([undefined])
    expect(found('10%\rloss: 3\r20%\rloss: 2\r', 'loss')).toEqual(['2'])
    expect(found('loss=nan', 'loss')).toEqual(['nan'])
    expect(found('', 'loss')).toEqual([undefined])
    expect(found('loss=0.5. time: 3.2s, acc=93%, x=2x, n=7,\n', 'loss', 'time', 'acc', 'x', 'n')).toEqual([
      ...['0.5', '3.2', '93', '2', '7'],
    ])
    expect(found("{'loss': 0.25, 'epoch': 1.0}\n", 'loss')).toEqual(['0.25'])
    expect(found('\x1b[1mloss=0.5\x1b[0m acc: \x1b[32m0.9\x1b[0m\n', 'loss', 'acc')).toEqual(['0.5', '0.9'])
    expect(found('a=1,b=2\nc=5epochs\n', 'a', 'b', 'c')).toEqual(['1', '2', '5'])
  })

  it('is not the beginning of what is no number here', () => {
    const output = 'acc=0.5\nacc=0,93\nhex=0x1f\nlong=12_000\nmany=1,000,000\nversion=1.2.3\nodd=1e5_0\n'
    expect(found(output, 'acc', 'hex', 'long', 'many', 'version', 'odd')).toEqual([
      ...['0.5', undefined, undefined, undefined, undefined, undefined],
    ])
  })

  it('is found by any pattern of its own', () => {
    expect(found("it's 0.75 of a/b\n0.25 of a/b\n", 'share=([0-9.]+) of a/b')).toEqual(['0.25'])
    expect(found("don't: 7\n", "n=don't: ([0-9]+)")).toEqual(['7'])
    expect(found('a1 b2\n', 'n=a([0-9])|b([0-9])')).toEqual(['1'])
  })

  it('is never anything but a number', () => {
    expect(found('loss=\x1b[31m\nx=$(touch y)\n', 'x=x=(.*)')).toEqual([undefined])
    expect(found(`x=${'1'.repeat(500)}\n`, 'x')).toEqual([undefined])
    expect(found(Buffer.from([0x78, 0x3d, 0x31, 0xff, 0x00, 0x0a]), 'x')).toEqual(['1'])
    expect(parseMetricLines('metric k 0 1 2\nmetric k x 1\nk exit 0\nmetric k 1 \x1b[2J').get('k')).toEqual(new Map())
  })

  it('does not wait for a FIFO in place of the output', () => {
    expect(found(undefined, 'loss')).toEqual([undefined])
  })

  it('ranks best first, with jobs that have no number last', () => {
    const rows = ['3', 'nan', '-inf', '1e1', undefined, '3'].map((loss, id) => ({
      id,
      values: loss === undefined ? {} : { loss },
    }))
    const order = (own: Metric) =>
      rankBy(rows, own, ({ values }) => values as Record<string, string>).map(({ id }) => id)
    expect(order({ name: 'loss' })).toEqual([2, 0, 5, 3, 1, 4])
    expect(order({ name: 'loss', isMost: true })).toEqual([3, 0, 5, 2, 1, 4])
    expect(['1e1', 'inf', '0.10'].map(metricJson)).toEqual([10, 'inf', 0.1])
  })
})
