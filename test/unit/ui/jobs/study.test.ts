/** A study in the Jobs tab, of a queue that a test makes up. */
import { setImmediate } from 'node:timers/promises'
import { describe, expect, it } from 'vitest'
import { textWidth } from '../../../../src/base/text-width.ts'
import type { Job } from '../../../../src/scheduler/jobs/job.ts'
import type { Metric } from '../../../../src/scheduler/jobs/metric.ts'
import { countTrials } from '../../../../src/scheduler/study/front.ts'
import type { Study, StudySpec, StudyState, Trial, TrialEnd } from '../../../../src/scheduler/study/study.ts'
import { styleOf, themes } from '../../../../src/ui/compositor/scene.ts'
import { studyProgress } from '../../../../src/ui/jobs/study-documents.ts'
import type { StudyReading } from '../../../../src/ui/jobs/study-view.ts'
import { areaOf } from '../../../../src/ui/work-views/panel.ts'
import { jobOf, runningOn } from './fake-queue.ts'
import { openQueueTab } from './open-tab.ts'

const LOSS: Metric = { name: 'loss' }
const ACC: Metric = { name: 'acc', isMost: true }

const studyOf = (spec: Partial<StudySpec> = {}, state: Partial<StudyState> = {}): Study => ({
  id: 1,
  name: 'wf',
  user: 'ann',
  priority: 0,
  createdMs: 1,
  jobSpec: 1,
  spec: {
    parameters: ['size=int:10:200:10', 'opt=adam,sgd,优化器甲', 'if opt=sgd momentum=float:0:0.9'],
    method: 'random',
    seed: 1,
    metrics: [LOSS],
    repeat: 1,
    failures: 10,
    ...spec,
  },
  state: { kind: 'running', trials: 50, repeated: 0, replaced: 0, ...state },
})

const OPTIMIZERS = ['adam', 'sgd', '优化器甲']

const trialOf = (number: number, end: Partial<TrialEnd> | undefined, rest: Partial<Trial> = {}): Trial => ({
  number,
  point: {
    size: String(10 + (number % 20) * 10),
    opt: OPTIMIZERS[number % 3] ?? '',
    ...(number % 3 === 1 ? { momentum: '0.5' } : {}),
  },
  repetition: 0,
  job: number + 1,
  end: end && { kind: 'done', values: {}, host: 'n1', startedMs: 0, endedMs: 1000 * (number + 1), ...end },
  ...rest,
})

/** The best one is trial 3; trial 4 failed, 5 was pruned, and 6 runs on n2. */
const TRIALS: readonly Trial[] = [
  ...['0.9', '0.5', '0.7', '0.125'].map((loss, number) => trialOf(number, { values: { loss } })),
  trialOf(4, { kind: 'failed', reason: 'exit 3' }),
  trialOf(5, {
    kind: 'pruned',
    values: { loss: '0.95' },
    reason: 'at step 12 its loss 0.95 is worse than the median 0.5',
  }),
  trialOf(6, undefined),
]

const JOBS: readonly Job[] = TRIALS.map(({ number, end }) =>
  jobOf(
    number + 1,
    end === undefined
      ? runningOn('n2')
      : { kind: 'done', places: [{ host: 'n1', devices: [] }], bundles: [], endedMs: 0 },
    { name: 'wf', metrics: [LOSS] },
  ),
)

const readingOf = (study: Study, trials: readonly Trial[], jobs: readonly Job[] = []): StudyReading => ({
  study,
  trials,
  counts: countTrials(trials),
  open: trials.flatMap((trial) =>
    trial.end === undefined
      ? [{ trial, job: jobs.find(({ id }) => id === trial.job), isRead: false, values: { loss: '0.8' } }]
      : [],
  ),
})

const WF = readingOf(studyOf(), TRIALS, JOBS)

it('is found in the list by what its row shows, by its user and by its hosts', async () => {
  const { press, text, titles } = await openQueueTab('5', 160, 40, JOBS, { 1: JOBS.length }, [WF])
  for (const word of ['study', 'best', '0.125', '6/50', 'random', 'user:ann', 'state:running']) {
    await press(`/${word}\r`)
    expect([word, titles()[0]]).toEqual([word, ` jobs  /${word}  1 of 1 `])
    expect(text()).toMatch(/^▸study .* 6\/50 .*best loss 0\.125 .*wf · random/m)
    await press('\x1b')
  }
})

async function openStudy(columns = 120, rows = 40, reading = WF, jobs = JOBS) {
  const tab = await openQueueTab('5', columns, rows, jobs, { 1: jobs.length }, [reading])
  await tab.press('\r')
  return tab
}

describe('a study in the list of jobs', () => {
  it.each([
    [80, 24],
    [240, 67],
  ])('is one row with its progress, its best value, its name and its method, on %i×%i', async (columns, rows) => {
    const { text, titles, hints } = await openQueueTab('5', columns, rows, JOBS, { 1: JOBS.length }, [WF])
    expect(text()).toMatch(/^▸study +▒·{7} 6\/50 1 failed +best loss 0\.125 +wf · random/m)
    expect(titles()[1]).toBe(' study wf ')
    expect(text()).toMatch(/best: loss=0\.125 in trial 3: size=40 opt=adam/)
    expect(text()).toContain('It looks for the smallest loss.')
    expect(hints()).toMatch(/Enter study.*c stop.*m more/)
    expect(hints()).not.toMatch(/cancel|results/)
  })

  it('says how many trials failed, also when it is done, and is red then', async () => {
    const shown = async (kinds: readonly ('done' | 'failed')[], state: StudyState['kind']) => {
      const ended = kinds.map((kind, number) => trialOf(number, { kind }))
      const reading = readingOf(studyOf({}, { kind: state, trials: kinds.length }), ended)
      const { text } = await openQueueTab('5', 120, 40, [], {}, [reading])
      return { text: text(), bar: studyProgress(reading, 24, themes.dark)[0]?.style }
    }
    const bad = await shown(['failed', 'failed', 'failed'], 'done')
    expect(bad.text).toMatch(/^▸study █{8} 3\/3 3 failed /m)
    expect(bad.text).toContain('It is done; 3 failed.')
    expect(bad.bar).toEqual(styleOf(themes.dark.danger))
    const good = await shown(['done', 'done'], 'done')
    expect(good.text).toMatch(/^▸study █{8} 2\/2 done /m)
    expect(good.bar).toEqual(styleOf(themes.dark.ok))
    expect((await shown(['done', 'failed'], 'stopped')).text).toMatch(/^▸study █{8} 2\/2 stopped /m)
  })

  it('retries the jobs of failed trials, but not of those that were stopped early', async () => {
    const stopped = (number: number) => jobOf(number + 1, { kind: 'cancelled', endedMs: 0 })
    const jobs = JOBS.map((job, number) => (number === 4 || number === 5 ? stopped(number) : job))
    const { press, queue, hints } = await openQueueTab('5', 100, 24, jobs, { 1: jobs.length }, [WF])
    expect(hints()).toContain('t retry')
    await press('t')
    await press('y')
    expect(queue.changes).toEqual([['retry', [5]]])
  })

  it('does not count the jobs of pruned trials as cancelled', async () => {
    const stopped = (id: number) => jobOf(id, { kind: 'cancelled', endedMs: 0 })
    const jobs = [...JOBS.map((job, number) => (number === 5 ? stopped(6) : job)), stopped(8), stopped(9)]
    const { text } = await openQueueTab('5', 120, 40, jobs, { 1: JOBS.length }, [WF])
    expect(text()).toMatch(/^ 1 running, 5 done, 2 cancelled, 1 pruned /m)
  })

  it('is found by the word study', async () => {
    const { press, text } = await openQueueTab('5', 80, 24, JOBS, { 1: JOBS.length }, [WF])
    await press('/study\r')
    expect(text()).toContain('wf · random')
    await press('\x1b')
    await press('/nowhere\r')
    expect(text()).toContain('no job matches “nowhere”')
  })

  it('has a row also without jobs: not begun yet, or run elsewhere', async () => {
    const own = { repeat: 1, source: { kind: 'optuna' as const, url: 'sqlite:///a.db' } }
    const state = { kind: 'running' as const, repeated: 0, replaced: 0 }
    const elsewhere: Study = { ...studyOf(own), state, id: 2, name: 'far', jobSpec: undefined, createdMs: 2 }
    const readings = [readingOf(studyOf(), []), readingOf(elsewhere, TRIALS)]
    const { text, press, hints, queue } = await openQueueTab('5', 80, 24, [jobOf(9, { kind: 'queued' })], {}, readings)
    expect(text()).toMatch(/^▸study +█+▒·* 6 1 failed +best loss 0\.125 +far · random/m)
    expect(text()).toMatch(/^ study +·{8} 0\/50 +- +wf · random/m)
    expect(hints()).toContain('c stop')
    expect(hints()).not.toMatch(/C stop now|m more/)
    await press('c')
    await press('y')
    await press('m')
    expect(queue.studyChanges).toEqual([[2, { kind: 'stop', now: false }]])
    await press('f')
    await press('f')
    expect(text()).toMatch(/far · random[\s\S]*wf · random/)
    expect(text()).not.toContain('train-9')
    await press('f')
    expect(text()).not.toContain('wf · random')
  })
})

describe('the page of a study', () => {
  it.each([
    [80, 24, 1],
    [120, 40, 2],
    [240, 67, 8],
  ])('has its trials, the best first, beside as many views as fit, on %i×%i', async (columns, rows, views) => {
    const tab = await openStudy(columns, rows)
    expect(tab.titles()[0]).toBe(' study wf ')
    expect(tab.titles().length - 1).toBeLessThanOrEqual(views)
    expect(tab.titles()[1]).toBe(' what it does ')
    expect(tab.text()).toMatch(/^▸3 ★ +done +0\.125 +40 +adam +- +n1/m)
    expect(tab.text()).toMatch(/^ 0 +done +0\.9 .*\n 5 +pruned +0\.95 .*at step 12.*\n 4 +failed .*exit 3/m)
    const { state, page } = tab.console
    for (const { rect, notice } of page?.panes(areaOf(state), themes.light) ?? [])
      for (const row of notice)
        expect(textWidth(row.map((span) => span.text).join(''))).toBeLessThanOrEqual(rect.width - 2)
  })

  it('turns through its plots and lists in both directions', async () => {
    const tab = await openStudy(80, 24)
    const seen: string[] = []
    for (let turn = 0; turn < 8; turn++) {
      seen.push(tab.titles()[1]?.trim() ?? '')
      await tab.press('\x1b[C')
    }
    expect(seen).toEqual([
      'what it does',
      'best loss so far',
      'loss over size',
      'loss over opt',
      'loss over momentum',
      'parallel coordinates',
      'where it runs',
      'stopped early: 1',
    ])
    expect(tab.titles()[1]).toBe(' what it does ')
    await tab.press('\x1b[D')
    expect(tab.text()).toMatch(/^ trial 5 +at step 12 its loss 0\.95 is worse than the median 0\.5/m)
    await tab.press('\x1b[D')
    expect(tab.text()).toMatch(/^ trial 6 +running +n2 .*loss=0\.8 {2}size=70 opt=adam/m)
    await tab.press('\x1b[D')
    expect(tab.text()).toMatch(/^ size +opt +momentum +loss/m)
    expect(tab.text()).toMatch(/[\u2801-\u28ff]/)
  })

  it('scrolls sentences that do not fit, and selects trials with the wheel', async () => {
    const prune = { rule: 'median' as const, stepMetric: 'step', fromStep: 5, fromTrials: 5 }
    const long = readingOf(studyOf({ prune }, { repeated: 4, replaced: 1 }), TRIALS, JOBS)
    const tab = await openStudy(60, 18, long)
    const last = '1 trial is open; it ends after 50'
    expect(tab.text()).not.toContain(last)
    await tab.press(' ')
    await tab.press(' ')
    expect(tab.text()).toContain(last)
    await tab.press('bb')
    expect(tab.text()).toContain('best: loss=0.125')
    tab.console.page?.scrollBy(3)
    expect(tab.text()).toMatch(/^▸1 /m)
    tab.console.page?.scrollBy(-3)
    expect(tab.text()).toMatch(/^▸3 ★/m)
  })

  it('draws the best so far with the best trial marked, and the front of several metrics', async () => {
    // The larger the size, the better one metric and the worse the other.
    const trials = Array.from({ length: 60 }, (_, number) =>
      trialOf(number, { values: { loss: String(number % 20), acc: String(number % 20) } }),
    )
    const tab = await openStudy(120, 40, readingOf(studyOf({ metrics: [LOSS, ACC] }), trials))
    expect(tab.titles()[2]).toBe(' best loss so far ')
    expect(tab.text()).toMatch(/◆/)
    await tab.press('\t')
    expect(tab.titles().slice(1)).toEqual([' loss and acc ', ' importance for loss '])
    await tab.press('v')
    expect(tab.titles()[2]).toBe(' importance for acc ')
    expect(tab.hints()).toContain('v next metric')
    expect(tab.text().match(/★/g)?.length).toBeGreaterThan(1)
  })

  it('has the line of descent of a population', async () => {
    const pbt = {
      ...{
        population: 2,
        timeAttr: 'epoch',
        perturbationInterval: 4,
        quantileFraction: 0.5,
        resampleProbability: 0.25,
      },
      mutate: ['size=choice:10,20'],
    }
    const trials = [
      trialOf(0, { values: { loss: '0.5' } }, { member: 0 }),
      trialOf(1, { kind: 'pruned', reason: 'replaced by trial 2' }, { member: 1 }),
      trialOf(2, undefined, { member: 1, parent: 0, parentStep: 4 }),
    ]
    const tab = await openStudy(80, 24, readingOf(studyOf({ method: 'pbt', pbt }), trials, JOBS))
    for (let turn = 0; turn < 20 && tab.titles()[1] !== ' line of descent '; turn++) await tab.press('\x1b[C')
    expect(tab.text()).toMatch(/^ member 1 +trial 1[\s\S]*^ +trial 2 +member 0 \(trial 0\) at epoch 4/m)
    expect(tab.text()).toMatch(/TRIAL +STATE +loss +size +opt +momentum +MEMBER +FROM/)
  })

  it('sorts, filters and searches the trials', async () => {
    const tab = await openStudy()
    const numbers = () =>
      [...tab.text().matchAll(/^[▸ ](\d+)(?: ★)? +(?:done|failed|pruned|running)/gm)].map(([, id]) => id)
    expect(numbers()).toEqual(['3', '1', '2', '0', '5', '4', '6'])
    await tab.press('I')
    expect(numbers()).toEqual(['6', '4', '5', '0', '2', '1', '3'])
    expect(tab.titles()[0]).toContain('study wf reversed')
    await tab.press('I')
    expect(tab.text()).not.toMatch(/[▾▴]/)
    await tab.press('>>>')
    expect(tab.text()).toContain('loss▴')
    // The head of the column says it.
    expect(tab.titles()[0]).not.toMatch(/reversed|loss/)
    expect(numbers()).toEqual(['3', '1', '2', '6', '0', '5', '4'])
    await tab.press('>')
    expect(tab.text()).toContain('size▴')
    expect(numbers()).toEqual(['0', '1', '2', '3', '4', '5', '6'])
    await tab.press('f')
    expect(tab.text()).toContain('only open')
    expect(numbers()).toEqual(['6'])
    await tab.press('\x1b')
    expect(tab.text()).not.toContain('only open')
    await tab.press('/opt=sgd\r')
    expect(tab.titles().join()).toContain(' /opt=sgd  2 of 7 ')
    expect(numbers()).toEqual(['1', '4'])
    await tab.press('\x1b')
    await tab.press('/nowhere\r')
    expect(tab.text()).toContain('no trial matches “nowhere”')
    await tab.press('\x1b')
    expect(numbers()).toHaveLength(7)
  })

  it('shows the log of the selected trial in place of the plots, and goes back step by step', async () => {
    const tab = await openStudy()
    await tab.press('\x1b[B')
    await tab.press('\r')
    expect(tab.titles()[1]).toBe(' job 2 ')
    const [host, command, handlers] = tab.logs.at(-1) ?? []
    expect([host, command]).toEqual(['n1', "exec /bin/sh -c 'cat log-2'"])
    handlers?.onStdout(Buffer.from('epoch 1\x1b[2J loss=0.5\n'))
    handlers?.onEnd({ kind: 'exit', code: 0 })
    await setImmediate()
    expect(tab.text()).toMatch(/epoch 1.*loss=0\.5/)
    expect(tab.text()).not.toContain('\x1b')
    await tab.press('\x1b[B')
    expect(tab.titles()[1]).toBe(' job 3 ')
    await tab.press('q')
    expect(tab.titles()[1]).toBe(' what it does ')
    expect(tab.text()).toMatch(/^▸2 /m)
    await tab.press('q')
    expect(tab.titles()[0]).toBe(' jobs ')
  })

  it('says that a trial without a job has no log', async () => {
    const trials = TRIALS.map((trial) => ({ ...trial, job: undefined }))
    const tab = await openStudy(80, 24, readingOf({ ...studyOf(), jobSpec: undefined }, trials), [])
    await tab.press('\r')
    expect(tab.text()).toContain('no job: no trial is selected, its job was deleted, or it ran elsewhere')
  })

  it('stops trials that run again though the study is done', async () => {
    const state = { kind: 'done' as const, reason: '4 trials', repeated: 0, replaced: 0 }
    const { press, queue } = await openStudy(80, 24, readingOf({ ...studyOf(), state }, TRIALS))
    await press('c')
    await press('y')
    expect(queue.studyChanges).toEqual([[1, { kind: 'stop', now: false }]])
  })

  it('asks before it stops the study, and how many more trials it runs', async () => {
    const tab = await openStudy(80, 24)
    const { queue, press } = tab
    await press('c')
    await press('\x1b')
    await press('cy')
    expect(queue.studyChanges).toEqual([])
    await press('y')
    await press('C')
    // More trials may start before the user answers.
    const line = { text: 'Cancels all trials that run or wait (1 now). m continues the study.' }
    expect(tab.console.state.mode).toMatchObject({ dialog: { lines: [line] } })
    await press('y')
    await press('m')
    await press('x\r')
    expect(queue.studyChanges).toEqual([
      [1, { kind: 'stop', now: false }],
      [1, { kind: 'stop', now: true }],
    ])
    await press('\x7f')
    await press('20\r')
    expect(queue.studyChanges.at(-1)).toEqual([1, { kind: 'more', trials: 20 }])
    expect(queue.changes).toEqual([])
  })

  it('explains an empty study, and that no scheduler starts its trials', async () => {
    const tab = await openStudy(80, 24, readingOf(studyOf(), []), [])
    expect(tab.text()).toContain('No trial yet. The scheduler starts trials as hosts become free')
    expect(tab.text()).toContain('It looks for the smallest loss.')
  })

  it('follows a study that runs, and keeps the selected trial', async () => {
    const tab = await openStudy()
    await tab.press('\x1b[B')
    expect(tab.text()).toMatch(/^▸1 /m)
    const better = trialOf(6, { values: { loss: '0.01' } })
    tab.queue.studies.set(1, readingOf(studyOf(), [...TRIALS.slice(0, 6), better, trialOf(7, undefined)], JOBS))
    tab.clock.advance(1000)
    await setImmediate()
    await setImmediate()
    expect(tab.text()).toMatch(/^ 6 ★ +done +0\.01/m)
    expect(tab.text()).toMatch(/^▸1 /m)
    expect(tab.text()).toContain('7/50')
  })

  it('prints what hosts and programs said only in printable characters', async () => {
    const hostile = trialOf(
      0,
      { kind: 'failed', reason: 'a\x1b[2Jb', host: 'n\x071' },
      { point: { size: '1\x1b]0;x\x07', opt: 'adam' } },
    )
    const tab = await openStudy(240, 67, readingOf(studyOf({}, { trouble: 'no\x1b[31m module' }), [hostile]), [])
    expect(tab.text()).toContain('It has no next point yet: no')
    expect(tab.text()).not.toMatch(/[\x00-\x09\x0b-\x1f\x7f]/)
  })
})
