/** Studies on hosts that are only a model: no point twice and none lost, whenever the scheduler is killed. */
import { describe, expect, it } from 'vitest'
import { isFinal, isInLine } from '../../../../src/scheduler/jobs/job.ts'
import { continueStudy, retryJobs, stopStudy } from '../../../../src/scheduler/jobs/study-change.ts'
import type { OpenSampler } from '../../../../src/scheduler/jobs/study-pass.ts'
import type { NewStudy } from '../../../../src/scheduler/jobs/study-rows.ts'
import { explainStudy } from '../../../../src/scheduler/study/explain.ts'
import { countTrials } from '../../../../src/scheduler/study/front.ts'
import type { Study, StudySpec } from '../../../../src/scheduler/study/study.ts'
import { QueueWorld, worldSpec } from '../../../support/queue-world.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

const HOSTS = [1, 2, 3, 4].map((number) => ({
  name: `m${number}`,
  cpuMilli: 5000,
  memoryBytes: 2 ** 34,
  gpus: [],
  labels: {},
}))

const study = (spec: Partial<StudySpec> = {}, rest: Partial<NewStudy> = {}): NewStudy => ({
  name: 'wf',
  user: 'ann',
  priority: 0,
  spec: {
    parameters: ['size=int:10:200:10'],
    method: 'random',
    seed: 1,
    metrics: [{ name: 'acc', isMost: true }],
    repeat: 1,
    failures: 1000,
    ...spec,
  },
  job: worldSpec({ runS: 3, metrics: [{ name: 'acc' }], retries: 0 }),
  ...rest,
})

/** As hosts do: what has ended is read. */
function readAll({ store }: QueueWorld, value: (id: number) => string | undefined = String): void {
  for (const job of store.list([], 1000))
    if (isFinal(job.state)) {
      const acc = value(job.id)
      store.results.note({
        job: job.id,
        attempt: job.attempt,
        values: acc === undefined ? {} : { acc },
        isFinal: true,
      })
    }
}

function runAll(world: QueueWorld, id: number, onTick = () => {}): void {
  for (let tick = 0; tick < 500 && world.store.studies.get(id)?.state.kind === 'running'; tick++) {
    world.nowMs += 1000
    onTick()
    world.tick()
    world.act()
    readAll(world)
  }
}

/** Suggests one of three sizes, as a sampler does that has made up its mind. */
const stubborn: OpenSampler = () => {
  let [count, repeats] = [0, 0]
  return {
    poll: () => ({ kind: 'raw', values: { size: String([50, 60, 50][count++ % 3]) }, repeats }),
    repeat: () => void repeats++,
    take() {
      repeats = 0
    },
    tell() {},
    [Symbol.dispose]() {},
  }
}

/** All trials of the study fail; returns their jobs. */
function failAll(world: QueueWorld, id: number): number[] {
  const { studies } = world.store
  for (let tick = 0; tick < 60 && studies.get(id)?.state.kind === 'running'; tick++) {
    world.nowMs += 1000
    world.tick()
    world.act()
    readAll(world, () => undefined)
  }
  return studies.trials(id).map(({ job }) => job ?? 0)
}

describe('a study', () => {
  it.each([
    'grid',
    'random',
    'brute',
    'quasi-random',
    'stubborn',
  ])('tries each of 20 points once by %s, five at once, with a scheduler that is killed at any moment', (method) => {
    using world = new QueueWorld(HOSTS, false)
    const random = seededRandom()
    const id = world.store.studies.create(study({ method, atOnce: 5 }), world.nowMs)
    let most = 0
    runAll(world, id, () => {
      world.restart(method === 'stubborn' ? stubborn : undefined)
      most = Math.max(most, world.store.active().length)
      if (random() < 0.3)
        expect(() =>
          world.store.together(() => {
            world.tick()
            throw new Error('killed')
          }),
        ).toThrow('killed')
      world.restart(method === 'stubborn' ? stubborn : undefined)
    })
    const trials = world.store.studies.trials(id)
    expect(trials.map(({ point }) => Number(point.size)).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, index) => 10 + index * 10),
    )
    expect(trials.every(({ end }) => end?.kind === 'done')).toBe(true)
    expect(world.store.studies.get(id)?.state).toMatchObject({ kind: 'done', reason: 'all 20 points tried' })
    expect(world.store.list([], 1000)).toHaveLength(20)
    expect(most).toBe(5)
  })

  it('gives each trial its parameters and its number', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ method: 'grid', atOnce: 1 }), world.nowMs)
    world.tick()
    const [trial] = world.store.studies.trials(id)
    expect(world.store.get(trial?.job ?? 0)?.spec.environment).toEqual({
      size: '10',
      MUSTER_STUDY: 'wf',
      MUSTER_TRIAL: '0',
    })
  })

  it('keeps one trial waiting where no number was given', () => {
    using world = new QueueWorld(HOSTS, false)
    world.store.studies.create(study({ parameters: ['x=float:0:1'] }), world.nowMs)
    for (let tick = 0; tick < 40; tick++) world.tick()
    expect(world.store.active()).toHaveLength(20)
    expect(world.store.queued(10)).toHaveLength(1)
  })

  it('ends after as many trials as it may have', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({}, { trials: 7 }), world.nowMs)
    runAll(world, id)
    expect(world.store.studies.trials(id)).toHaveLength(7)
    expect(world.store.studies.get(id)?.state).toMatchObject({ kind: 'done', reason: '7 trials' })
  })

  it('tries a point as often as --repeat says, and no more', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(
      study({ method: 'grid', parameters: ['size=int:1:3'], repeat: 3 }),
      world.nowMs,
    )
    runAll(world, id)
    const runs = world.store.studies.trials(id).map(({ point, repetition }) => `${point.size}/${repetition}`)
    expect(runs).toEqual(['1/0', '1/1', '1/2', '2/0', '2/1', '2/2', '3/0', '3/1', '3/2'])
  })

  it('compares others with the last step of a trial that ended before it was read for the first time', () => {
    using world = new QueueWorld(HOSTS, false)
    const prune = { rule: 'median', stepMetric: 'acc', fromStep: 1, fromTrials: 5 } as const
    const id = world.store.studies.create(study({ parameters: ['size=int:1:3'], prune }), world.nowMs)
    runAll(world, id)
    const steps = [...world.store.studies.steps(id).values()]
    expect(steps.toSorted((one, other) => (one[0]?.step ?? 0) - (other[0]?.step ?? 0))).toEqual(
      [1, 2, 3].map((step) => [{ step, value: step }]),
    )
  })

  it('asks a sampler for the next point when it knows what the last trial has reached, or after a while', () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(stubborn)
    const id = world.store.studies.create(study({ method: 'stubborn', atOnce: 1 }), world.nowMs)
    const pass = (ms = 1) => {
      world.nowMs += ms
      world.tick()
      world.act()
      return world.store.studies.trials(id).length
    }
    while (world.store.list(['done'], 1).length === 0) pass(1000)
    expect(pass()).toBe(1)
    readAll(world)
    expect(pass()).toBe(2)
    while (world.store.list(['done'], 2).length < 2) pass(1000)
    expect(pass()).toBe(2)
    expect(pass(5000)).toBe(3)
  })

  it('stops asking when too many trials in a row have failed', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ failures: 3, atOnce: 1 }), world.nowMs)
    for (let tick = 0; tick < 60; tick++) {
      world.nowMs += 1000
      world.tick()
      world.act()
      readAll(world, () => undefined)
    }
    expect(world.store.studies.trials(id).map(({ end }) => end?.reason)).toEqual(
      Array.from({ length: 3 }, () => 'no acc=NUMBER found in its output'),
    )
    expect(world.store.studies.get(id)?.state).toMatchObject({ kind: 'done', reason: 'the last 3 trials failed' })
  })

  it('does not count trials whose jobs a person cancelled as failed', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ failures: 2, atOnce: 1 }, { trials: 5 }), world.nowMs)
    let cancelled = 0
    runAll(world, id, () => {
      const [job] = world.store.active()
      if (job === undefined || cancelled >= 4) return
      cancelled += 1
      world.store.applyAll([{ id: job.id, event: { kind: 'stop', reason: 'cancelled' } }], world.nowMs)
    })
    const { studies } = world.store
    expect(studies.trials(id).map(({ end }) => end?.kind)).toEqual([...Array(4).fill('cancelled'), 'done'])
    expect(studies.get(id)?.state).toMatchObject({ kind: 'done', reason: '5 trials' })
    expect(explainStudy(studies.get(id)!, countTrials(studies.trials(id)), []).at(-1)).toBe(
      'It is done: 5 trials; 4 cancelled.',
    )
  })

  it('counts trials whose jobs were cancelled elsewhere as failed', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ failures: 2, atOnce: 1 }, { trials: 5 }), world.nowMs)
    const event = { kind: 'stop', reason: 'cancelled', because: 'cancelled in Slurm' } as const
    runAll(world, id, () => {
      world.store.applyAll(
        world.store.active().map((job) => ({ id: job.id, event })),
        world.nowMs,
      )
    })
    const { studies } = world.store
    expect(studies.get(id)?.state).toMatchObject({ kind: 'done', reason: 'the last 2 trials failed' })
    expect(studies.trials(id).map(({ end }) => end?.reason)).toEqual(Array(2).fill('cancelled in Slurm'))
  })

  it('begins cancelled trials again one after the other where no more may run at once, before new ones', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ atOnce: 1 }, { trials: 6 }), world.nowMs)
    const { store } = world
    const { studies } = store
    let cancelled = 0
    const cancel = () => {
      const [job] = store.active()
      if (job === undefined || cancelled === 3) return
      cancelled += 1
      store.applyAll([{ id: job.id, event: { kind: 'stop', reason: 'cancelled' } }], world.nowMs)
    }
    for (let tick = 0; tick < 20 && cancelled < 3; tick++) {
      world.nowMs += 1000
      cancel()
      world.tick()
      world.act()
      readAll(world)
    }
    stopStudy(store, studies.get(id)!, { now: true }, world.nowMs)
    world.tick()
    const before = studies.trials(id).length
    expect(continueStudy(store, studies.get(id)!, undefined, world.nowMs).again).toBeGreaterThanOrEqual(3)
    let [most, mostTrials] = [0, 0]
    runAll(world, id, () => {
      most = Math.max(most, store.active().length + store.queued(9).length)
      if (
        studies
          .trials(id)
          .slice(0, before)
          .some(({ end }) => end?.kind !== 'done')
      )
        mostTrials = studies.trials(id).length
    })
    expect([most, mostTrials]).toEqual([1, before])
    expect(studies.trials(id).map(({ end }) => end?.kind)).toEqual(Array(6).fill('done'))
    expect(studies.get(id)?.state).toMatchObject({ kind: 'done', reason: '6 trials' })
  })

  it.each([1, 2])('lets %i trials that failed run again at once, also when it is done', (atOnce) => {
    using world = new QueueWorld(HOSTS, false)
    const { store } = world
    const { studies } = store
    const id = studies.create(study({ atOnce, failures: 9 }, { trials: 5 }), world.nowMs)
    const jobs = failAll(world, id)
    expect(studies.trials(id).map(({ end }) => end?.kind)).toEqual(Array(5).fill('failed'))
    expect(retryJobs(store, [...jobs, 99], world.nowMs)).toEqual([...Array(5).fill(true), undefined])
    expect(retryJobs(store, jobs.slice(-1), world.nowMs)).toEqual([false])
    expect(store.list(['held'], 9)).toHaveLength(5 - atOnce)
    expect(store.list(['held'], 9).every(isInLine)).toBe(true)
    let most = 0
    for (let tick = 0; tick < 60; tick++) {
      most = Math.max(most, store.active().length + store.queued(9).length)
      world.nowMs += 1000
      world.tick()
      world.act()
      readAll(world)
    }
    expect(most).toBe(atOnce)
    expect(studies.trials(id).map(({ end }) => end?.kind)).toEqual(Array(5).fill('done'))
    expect(studies.get(id)?.state).toMatchObject({ kind: 'done', retries: 1 })
    expect(studies.hasUnfinished()).toBe(false)
  })

  it('lets no trial run again that waits for it when it is stopped', () => {
    using world = new QueueWorld(HOSTS, false)
    const { store } = world
    const { studies } = store
    const id = studies.create(study({ atOnce: 1, failures: 9 }, { trials: 3 }), world.nowMs)
    const jobs = failAll(world, id)
    retryJobs(store, jobs, world.nowMs)
    expect(stopStudy(store, studies.get(id)!, { now: true }, world.nowMs)).toEqual({ stopped: 3, running: 0 })
    for (let tick = 0; tick < 20; tick++) {
      world.nowMs += 1000
      world.tick()
      world.act()
      readAll(world)
    }
    expect(studies.trials(id).map(({ end }) => end?.kind)).not.toContain('done')
    expect(studies.hasUnfinished()).toBe(false)
  })

  it('says of a trial whose last value is no number what it is', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ failures: 1, atOnce: 1 }), world.nowMs)
    for (let tick = 0; tick < 20; tick++) {
      world.nowMs += 1000
      world.tick()
      world.act()
      readAll(world, () => 'nan')
    }
    expect(world.store.studies.trials(id)[0]?.end).toMatchObject({ kind: 'failed', reason: 'its last acc is nan' })
  })

  it('opens the trial again when its job is tried again', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ atOnce: 1 }, { trials: 1 }), world.nowMs)
    for (let tick = 0; tick < 8; tick++) {
      world.nowMs += 1000
      world.tick()
      world.act()
      readAll(world, () => undefined)
    }
    const [failed] = world.store.studies.trials(id)
    expect(failed?.end?.kind).toBe('failed')
    world.store.applyAll([{ id: failed?.job ?? 0, event: { kind: 'retry' } }], world.nowMs)
    expect(world.store.studies.trials(id)[0]?.end).toBeUndefined()
    for (let tick = 0; tick < 8; tick++) {
      world.nowMs += 1000
      world.tick()
      world.act()
      readAll(world)
    }
    expect(world.store.studies.trials(id)[0]?.end).toMatchObject({ kind: 'done', values: { acc: '1' } })
    expect(world.store.studies.trials(id)).toHaveLength(1)
  })

  it('goes on when a trial prints a step that is no finite number', () => {
    using world = new QueueWorld(HOSTS, false)
    const prune = { rule: 'halving', stepMetric: 'epoch', fromStep: 1, fromTrials: 1, factor: 3 } as const
    const id = world.store.studies.create(study({ prune, atOnce: 2 }, { trials: 2 }), world.nowMs)
    runAll(world, id, () => {
      for (const { id: job, attempt } of world.store.active())
        world.store.results.note({ job, attempt, values: { epoch: 'inf', acc: '1' }, isFinal: false })
    })
    expect(world.store.studies.trials(id).map(({ end }) => end?.kind)).toEqual(['done', 'done'])
    expect(world.store.studies.steps(id).size).toBe(0)
  })

  it('keeps the jobs of trials whose values were not read yet', () => {
    using world = new QueueWorld(HOSTS, false)
    const { store } = world
    const id = store.studies.create(study({ atOnce: 1 }, { trials: 1 }), world.nowMs)
    for (let tick = 0; tick < 8; tick++) {
      world.nowMs += 1000
      world.tick()
      world.act()
    }
    expect(store.list([], 9).map(({ state }) => state.kind)).toEqual(['done'])
    expect(store.countForgettable(world.nowMs + 1)).toBe(0)
    expect(store.forgetEnded(world.nowMs + 1, 9)).toBe(0)
    readAll(world)
    world.tick()
    expect(store.forgetEnded(world.nowMs + 1, 9)).toBe(1)
    world.tick()
    expect(store.studies.trials(id)[0]?.end).toMatchObject({ kind: 'done', values: { acc: '1' } })
  })

  it('does not call a trial pruned that fails after its job was tried again', () => {
    using world = new QueueWorld(HOSTS, false)
    const { store } = world
    const id = store.studies.create(study({ atOnce: 1 }, { trials: 1 }), world.nowMs)
    world.tick()
    const [trial] = store.studies.trials(id)
    const job = trial?.job ?? 0
    if (trial !== undefined) store.studies.noteStopping(id, trial, 'worse than the others')
    store.applyAll([{ id: job, event: { kind: 'stop', reason: 'cancelled' } }], world.nowMs)
    world.act()
    world.tick()
    expect(store.studies.trial(id, 0)?.end).toMatchObject({ kind: 'pruned', reason: 'worse than the others' })
    store.applyAll([{ id: job, event: { kind: 'retry' } }], world.nowMs)
    expect(store.studies.trial(id, 0)).toMatchObject({ end: undefined })
    world.tick()
    world.act()
    store.applyAll(
      [{ id: job, event: { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 1 } } } }],
      world.nowMs,
    )
    world.tick()
    expect(store.studies.trial(id, 0)?.end).toMatchObject({ kind: 'failed' })
  })

  it('ends when all numbers of a small range were tried, as far as they are rounded', () => {
    using world = new QueueWorld(HOSTS, false)
    const id = world.store.studies.create(study({ parameters: ['x=float:1:1.00003'], digits: 6 }), world.nowMs)
    runAll(world, id)
    expect(
      world.store.studies
        .trials(id)
        .map(({ point }) => point.x)
        .toSorted(),
    ).toEqual(['1', '1.00001', '1.00002', '1.00003'])
    expect(world.store.studies.get(id)?.state.reason).toBe(
      'found no untried point; numbers are rounded to 6 significant digits',
    )
  })

  it('keeps the directory that was copied for its trials until it is done, also between two of them', () => {
    using world = new QueueWorld(HOSTS, false)
    const { studies } = world.store
    const directory = `../${world.store.id}-copied`
    const id = studies.create(study({}, { job: worldSpec({ directory }) }), world.nowMs)
    const state = studies.get(id)?.state
    expect(world.store.keptDirectories()).toEqual([directory.slice('../'.length)])
    if (state !== undefined) studies.setState(id, { ...state, kind: 'stopped' })
    expect(world.store.keptDirectories()).toHaveLength(1)
    if (state !== undefined) studies.setState(id, { ...state, kind: 'done' })
    expect(world.store.keptDirectories()).toEqual([])
  })

  it('credits a member with what its checkpoint had reached, where nothing was left to train', () => {
    using world = new QueueWorld(HOSTS, false)
    const { store } = world
    const pbt = {
      ...{ population: 2, timeAttr: 'step', perturbationInterval: 4, quantileFraction: 0.5, resampleProbability: 0 },
      mutate: [],
    }
    const id = store.studies.create(study({ method: 'pbt', pbt }), world.nowMs)
    const found = store.studies.get(id)
    if (found === undefined) throw new Error('no study')
    // Its first members have begun.
    store.studies.setState(id, { ...found.state, population: { marks: [], hosts: {}, replacements: [] } })
    const trial = (size: string, more: object) =>
      store.addTrial(found, { point: { size }, repetition: 0, ...more }, world.nowMs)
    const [parent, child, grandchild] = [
      trial('10', { member: 0 }),
      trial('20', { member: 1, parent: 0 }),
      trial('30', { member: 2, parent: 1 }),
    ]
    for (let tick = 0; tick < 12; tick++) {
      world.nowMs += 1000
      world.tick()
      world.act()
      readAll(world, (job) => (job === parent.job ? '0.9' : undefined))
    }
    expect(store.studies.trial(id, child.number)?.end).toMatchObject({
      kind: 'done',
      values: { acc: '0.9' },
      reason: 'trial 0 had trained its checkpoint to the end',
    })
    expect(store.studies.trial(id, grandchild.number)?.end).toMatchObject({ kind: 'done', values: { acc: '0.9' } })
    // New members begin only with their study.
    const over = store.studies.get(id) as Study
    expect(over.state.kind).toBe('done')
    expect(() => continueStudy(store, over, 2, world.nowMs)).toThrow(
      'wf has nothing left to run: all members have ended',
    )
    expect(store.studies.get(id)).toEqual(over)
  })
})
