/** `muster study list`, `show`, `results`, `stop` and `more` on a queue whose hosts nobody asks. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import type { TrialEnd } from '../../../../src/scheduler/study/study.ts'
import { runMuster } from '../../../support/run-muster.ts'

const NOW = 100_000
const NO_SCHEDULER = 'no scheduler running. Run: muster job work\n'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-study-verbs-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { m1: { transport: local, resources: { cpu: 4 } } }\n',
  )
})
afterEach(() => rmSync(directory, { recursive: true }))

const muster = (...args: readonly string[]) => runMuster(args, { directory, isTerminal: true, now: () => NOW })
const study = (...args: readonly string[]) => muster('study', ...args)
const openStore = () => new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))

const done = (acc: string, rest: Partial<TrialEnd> = {}): TrialEnd => ({
  ...{ kind: 'done', values: { acc }, host: 'm1', devices: [1], startedMs: 10_000, endedMs: 12_500 },
  ...rest,
})

const POINTS: readonly (readonly [lr: string, opt: string, end: TrialEnd | undefined])[] = [
  ['0.01', 'adam', done('0.8')],
  ['0.1', 'sgd', done('0.93', { endedMs: 40_000 })],
  ['0.2', 'adam', { kind: 'failed', values: {}, reason: 'exit 1', endedMs: 50_000 }],
  ['0.001', 'sgd', { kind: 'pruned', values: { acc: '0.1' }, reason: 'at step 3 \x1b[2J', endedMs: 60_000 }],
  ['0.002', 'adam', undefined],
]

/** Five trials of twelve: two are done, one waits. */
async function planted(): Promise<void> {
  const space = ['--param', 'lr=0.001,0.002,0.01,0.1,0.2,0.5', '--param', 'opt=adam,sgd', '--method', 'grid']
  await study('create', 'wf', ...space, '--metric', 'max:acc', '--', 'train $lr $opt')
  using store = openStore()
  const found = store.studies.find('wf')
  if (found === undefined) throw new Error('no study')
  for (const [lr, opt, end] of POINTS) {
    const trial = store.addTrial(found, { point: { lr, opt }, repetition: 0 }, 5000)
    if (end === undefined) continue
    if (trial.job !== undefined)
      store.applyAll([{ id: trial.job, event: { kind: 'stop', reason: 'cancelled' } }], end.endedMs)
    store.studies.settle(found.id, trial, end)
  }
}

describe('on an empty queue', () => {
  test('nothing is listed, and every other verb says what to do', async () => {
    expect((await study('list')).output).toBe('no studies. Create one with muster study create, or muster sweep.\n')
    expect(await study('show', 'wf')).toEqual({
      ...{ exitCode: 2, output: '' },
      messages: 'muster: there is no study wf\nCreate one with muster study create.\n',
    })
  })
})

describe('a study', () => {
  beforeEach(planted)

  test('is listed with its progress and best value', async () => {
    expect((await study('list')).output).toBe(`STUDY  STATE    METHOD  TRIALS  BEST      FAILED  PRUNED  OPEN  AGE
wf     running  grid    4/12    acc=0.93  1       1       1     1 s

${NO_SCHEDULER}`)
    expect(JSON.parse((await study('list', '--json')).output)).toMatchObject({
      ...{ type: 'study', study: 'wf', state: 'running', most: 12, trials: { done: 2, failed: 1, pruned: 1, open: 1 } },
      best: { trial: 1, parameters: { lr: '0.1', opt: 'sgd' }, metrics: { acc: 0.93 } },
    })
  })

  test('has pruned trials, which the list of jobs counts among the cancelled ones', async () => {
    expect((await muster('job', 'list')).output).toContain('\n4 cancelled (1 pruned), 1 queued; ')
  })

  test('is shown as a person reads it, with a line to run the best point by hand', async () => {
    const { output } = await study('show', 'wf')
    const lines = output.split('\n')
    expect(lines[0]).toBe('study:     wf, running')
    for (const line of [
      'searches:  lr   0.001, 0.002, 0.01, 0.1, 0.2, 0.5',
      '           opt  adam, sgd',
      'trials:    4 of 12 ended: 2 done, 1 pruned, 1 failed, 1 waiting',
      'best:      acc=0.93: trial 1 on m1',
      "             lr=0.1 opt=sgd sh -c 'train $lr $opt'",
      'pruned:    trial 3: at step 3 \\x1b[2J (lr=0.001 opt=sgd)',
      'failed:    trial 2: exit 1 (lr=0.2 opt=adam)',
    ])
      expect(lines).toContain(line)
    expect(output).toContain('waiting:   1 trial: no scheduler running. Run: muster job work')
    expect(JSON.parse((await study('show', 'wf', '--json')).output)).toMatchObject({ best: [{ trial: 1 }] })
  })

  test('has results, the best first', async () => {
    expect((await study('results', 'wf')).output).toBe(
      `TRIAL  STATE   lr     opt   acc   SECONDS  HOST  JOB  WHY
1      done    0.1    sgd   0.93  30.0     m1:1  2
0      done    0.01   adam  0.8   2.5      m1:1  1
3      pruned  0.001  sgd   0.1                  4    at step 3 \\x1b[2J
2      failed  0.2    adam  -                    3    exit 1
4      queued  0.002  adam  -                    5
`,
    )
  })

  test.each([
    [
      ['--where', 'lr<=0.01', '--sort', 'lr'],
      [3, 4, 0],
    ],
    [['--where', 'acc>0.5', '--where', 'opt=adam'], [0]],
    [
      ['--where', 'opt!=adam'],
      [1, 3],
    ],
    [['--where', 'lr = 0.10'], [1]],
    [
      ['--where', 'host=m1', '--sort', 'seconds'],
      [0, 1],
    ],
    [
      ['--state', 'failed,pruned'],
      [3, 2],
    ],
    [['--state', 'open'], [4]],
    [
      ['--sort', 'acc'],
      [1, 0, 3, 2, 4],
    ],
    [
      ['--sort', 'trial', '--limit', '2'],
      [0, 1],
    ],
  ])('has results %j', async (options, numbers) => {
    const { output } = await study('results', 'wf', '--json', ...options)
    const lines = output
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as { trial: number })
    expect(lines.map(({ trial }) => trial)).toEqual(numbers)
  })

  test.each([
    [['--where', 'lr'], 'muster: --where lr: write it as "lr<0.01" or opt=adam\n'],
    [['--where', 'opr=adam'], 'muster: --where opr=adam: there is no opr; did you mean opt?\nNames: lr, opt, acc,'],
    [['--where', 'opt<adam'], 'muster: --where opt<adam: < needs a number\n'],
    [['--sort', 'loss'], 'muster: --sort loss: there is no loss'],
    [['--state', 'don'], 'muster: --state don: no such state; did you mean done?\nStates: done, running,'],
  ])('refuses results %j', async (options, words) => {
    const { exitCode, messages } = await study('results', 'wf', ...options)
    expect(exitCode).toBe(2)
    expect(messages).toContain(words)
  })

  test('stops, and continues with the trials that were stopped', async () => {
    expect((await study('stop', 'wf')).output).toBe('wf: stopped, with 1 trial.\n')
    expect((await study('stop', 'wf')).output).toBe('wf: stopped already.\n')
    expect((await study('show', 'wf')).output).toContain('study:     wf, stopped by its user\n')
    const { output, messages } = await study('more', 'wf')
    expect([output, messages]).toEqual([
      expect.stringMatching(/^wf: continues, up to 12 trials(; what was stopped runs first: \d trials?)?\.\n$/),
      `muster: ${NO_SCHEDULER}`,
    ])
    using store = openStore()
    expect(store.studies.find('wf')?.state).toMatchObject({ kind: 'running', failuresFrom: 5 })
    expect(store.get(5)?.state.kind).toBe('queued')
  })

  test('is not mistaken for another one', async () => {
    expect((await study('stop', 'wg')).messages).toBe('muster: there is no study wg; did you mean wf?\nStudies: wf.\n')
  })
})
