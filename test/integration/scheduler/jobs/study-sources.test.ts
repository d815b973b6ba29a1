/** Studies that run elsewhere are followed: what is new is stored, and little is read twice. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { knownTrials, mirrorTrials } from '../../../../src/scheduler/jobs/mirror-rows.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { continueStudy, stopStudy } from '../../../../src/scheduler/jobs/study-change.ts'
import { type ReadSource, refreshStudy, StudySources } from '../../../../src/scheduler/jobs/study-sources.ts'
import type { SourceRequest } from '../../../../src/scheduler/study/source.ts'
import type { StudySpec } from '../../../../src/scheduler/study/study.ts'

const NOW = 1_800_000_000_000
const SPEC: StudySpec = {
  parameters: ['x=float:0:1'],
  method: 'optuna',
  seed: 0,
  metrics: [{ name: 'value' }],
  repeat: 1,
  failures: 1,
  source: { kind: 'optuna', url: 'sqlite:////srv/a.db', host: 'm1' },
}

type There = { state: string; x: string; steps?: (readonly [number, string])[] }

/** A storage of Optuna's, as the program on its host tells of it. */
class Storage {
  trials: There[] = []
  beganMs = 1_700_000_000_000
  trouble: string | undefined
  /** As many as fit into one reading. */
  page = 1000
  readonly requests: SourceRequest[] = []

  readonly read: ReadSource = async (_, request) => {
    this.requests.push(request)
    if (this.trouble !== undefined) return { trouble: this.trouble }
    const isKnown = (number: number) => request.done.some(([first, last]) => number >= first && number <= last)
    const told = this.trials
      .map((one, number) => ({ ...one, number }))
      .filter(({ number }) => number >= request.from && !isKnown(number))
    return {
      lines: [
        {
          op: 'study',
          name: 'a',
          directions: ['MINIMIZE'],
          metrics: [],
          trials: this.trials.length,
          began: this.beganMs,
        },
        { op: 'distribution', id: 0, kind: 'float', low: '0.0', high: '1.0', step: null, log: false },
        ...told.slice(0, this.page).map(({ number, state, x, steps = [] }) => ({
          op: 'trial',
          number,
          state,
          params: { x: [0, x] },
          values: state === 'COMPLETE' ? [x] : [],
          steps: steps.filter(([step]) => step > (request.steps[number] ?? -1)),
          started: this.beganMs,
          ended: state === 'RUNNING' ? null : NOW,
          attributes: {},
        })),
        { op: 'end', more: told.length > this.page },
      ],
    }
  }
}

let store: JobStore
let there: Storage
let id: number
let now = NOW
beforeEach(() => {
  store = new JobStore(':memory:')
  there = new Storage()
  now = NOW
  id = store.together(() => store.studies.create({ name: 'a', user: 'ann', priority: 0, spec: SPEC }, NOW))
})
afterEach(() => store[Symbol.dispose]())

const refresh = () =>
  refreshStudy({ store, read: there.read, signal: new AbortController().signal, now: () => now }, id)
const stored = () =>
  store.studies.trials(id).map(({ number, point, repetition, end }) => [number, point.x, repetition, end?.kind])
const stateOf = () => store.studies.get(id)?.state

describe('a reading', () => {
  it('stores trials, and asks for those alone that were not over', async () => {
    there.trials = [
      { state: 'COMPLETE', x: '0.5' },
      {
        state: 'RUNNING',
        x: '0.25',
        steps: [
          [1, '3.0'],
          [2, '2.0'],
        ],
      },
      { state: 'PRUNED', x: '0.5' },
    ]
    expect(await refresh()).toMatchObject({ kind: 'new', total: 3 })
    expect(stored()).toEqual([
      [0, '0.5', 0, 'done'],
      [1, '0.25', 0, undefined],
      [2, '0.5', 1, 'pruned'],
    ])
    there.trials[1] = {
      state: 'COMPLETE',
      x: '0.5',
      steps: [
        [1, '3.0'],
        [2, '2.0'],
        [3, '1.0'],
      ],
    }
    there.trials.push({ state: 'FAIL', x: '0.75' })
    expect(await refresh()).toMatchObject({ kind: 'new' })
    expect(there.requests[1]).toMatchObject({
      done: [
        [0, 0],
        [2, 2],
      ],
      steps: { '1': 2 },
    })
    expect(stored()).toEqual([
      [0, '0.5', 0, 'done'],
      [1, '0.5', 2, 'done'],
      [2, '0.5', 1, 'pruned'],
      [3, '0.75', 0, 'failed'],
    ])
    expect(store.studies.steps(id).get(1)).toEqual([
      { step: 1, value: 3 },
      { step: 2, value: 2 },
      { step: 3, value: 1 },
    ])
    expect(await refresh()).toMatchObject({ kind: 'same' })
    expect(there.requests[2]).toMatchObject({ done: [[0, 3]], steps: {} })
  })

  it('takes what does not fit into one answer in several', async () => {
    there.trials = Array.from({ length: 25 }, (_, number) => ({ state: 'COMPLETE', x: String(number / 100) }))
    there.page = 10
    expect(await refresh()).toMatchObject({ kind: 'new' })
    expect(there.requests.map(({ done }) => done)).toEqual([[], [[0, 9]], [[0, 19]]])
    expect(stored()).toHaveLength(25)
  })

  it('gets on with answers that are full of trials that run', async () => {
    there.trials = Array.from({ length: 25 }, (_, number) => ({ state: 'RUNNING', x: String(number / 100) }))
    there.page = 10
    expect(await refresh()).toMatchObject({ kind: 'new' })
    expect(there.requests.map(({ from }) => from)).toEqual([0, 10, 20])
    expect(stored()).toHaveLength(25)
  })

  it('forgets trials of a study whose place another one has taken', async () => {
    there.trials = [
      { state: 'COMPLETE', x: '0.5' },
      { state: 'COMPLETE', x: '0.25' },
    ]
    await refresh()
    there.beganMs += 5000
    there.trials = [{ state: 'RUNNING', x: '0.125' }]
    expect(await refresh()).toMatchObject({ kind: 'new' })
    expect(stored()).toEqual([[0, '0.125', 0, undefined]])
    // Fewer than there were.
    there.trials = [{ state: 'COMPLETE', x: '0.5' }]
    await refresh()
    there.trials = []
    expect(await refresh()).toMatchObject({ kind: 'trouble', reason: expect.stringContaining('no trial') })
    expect(stored()).toEqual([[0, '0.5', 0, 'done']])
  })

  it('gives the reason when nothing can be read, and keeps what is stored', async () => {
    there.trials = [{ state: 'COMPLETE', x: '0.5' }]
    await refresh()
    there.trouble = 'no route to host'
    expect(await refresh()).toEqual({
      kind: 'trouble',
      reason: 'cannot read sqlite:////srv/a.db on m1: no route to host',
    })
    expect(stored()).toHaveLength(1)
  })

  it('stores no more steps than a trial can have', () => {
    const study = store.studies.get(id)
    if (study === undefined) throw new Error('no study')
    const steps = Array.from({ length: 30_000 }, (_, step) => ({ step, value: 1 }))
    const trials = [{ number: 0, point: { x: '0.5' }, steps, end: undefined }]
    store.together(() => mirrorTrials(store, study, { spec: SPEC, trials, isWhole: false }))
    expect(store.studies.steps(id).get(0)).toHaveLength(20_000)
  })

  it('numbers 2,000 repetitions of a point without comparing each with all', () => {
    const study = store.studies.get(id)
    if (study === undefined) throw new Error('no study')
    const trials = Array.from({ length: 2000 }, (_, number) => ({
      number,
      point: { x: '0.5' },
      steps: [],
      end: { kind: 'done' as const, values: {}, endedMs: NOW },
    }))
    store.together(() => mirrorTrials(store, study, { spec: SPEC, trials, isWhole: false }))
    expect(store.studies.trial(id, 1999)?.repetition).toBe(1999)
    expect(knownTrials(store, study)).toEqual({ done: [[0, 1999]], steps: {} })
  })
})

describe('following', () => {
  let sources: StudySources
  let failure: unknown
  beforeEach(() => {
    const lease = store.lease.take('here', NOW, 60_000)
    if (lease === undefined) throw new Error('there is another scheduler')
    failure = undefined
    sources = new StudySources({
      store,
      lease,
      read: there.read,
      now: () => now,
      onFailure: (error) => {
        failure = error
      },
    })
    there.trials = [{ state: 'RUNNING', x: '0.5' }]
  })
  afterEach(() => {
    sources[Symbol.dispose]()
    expect(failure).toBeUndefined()
  })

  /** Lets time pass in steps of a second, and each reading end. */
  async function pass(seconds: number, stepS = 1): Promise<void> {
    for (let second = 0; second < seconds; second += stepS) {
      now += stepS * 1000
      sources.poll(now)
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    }
  }

  it('reads a study that changes every ten seconds, and one that does not more and more rarely', async () => {
    await pass(31)
    expect(there.requests).toHaveLength(4)
    await pass(3600, 5)
    expect(there.requests.length).toBeGreaterThan(30)
    expect(there.requests.length).toBeLessThan(200)
    expect(stateOf()?.kind).toBe('running')
  })

  it('takes a study for over when nothing changes for an hour, or for a day while a trial runs', async () => {
    await pass(23 * 3600, 60)
    expect(stateOf()?.kind).toBe('running')
    await pass(2 * 3600, 60)
    expect(stateOf()).toMatchObject({ kind: 'done', reason: 'nothing has changed there for a day' })
    const reads = there.requests.length
    await pass(3600, 60)
    expect(there.requests).toHaveLength(reads)
  })

  it('takes a study without trials that run for over after an hour', async () => {
    there.trials = [{ state: 'COMPLETE', x: '0.5' }]
    await pass(3000, 10)
    expect(stateOf()?.kind).toBe('running')
    await pass(2400, 10)
    expect(stateOf()).toMatchObject({ kind: 'done', reason: 'nothing has changed there for an hour' })
  })

  it('says why it cannot be read, until it can', async () => {
    there.trouble = 'no route to host'
    await pass(2)
    expect(stateOf()?.trouble).toBe('cannot read sqlite:////srv/a.db on m1: no route to host')
    there.trouble = undefined
    await pass(12)
    expect(stateOf()).not.toHaveProperty('trouble')
    expect(stored()).toHaveLength(1)
  })

  it('leaves a study alone that its user has stopped, until it is continued', async () => {
    const study = store.studies.get(id)
    if (study === undefined) throw new Error('no study')
    expect(() => stopStudy(store, study, { now: true }, now)).toThrow('runs elsewhere')
    stopStudy(store, study, { now: false }, now)
    expect(stateOf()).toMatchObject({ kind: 'stopped', reason: 'no longer followed' })
    await pass(60)
    expect(there.requests).toHaveLength(0)
    expect(() => continueStudy(store, study, 5, now)).toThrow('runs elsewhere')
    continueStudy(store, study, undefined, now)
    await pass(5)
    expect(there.requests).toHaveLength(1)
    expect(stateOf()).toEqual({ kind: 'running', beganMs: NOW + 60_000, repeated: 0, replaced: 0 })
  })
})
