/** `muster study plot` and the words of `show`, on a queue without hosts. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-study-plot-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts: { here: { transport: local } }\n')
  mkdirSync(join(directory, '.local', 'state', 'muster', 'jobs'), { recursive: true, mode: 0o700 })
  using store = new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
  const spec = {
    ...{ parameters: ['lr=log:1e-4:1', 'opt=adam,sgd'], method: 'random', seed: 1, repeat: 1, failures: 5 },
    metrics: [{ name: 'loss' }, { name: 'acc', isMost: true }],
  }
  const id = store.studies.create({ name: 'wf', user: 'ann', priority: 0, spec }, 0)
  store.studies.create({ name: 'blind', user: 'ann', priority: 0, spec: { ...spec, metrics: [] } }, 0)
  const study = store.studies.get(id)
  if (study === undefined) throw new Error('no study')
  for (let number = 0; number < 12; number++) {
    const point = { lr: String(10 ** -(number % 4)), opt: number % 2 === 0 ? 'adam' : 'sgd' }
    const trial = store.addTrial(study, { point, repetition: Math.floor(number / 4) }, 0)
    const values = { loss: String(1 + (number % 4) - number / 100), acc: number === 11 ? 'inf' : '0.5' }
    store.studies.settle(id, trial, { kind: 'done', values, endedMs: 1000 * (number + 1) })
  }
})
afterEach(() => rmSync(directory, { recursive: true }))

const study = (...args: readonly string[]) => runMuster(['study', ...args], { directory, now: () => 1000 })

test('plots a study in the terminal', async () => {
  const { exitCode, output } = await study('plot', 'wf')
  expect(exitCode).toBe(0)
  expect(output).toMatch(/^best loss 0\.92 in trial 8: lr=1 opt=adam\n/)
  for (const text of ['best loss so far', 'loss and acc', 'loss over lr', 'loss over opt', '◆', 'importance for loss'])
    expect(output).toContain(text)
})

test('writes an SVG file, or prints it', async () => {
  const file = join(directory, 'wf.svg')
  expect(await study('plot', 'wf', '--svg', 'wf.svg', '--metric', 'acc')).toMatchObject({ exitCode: 0, output: '' })
  expect(readFileSync(file, 'utf8')).toContain('best acc so far')
  expect((await study('plot', 'wf', '--svg', '-')).output).toMatch(/^<svg .*<\/svg>\n$/s)
  const failed = await study('plot', 'wf', '--svg', 'missing/wf.svg')
  expect([failed.exitCode, failed.messages]).toEqual([
    2,
    'muster: cannot write missing/wf.svg: there is no directory missing\n',
  ])
})

test('prints the best values and importance as JSON lines', async () => {
  const lines = (await study('plot', 'wf', '--json')).output
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line))
  expect(lines[1]).toEqual({
    version: 1,
    ...{ type: 'best', study: 'wf', trial: 1, metric: 'loss', value: 1.99, best: 1, ended: '1970-01-01T00:00:02.000Z' },
  })
  expect(lines.at(-2)).toMatchObject({ type: 'importance', study: 'wf', metric: 'loss', parameter: 'lr', trials: 12 })
  const acc = (await study('plot', 'wf', '--json', '--metric', 'acc')).output.split('\n')
  expect(JSON.parse(acc[11] ?? '')).toMatchObject({ value: 'Infinity', best: 'Infinity' })
})

test('says which metrics there are', async () => {
  const unknown = await study('plot', 'wf', '--metric', 'accuracy')
  expect(unknown.exitCode).toBe(2)
  expect(unknown.messages).toContain('study wf has no metric accuracy')
  expect(unknown.messages).toContain('Metrics: loss, acc.')
  expect((await study('plot', 'blind')).messages).toContain('study blind has no metric to plot')
})

test('show explains what the method does', async () => {
  const { output } = await study('show', 'wf')
  expect(output).toContain('Random: each point is drawn at random, regardless of earlier results; 12 trials so far.')
})
