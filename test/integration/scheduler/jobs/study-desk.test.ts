/** Programs that ask for points: no trial is lost and none is given twice at the same time, whoever is killed. */
import { beforeEach, describe, expect, it } from 'vitest'
import { RESTART_MS, RETURN_MS } from '../../../../src/scheduler/jobs/study-desk.ts'
import type { NewStudy } from '../../../../src/scheduler/jobs/study-rows.ts'
import { type ProgramAnswer, parseRequest } from '../../../../src/scheduler/study/program-lines.ts'
import type { StudySpec } from '../../../../src/scheduler/study/study.ts'
import { QueueWorld } from '../../../support/queue-world.ts'
import { seededRandom } from '../../../support/seeded-random.ts'

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
    isAsked: true,
    ...spec,
  },
  ...rest,
})

let world: QueueWorld

/** A connection of a program. Its answers arrive with a tick of the scheduler. */
function connect() {
  const line = Symbol('program')
  const { desk } = world
  return {
    /** Undefined: no answer yet. */
    async send(request: object): Promise<{ readonly answer: ProgramAnswer | undefined; later(): ProgramAnswer }> {
      const parsed = parseRequest(JSON.stringify(request))
      if (typeof parsed === 'string') throw new Error(parsed)
      let answer: ProgramAnswer | undefined
      void desk.request(parsed, line).then((value) => {
        answer = value
      })
      world.tick()
      await Promise.resolve()
      return {
        get answer() {
          return answer
        },
        later() {
          if (answer === undefined) throw new Error('it has no answer')
          return answer
        },
      }
    },
    async one(request: object): Promise<ProgramAnswer> {
      return (await this.send(request)).later()
    },
    leave: () => desk.leave(line),
  }
}

type Given = Extract<ProgramAnswer, { parameters: object }>
const given = (answer: ProgramAnswer): Given => {
  if (!('parameters' in answer)) throw new Error(JSON.stringify(answer))
  return answer
}
async function pass(ms: number): Promise<void> {
  world.nowMs += ms
  world.tick()
  await Promise.resolve()
}
const trials = () => world.store.studies.trials(1)

beforeEach(() => {
  world = new QueueWorld([], false)
  return () => world[Symbol.dispose]()
})

describe('a program that asks for points', () => {
  it('gets the next one, and tells its value', async () => {
    world.store.studies.create(study({ method: 'grid' }), world.nowMs)
    const program = connect()
    const { trial, token, parameters } = given(await program.one({ ask: 'wf' }))
    expect([trial, parameters]).toEqual([0, { size: '10' }])
    world.nowMs += 3000
    expect(await program.one({ tell: 'wf', trial, token, values: 0.5, host: 'm1' })).toEqual({})
    expect(trials()[0]?.end).toEqual({
      kind: 'done',
      values: { acc: '0.5' },
      host: 'm1',
      startedMs: world.nowMs - 3000,
      endedMs: world.nowMs,
    })
  })

  it('hears why the study is over once all trials have ended, and not before', async () => {
    world.store.studies.create(study({}, { trials: 1 }), world.nowMs)
    const [first, second] = [connect(), connect()]
    const { trial, token } = given(await first.one({ ask: 'wf' }))
    const waiting = await second.send({ ask: 'wf' })
    expect(waiting.answer).toBeUndefined()
    await first.one({ tell: 'wf', trial, token, values: 1 })
    expect(waiting.later()).toEqual({ done: '1 trial' })
    expect(await first.one({ ask: 'wf' })).toEqual({ done: '1 trial' })
  })

  it('may tell the same value again, and not another one', async () => {
    world.store.studies.create(study(), world.nowMs)
    const program = connect()
    const { trial, token } = given(await program.one({ ask: 'wf' }))
    for (const _ of [1, 2]) expect(await program.one({ tell: 'wf', trial, token, values: 0.5 })).toEqual({})
    expect(await program.one({ tell: 'wf', trial, values: 0.6 })).toEqual({
      error: 'trial 0 already has a result: acc=0.5',
    })
    expect(await program.one({ tell: 'wf', trial, failed: 'no' })).toEqual({
      error: 'trial 0 already has a result: acc=0.5',
    })
  })

  it('fails the trial with a reason, or with a value that is no number', async () => {
    world.store.studies.create(study(), world.nowMs)
    const program = connect()
    for (const told of [{ failed: 'out of memory' }, { values: null }]) {
      const { trial, token } = given(await program.one({ ask: 'wf' }))
      expect(await program.one({ tell: 'wf', trial, token, ...told })).toEqual({})
    }
    expect(trials().map(({ end }) => [end?.kind, end?.reason])).toEqual([
      ['failed', 'out of memory'],
      ['failed', 'its acc was not a number'],
    ])
  })

  it('hears in words what it asked in vain', async () => {
    world.store.studies.create(study(), world.nowMs)
    world.store.studies.create(study({ isAsked: false }, { name: 'jobs' }), world.nowMs)
    const program = connect()
    expect(await program.one({ ask: 'none' })).toEqual({ error: 'there is no study none' })
    expect(await program.one({ ask: 'jobs' })).toEqual({
      error: 'the scheduler runs the trials of jobs: programs ask for those of a study made with --ask',
    })
    expect(await program.one({ tell: 'wf', trial: 7, values: 1 })).toEqual({ error: 'wf has no trial 7' })
    await program.one({ ask: 'wf' })
    expect(await program.one({ tell: 'wf', trial: 0, values: { f1: 1 } })).toEqual({
      error: 'its metrics are: acc, not f1',
    })
  })

  it('gets no more points than --at-once at the same time', async () => {
    world.store.studies.create(study({ atOnce: 1 }), world.nowMs)
    const [first, second] = [connect(), connect()]
    const { trial, token } = given(await first.one({ ask: 'wf' }))
    const waiting = await second.send({ ask: 'wf' })
    expect(waiting.answer).toBeUndefined()
    await first.one({ tell: 'wf', trial, token, values: 1 })
    expect(given(waiting.later()).trial).toBe(1)
  })

  it('stops early what is not worth going on', async () => {
    const prune = { rule: 'median', stepMetric: 'step', fromStep: 1, fromTrials: 2 } as const
    world.store.studies.create(study({ prune }), world.nowMs)
    const program = connect()
    const run = async (value: number) => {
      const { trial, token } = given(await program.one({ ask: 'wf' }))
      return { trial, token, answer: await program.one({ step: 'wf', trial, token, at: 5, value }) }
    }
    expect((await run(0.9)).answer).toEqual({})
    expect((await run(0.8)).answer).toEqual({})
    const { trial, token, answer } = await run(0.1)
    expect(answer).toEqual({ stop: expect.stringContaining('at step 5 its acc 0.1 is worse than the median') })
    await program.one({ tell: 'wf', trial, token, pruned: true })
    expect(trials()[trial]?.end).toMatchObject({
      kind: 'pruned',
      values: { acc: '0.1', step: '5' },
      reason: expect.stringContaining('median'),
    })
  })
})

it('asks a sampler that runs elsewhere, and tells it what programs told', async () => {
  world.store.studies.create(study({ method: 'tpe' }), world.nowMs)
  const heard: string[] = []
  let isReady = false
  let repeats = 0
  world.restart(() => ({
    poll: () => (isReady ? { kind: 'raw', values: { size: '50' }, repeats } : { kind: 'wait' }),
    repeat(values) {
      repeats++
      heard.push(`repeat ${values}`)
    },
    take: ({ number }) => heard.push(`take ${number}`),
    tell: ({ number, end }) => heard.push(`tell ${number} ${end.values.acc}`),
    [Symbol.dispose]() {},
  }))
  const program = connect()
  const waiting = await program.send({ ask: 'wf' })
  expect(waiting.answer).toBeUndefined()
  isReady = true
  await pass(1)
  const { trial, token, parameters } = given(waiting.later())
  expect(parameters).toEqual({ size: '50' })
  await program.one({ tell: 'wf', trial, token, values: 0.5 })
  expect(heard).toEqual(['take 0', 'tell 0 0.5'])
  // It suggests the same again, and programs get another one.
  expect(given(await program.one({ ask: 'wf' })).parameters).not.toEqual({ size: '50' })
  expect(heard.filter((word) => word === 'repeat 0.5')).toHaveLength(10)
})

describe('a trial whose program is gone', () => {
  it('goes to the next program that asks, as the same trial', async () => {
    world.store.studies.create(study(), world.nowMs)
    const [first, second] = [connect(), connect()]
    const before = given(await first.one({ ask: 'wf' }))
    first.leave()
    await pass(1)
    await pass(RETURN_MS)
    const again = given(await second.one({ ask: 'wf' }))
    expect([again.trial, again.parameters]).toEqual([before.trial, before.parameters])
    expect(again.token).not.toBe(before.token)
    expect(await second.one({ tell: 'wf', trial: before.trial, token: before.token, values: 1 })).toEqual({
      gone: 'another program has trial 0 now',
    })
    expect(await second.one({ tell: 'wf', trial: again.trial, token: again.token, values: 1 })).toEqual({})
  })

  it('stays the program’s while that comes back to hold it', async () => {
    world.store.studies.create(study({}, { trials: 1 }), world.nowMs)
    const [first, back, second] = [connect(), connect(), connect()]
    const { trial, token } = given(await first.one({ ask: 'wf' }))
    first.leave()
    await pass(1)
    const hold = await back.send({ hold: 'wf', trial, token })
    const waiting = await second.send({ ask: 'wf' })
    await pass(10 * RETURN_MS)
    expect([hold.answer, waiting.answer]).toEqual([undefined, undefined])
    await first.one({ tell: 'wf', trial, token, values: 1 })
    expect([hold.later(), waiting.later()]).toEqual([{ over: 'done' }, { done: '1 trial' }])
  })

  it('goes to the next program at once when the clock was set back', async () => {
    world.store.studies.create(study({}, { trials: 2 }), world.nowMs)
    const [first, second, third] = [connect(), connect(), connect()]
    const { trial, token } = given(await first.one({ ask: 'wf' }))
    await second.one({ ask: 'wf' })
    second.leave()
    await pass(1)
    await third.one({ again: 'wf', trial, token })
    await pass(-86_400_000)
    expect(given(await third.one({ ask: 'wf' })).trial).toBe(0)
    expect(given(await third.one({ ask: 'wf' })).trial).toBe(1)
  })

  it('is not given to a program that is gone while it waits', async () => {
    world.store.studies.create(study({}, { trials: 1 }), world.nowMs)
    const [first, second, third] = [connect(), connect(), connect()]
    await first.one({ ask: 'wf' })
    await second.send({ ask: 'wf' })
    second.leave()
    const waiting = await third.send({ ask: 'wf' })
    first.leave()
    await pass(1)
    await pass(RETURN_MS)
    expect(given(waiting.later()).trial).toBe(0)
  })

  it('waits after a restart of the scheduler until programs had time to come back', async () => {
    world.store.studies.create(study({}, { trials: 2 }), world.nowMs)
    const [first, second] = [connect(), connect()]
    const mine = given(await first.one({ ask: 'wf' }))
    await second.one({ ask: 'wf' })
    world.restart()
    const [back, third] = [connect(), connect()]
    await back.send({ hold: 'wf', trial: mine.trial, token: mine.token })
    const waiting = await third.send({ ask: 'wf' })
    await pass(RESTART_MS - 1)
    expect(waiting.answer).toBeUndefined()
    await pass(1)
    expect(given(waiting.later()).trial).toBe(1)
    expect(await back.one({ tell: 'wf', trial: mine.trial, token: mine.token, values: 1 })).toEqual({})
  })

  it('stays with who asked to keep it, until it is told or expires', async () => {
    world.store.studies.create(study({}, { trials: 2 }), world.nowMs)
    const person = connect()
    given(await person.one({ ask: 'wf', keep: true }))
    given(await person.one({ ask: 'wf', keep: true, expires: 3600 }))
    person.leave()
    const waiting = await connect().send({ ask: 'wf' })
    world.restart()
    const after = await connect().send({ ask: 'wf' })
    await pass(3_600_000 - 1)
    expect([waiting.answer, after.answer]).toEqual([undefined, undefined])
    await pass(1)
    expect(given(after.later()).trial).toBe(1)
    const last = await connect().send({ ask: 'wf' })
    expect(last.answer).toBeUndefined()
    await connect().one({ again: 'wf', trial: 0 })
    expect(given(last.later()).trial).toBe(0)
  })
})

it('gives 20 points to 20 trials, none twice at the same time, with programs and schedulers that are killed at any moment', async () => {
  const random = seededRandom()
  world.store.studies.create(study(), world.nowMs)
  type Program = { line: ReturnType<typeof connect>; has?: Given; waits?: { answer: ProgramAnswer | undefined } }
  let programs: Program[] = [1, 2, 3, 4].map(() => ({ line: connect() }))
  const evaluated = new Map<string, number>()
  for (let step = 0; step < 3000 && world.store.studies.get(1)?.state.kind === 'running'; step++) {
    await pass(random() * 1000)
    if (random() < 0.02) {
      world.restart()
      // Programs that have a trial come back with it; the others ask again.
      for (const program of programs) {
        program.line = connect()
        delete program.waits
        if (program.has) await program.line.send({ hold: 'wf', trial: program.has.trial, token: program.has.token })
      }
    }
    const program = programs[Math.floor(random() * 4)] as Program
    if (random() < 0.1) {
      program.line.leave()
      programs = programs.map((one) => (one === program ? { line: connect() } : one))
    } else if (program.has) {
      const { trial, token, parameters } = program.has
      const key = JSON.stringify(parameters)
      evaluated.set(key, (evaluated.get(key) ?? 0) + 1)
      expect(await program.line.one({ tell: 'wf', trial, token, values: trial })).toEqual({})
      delete program.has
    } else {
      program.waits ??= await program.line.send({ ask: 'wf' })
    }
    for (const one of programs) {
      const { answer } = one.waits ?? {}
      if (answer === undefined) continue
      delete one.waits
      if (!('parameters' in answer)) continue
      expect(programs.filter(({ has }) => has?.trial === answer.trial)).toEqual([])
      one.has = answer
    }
  }
  expect(world.store.studies.get(1)?.state).toMatchObject({ kind: 'done', reason: 'all 20 points tried' })
  expect(trials()).toHaveLength(20)
  expect([...evaluated.values()]).toEqual(Array.from({ length: 20 }, () => 1))
})
