/** A population whose jobs are a model, with checkpoints that real shells copy between the homes of two hosts. */

import { execFileSync, spawn } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  formatMove,
  formatSnapshot,
  parseCheckpointAnswer,
  studyDirectory,
} from '../../../src/scheduler/jobs/checkpoint.ts'
import { isActive } from '../../../src/scheduler/jobs/job.ts'
import { formatCleanProgram, jobsLeft } from '../../../src/scheduler/jobs/left.ts'
import type { CheckpointPort, CheckpointResult } from '../../../src/scheduler/jobs/population.ts'
import { continueStudy, stopStudy } from '../../../src/scheduler/jobs/study-change.ts'
import { ancestorsOf } from '../../../src/scheduler/study/descent.ts'
import { pointKey } from '../../../src/scheduler/study/space.ts'
import type { PbtSpec, Study, Trial } from '../../../src/scheduler/study/study.ts'
import { writeProgram } from '../../support/program.ts'
import { QueueWorld, worldSpec } from '../../support/queue-world.ts'
import { seededRandom } from '../../support/seeded-random.ts'

const HOSTS = ['m1', 'm2'].map((name) => ({ name, cpuMilli: 2000, memoryBytes: 2 ** 34, gpus: [], labels: {} }))
const LAST_STEP = 24

let directory: string
const running = new Set<Promise<unknown>>()

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-pbt-'))
  for (const { name } of HOSTS) mkdirSync(join(directory, name))
})
afterEach(async () => {
  await Promise.all(running)
  rmSync(directory, { recursive: true, force: true })
})

/** What was begun goes on when its scheduler is gone. */
function begin<T>(work: Promise<T>): Promise<T> {
  running.add(work)
  void work.finally(() => running.delete(work))
  return work
}

const runShell = (host: string, program: string): Promise<CheckpointResult> => {
  const { promise, resolve } = Promise.withResolvers<CheckpointResult>()
  const env = { PATH: `${join(directory, 'bin')}:${process.env.PATH}`, HOME: join(directory, host) }
  const child = spawn('sh', ['-s'], { env, stdio: ['pipe', 'pipe', 'pipe'] })
  const read = { out: '', err: '' }
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    read.out += text
  })
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    read.err += text
  })
  child.on('close', (code) =>
    resolve(code === 0 ? { kind: 'ok', text: read.out } : { kind: 'failed', reason: read.err }),
  )
  child.stdin.end(program)
  return promise
}

const port = (rest: Partial<CheckpointPort> = {}): CheckpointPort => ({
  run: (host, program) => begin(runShell(host, program)),
  copy: (from, to) => begin(runShell('m1', `cp -R -P '${from.path}/.' '${to.path}'`)),
  ...rest,
})

const pbt = (rest: Partial<PbtSpec> = {}): PbtSpec => ({
  population: 4,
  timeAttr: 'step',
  perturbationInterval: 4,
  quantileFraction: 0.25,
  resampleProbability: 0.25,
  mutate: ['lr=loguniform:1e-4:1e-1'],
  ...rest,
})

function createStudy(
  { store, nowMs }: QueueWorld,
  rest: Partial<PbtSpec> = {},
  parameters = ['lr=log:1e-4:1e-1'],
): number {
  const metrics = [{ name: 'acc', isMost: true }]
  const spec = { parameters, method: 'pbt', seed: 5, metrics, repeat: 1, failures: 1000, pbt: pbt(rest) }
  const job = worldSpec({ metrics: [...metrics, { name: 'step' }] })
  return store.together(() => store.studies.create({ name: 'p', user: 'ann', priority: 0, spec, job }, nowMs))
}

type Saved = { readonly step: number; readonly line: readonly number[] }

/** What the jobs do between two ticks: begin from their checkpoint, train a step, save, print. Those at their last step end. */
function train({ store, nowMs }: QueueWorld, isSaving = true): void {
  for (const job of store.active()) {
    const { state, spec } = job
    if (!isActive(state) || state.kind !== 'running') continue
    const { MUSTER_CHECKPOINT = '', MUSTER_TRIAL = '', lr = '' } = spec.environment
    const path = MUSTER_CHECKPOINT.startsWith('/')
      ? MUSTER_CHECKPOINT
      : join(directory, state.places[0]?.host ?? '', '.local/state/muster/studies', MUSTER_CHECKPOINT)
    mkdirSync(path, { recursive: true })
    const file = join(path, 'state')
    const before: Saved = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : { step: 0, line: [] }
    const number = Number(MUSTER_TRIAL)
    const line = before.line.at(-1) === number ? before.line : [...before.line, number]
    // One that begins with the checkpoint of a member at its end has nothing left to train.
    const step = Math.min(before.step + 1, LAST_STEP)
    if (isSaving) writeFileSync(file, JSON.stringify({ step, line } satisfies Saved))
    const values = { step: String(step), acc: String(-Math.abs(Math.log10(Number(lr)) + 2)) }
    const isFinal = step >= LAST_STEP
    store.results.note({ job: job.id, attempt: job.attempt, values, isFinal })
    if (isFinal)
      store.applyAll(
        [{ id: job.id, event: { kind: 'seen', rank: 0, bundle: { kind: 'ended', end: { kind: 'exit', code: 0 } } } }],
        nowMs,
      )
  }
}

async function settle(): Promise<void> {
  while (running.size > 0) await Promise.all(running)
}

/** One tick of the scheduler and of the hosts. */
async function turn(world: QueueWorld, isWaiting = true): Promise<void> {
  world.nowMs += 1000
  world.tick()
  if (isWaiting) await settle()
  else await new Promise(setImmediate)
  world.act(false)
  train(world)
}

/** The name of their directory. */
const checkpointsOf = ({ store }: QueueWorld, id = 1): string =>
  studyDirectory(store.id, store.studies.get(id) as Study)

/** Each member of a host has what the trials saved from which it descends. */
function checkLines(world: QueueWorld, trials: readonly Trial[], shared?: string): void {
  const bases =
    shared === undefined ? HOSTS.map(({ name }) => join(directory, name, '.local/state/muster/studies')) : [shared]
  const last = new Map(trials.map((trial) => [trial.member, trial.number]))
  const found = bases.flatMap((base) => {
    const own = join(base, checkpointsOf(world))
    return existsSync(own)
      ? readdirSync(own)
          .filter((name) => name.startsWith('member-'))
          .map((name) => join(own, name))
      : []
  })
  for (const path of found) {
    const saved = JSON.parse(readFileSync(join(path, 'state'), 'utf8')) as Saved
    expect(saved.line).toEqual(ancestorsOf(trials, saved.line.at(-1) ?? -1).map(({ number }) => number))
    expect(saved.line.at(-1)).toBe(last.get(Number(path.split('-').at(-1))))
    expect(saved.step).toBe(LAST_STEP)
  }
  expect(found).toHaveLength(4)
}

/** What is on hosts of copies that are not in their place. */
const copies = (world: QueueWorld): readonly string[] =>
  HOSTS.flatMap(({ name }) =>
    readdirSync(join(directory, name, '.local/state/muster/studies', checkpointsOf(world))).filter(
      (one) => one.startsWith('.copy') || one.startsWith('.old'),
    ),
  )

async function runAll(
  world: QueueWorld,
  id: number,
  onTick = () => {},
  isWaiting = () => true,
): Promise<readonly Trial[]> {
  for (let tick = 0; tick < 400 && world.store.studies.get(id)?.state.kind === 'running'; tick++) {
    onTick()
    await turn(world, isWaiting())
  }
  await settle()
  expect(world.store.studies.get(id)?.state).toMatchObject({ kind: 'done', reason: 'all members have ended' })
  return world.store.studies.trials(id)
}

describe('the checkpoint of a member', () => {
  const place = { study: 'aa-1', shared: undefined }
  const base = () => join(directory, 'm1', '.local/state/muster/studies/aa-1')
  /** After each copy the program writes again, so many times. */
  const keepWriting = (times: number) => {
    mkdirSync(join(base(), 'member-0'), { recursive: true })
    writeFileSync(join(base(), 'member-0/state'), '0')
    mkdirSync(join(directory, 'bin'))
    const file = join(base(), 'member-0/state')
    const script = `PATH=/usr/bin:/bin; cp "$@"; c=$?; [ "$(wc -c <${file})" -gt ${times} ] || printf x >>${file}; exit $c`
    writeProgram(join(directory, 'bin/cp'), script)
  }
  const snapshot = async () => await runShell('m1', formatSnapshot(place, 0, '.copy-1-ab'))

  it('is copied again while its program writes', async () => {
    keepWriting(2)
    const result = await snapshot()
    expect(result).toMatchObject({ kind: 'ok', text: expect.stringMatching(/muster-done\n$/) })
    expect(readFileSync(join(base(), '.copy-1-ab/state'), 'utf8')).toBe('0xx')
  })

  it('is given up when its program writes all the time, and nothing is left', async () => {
    keepWriting(9)
    expect(await snapshot()).toEqual({ kind: 'failed', reason: 'the program keeps writing to it\n' })
    expect(readdirSync(base())).toEqual(['member-0'])
  })

  it('is never a link, nor a copy that is not whole', async () => {
    mkdirSync(base(), { recursive: true })
    symlinkSync('/', join(base(), 'member-0'))
    expect(await snapshot()).toEqual({ kind: 'ok', text: 'none\n' })
    rmSync(join(base(), 'member-0'))
    mkdirSync(join(base(), 'member-0/a'), { recursive: true })
    writeFileSync(join(base(), 'member-0/a/b'), 'text')
    const answer = parseCheckpointAnswer(((await snapshot()) as { text: string }).text)
    const digest = (answer.kind === 'done' && answer.digest) || ''
    writeFileSync(join(base(), '.copy-1-ab/a/b'), 'tex')
    const move = async () => await runShell('m1', formatMove(place, 1, { name: '.copy-1-ab', digest }))
    expect(await move()).toEqual({ kind: 'ok', text: 'missing\n' })
    writeFileSync(join(base(), '.copy-1-ab/a/b'), 'text')
    for (const _ of [1, 2]) expect(await move()).toEqual({ kind: 'ok', text: 'muster-done\n' })
    expect(readFileSync(join(base(), 'member-1/a/b'), 'utf8')).toBe('text')
  })

  it('stays while its study is unfinished, and goes with old jobs', async () => {
    using world = new QueueWorld(HOSTS, false)
    const id = createStudy(world)
    const { store } = world
    const own = join(directory, 'm1', '.local/state/muster/studies')
    const names = [checkpointsOf(world, id), `${store.id}-7`, 'cc-1']
    for (const name of names) mkdirSync(join(own, name, 'member-0'), { recursive: true })
    const old = (name: string) =>
      execFileSync('touch', ['-d', '3 days ago', join(own, name), join(own, name, 'member-0')])
    const clean = async () => {
      const result = await runShell(
        'm1',
        formatCleanProgram(store.id, { kept: store.keptDirectories(), storages: [] }, 2),
      )
      return [result.kind === 'ok' ? result.text : result.reason, ...readdirSync(own)].toSorted()
    }
    expect(await clean()).toEqual(['removed 0\n', ...names].toSorted())
    for (const name of names) old(name)
    expect(await clean()).toEqual(['removed 1\n', 'cc-1', checkpointsOf(world, id)].toSorted())
  })

  it('is listed among what Muster left, unless a study needs it', async () => {
    const own = join(directory, 'm1', '.local/state/muster/studies')
    for (const name of ['aa-1', 'aa-2', 'bb-1', 'cc-1']) mkdirSync(join(own, name, 'member-0'), { recursive: true })
    symlinkSync('/', join(own, 'aa-9'))
    execFileSync('touch', ['-d', '40 days ago', join(own, 'cc-1/member-0'), join(own, 'cc-1')])
    const said = 'left_found() { echo "$1 $(basename "$2") $3"; }; left_sum() { :; }; limited() { "$@"; }\n'
    const list = async (kept: readonly string[] | undefined) => {
      const result = await runShell('m1', said + jobsLeft({ id: 'aa', kept, storages: [] }).find)
      const text = result.kind === 'ok' ? result.text : result.reason
      return text.split('\n').filter((line) => line.startsWith('checkpoints'))
    }
    expect(await list(['aa-2', 'aa-1-1-0'])).toEqual([
      'checkpoints aa-1 ',
      'checkpoints aa-2 unfinished studies of the queue',
      'checkpoints bb-1 checkpoints of another queue, changed within the last 30 days',
      'checkpoints cc-1 ',
    ])
    expect((await list(undefined))[0]).toBe('checkpoints aa-1 unfinished studies of the queue')
    expect(await list([])).toContain('checkpoints aa-2 ')
  })
})

describe('a population', () => {
  it('goes on from the checkpoints of its best members, on the hosts of the replaced ones', async () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(undefined, port())
    const id = createStudy(world)
    const trials = await runAll(world, id)
    checkLines(world, trials)
    const later = trials.filter(({ parent }) => parent !== undefined)
    expect(later.length).toBeGreaterThan(2)
    for (const trial of later) {
      const before = trials.findLast(({ member, number }) => member === trial.member && number < trial.number)
      expect(before?.end).toMatchObject({
        kind: 'pruned',
        reason: expect.stringMatching(/^replaced by member \d's checkpoint at step \d+: -\d/),
      })
      expect(trial.end).toMatchObject({ host: before?.end?.host })
      expect(trial.parentStep).toBeGreaterThanOrEqual(4)
    }
    expect(new Set(trials.map(({ point, repetition }) => `${pointKey(point)} ${repetition}`)).size).toBe(trials.length)
    // It is one line, whatever hosts its jobs are bound to.
    const [group, ...others] = world.store.groups(100).groups
    expect([group?.count, others]).toEqual([trials.length, []])
    expect(world.store.idsOf(group?.spec ?? 0, [])).toEqual(trials.map(({ job }) => job))
    for (const { job = 0 } of trials) expect(world.store.groupOf(job)).toBe(group?.spec)
    expect(copies(world)).toEqual([])
  })

  it('loses nothing when its scheduler is killed at any moment', async () => {
    const random = seededRandom()
    for (let run = 0; run < 3; run++) {
      rmSync(directory, { recursive: true, force: true })
      for (const { name } of HOSTS) mkdirSync(join(directory, name), { recursive: true })
      using world = new QueueWorld(HOSTS, false)
      world.restart(undefined, port())
      const id = createStudy(world)
      const kill = () => {
        if (random() < 0.4) world.restart(undefined, port())
      }
      const trials = await runAll(world, id, kill, () => random() < 0.5)
      checkLines(world, trials)
    }
  })

  it('removes what was copied for a member that came to its end meanwhile', async () => {
    using world = new QueueWorld(HOSTS, false)
    const isOpen = Promise.withResolvers<void>()
    const real = port()
    let count = 0
    world.restart(
      undefined,
      port({
        async copy(...given) {
          count += 1
          await isOpen.promise
          return await real.copy(...given)
        },
      }),
    )
    const id = createStudy(world, { perturbationInterval: 22 })
    const state = () => world.store.studies.get(id)?.state
    for (let tick = 0; tick < 400 && (count === 0 || world.store.studies.open(id).length > 0); tick++)
      await turn(world, count === 0)
    expect([count, copies(world).length, state()?.kind]).toEqual([1, 2, 'running'])
    isOpen.resolve()
    for (let tick = 0; tick < 20 && state()?.kind === 'running'; tick++) await turn(world)
    expect([copies(world), state()?.kind]).toEqual([[], 'done'])
  })

  it('copies nothing between hosts that have the same home directory', async () => {
    using world = new QueueWorld(HOSTS, false)
    rmSync(join(directory, 'm2'), { recursive: true })
    symlinkSync('m1', join(directory, 'm2'))
    const copied: string[] = []
    world.restart(
      undefined,
      port({ copy: async ({ path }) => ({ kind: 'failed', reason: String(copied.push(path)) }) }),
    )
    const id = createStudy(world)
    const trials = await runAll(world, id)
    expect(copied).toEqual([])
    expect(trials.some(({ parent }) => parent !== undefined)).toBe(true)
    checkLines(world, trials, join(directory, 'm1', '.local/state/muster/studies'))
  })

  it('keeps checkpoints in a directory that its hosts share', async () => {
    using world = new QueueWorld(HOSTS, false)
    const shared = join(directory, "it's shared")
    mkdirSync(shared)
    const copied: string[] = []
    world.restart(
      undefined,
      port({ copy: async ({ path }) => ({ kind: 'failed', reason: String(copied.push(path)) }) }),
    )
    const id = createStudy(world, { checkpoints: shared })
    // Both of this host, as nothing here proves that a directory is shared.
    const trials = await runAll(world, id)
    expect(copied).toEqual([])
    checkLines(world, trials, shared)
  })

  it('lets a member go on when a copy fails, and says why', async () => {
    using world = new QueueWorld(HOSTS, false)
    const fail = async () => ({ kind: 'failed', reason: 'no space\x1b[31m left' }) as const
    world.restart(undefined, port({ run: fail }))
    const id = createStudy(world)
    for (let tick = 0; tick < 12; tick++) await turn(world)
    const { state } = world.store.studies.get(id) ?? {}
    expect(state?.trouble).toMatch(/^member \d was not replaced: m\d: no space.* left$/)
    expect(state?.trouble).not.toContain('\x1b')
    expect(world.store.studies.trials(id).map(({ end }) => end)).toEqual([undefined, undefined, undefined, undefined])
  })

  it('lets a member go on when what was copied is not the checkpoint, and keeps nothing of it', async () => {
    using world = new QueueWorld(HOSTS, false)
    let count = 0
    const copy: CheckpointPort['copy'] = (_, to) => {
      count += 1
      return begin(runShell('m1', `echo else >'${to.path}/state'`))
    }
    world.restart(undefined, port({ copy }))
    const id = createStudy(world)
    const state = () => world.store.studies.get(id)?.state
    for (let tick = 0; tick < LAST_STEP && state()?.trouble === undefined; tick++) await turn(world)
    expect([count, copies(world)]).toEqual([1, []])
    expect(state()?.trouble).toMatch(/^member \d was not replaced: the copy of m\d on m\d is not its whole checkpoint$/)
    expect(world.store.studies.trials(id).map(({ end }) => end)).not.toContainEqual(
      expect.objectContaining({ kind: 'pruned' }),
    )
  })

  it('says that its members do not print how far they are', async () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(undefined, port())
    const id = createStudy(world, { timeAttr: 'epoch' })
    for (let tick = 0; tick < 5; tick++) await turn(world)
    expect(world.store.studies.get(id)?.state.trouble).toBe('its members print no epoch=NUMBER, so none is replaced')
  })

  it('asks --explore for parameters, and takes only those of the study', async () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(undefined, port())
    const id = createStudy(world, {
      mutate: [],
      explore: 'read text; printf \'{"lr": 0.0123, "noise": 1}\' | sed "s/, .noise.: 1//"',
    })
    for (let tick = 0; tick < 14; tick++) await turn(world)
    expect(
      world.store.studies
        .trials(id)
        .slice(4)
        .map(({ point }) => point),
    ).toContainEqual({ lr: '0.0123' })
    using other = new QueueWorld(HOSTS, false)
    other.restart(undefined, port())
    const wrong = createStudy(other, { explore: 'echo "{\\"lr\\": 5}"' })
    for (let tick = 0; tick < 12; tick++) await turn(other)
    expect(other.store.studies.get(wrong)?.state.trouble).toMatch(
      /--explore on m\d: not in the search space of the study: \{"lr":"5"\}/,
    )
    expect(other.store.studies.trials(wrong)).toHaveLength(4)
  })

  it('stores members whose --explore prints the same parameters at the same time', async () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(undefined, port())
    const id = createStudy(world, { quantileFraction: 0.5, mutate: [], explore: 'echo "{\\"lr\\": 0.0123}"' })
    const trials = await runAll(world, id)
    const alike = trials.filter(({ point }) => point.lr === '0.0123')
    expect(alike.length).toBeGreaterThan(2)
    expect(alike.map(({ repetition }) => repetition)).toEqual(alike.map((_, index) => index))
  })

  it('never runs two trials of one member, also when a job of a replaced one is tried again', async () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(undefined, port())
    const { store } = world
    const id = createStudy(world)
    const replaced = () => store.studies.trials(id).find(({ end }) => end?.kind === 'pruned')
    for (let tick = 0; tick < 40 && store.studies.trials(id).length < 5; tick++) await turn(world)
    const { job = 0, number = 0, member } = replaced() ?? {}
    store.applyAll([{ id: job, event: { kind: 'retry' } }], world.nowMs)
    await turn(world)
    await turn(world)
    expect(store.get(job)?.state.kind).toBe('cancelled')
    expect(store.studies.trial(id, number)?.end).toMatchObject({
      kind: 'pruned',
      reason: `another trial continues member ${member}`,
    })
    const study = store.studies.get(id)
    if (study !== undefined) stopStudy(store, study, { now: false }, world.nowMs)
    store.applyAll([{ id: job, event: { kind: 'retry' } }], world.nowMs)
    await turn(world)
    expect(store.get(job)?.state.kind).toBe('cancelled')
    if (study !== undefined) continueStudy(store, study, undefined, world.nowMs)
    checkLines(world, await runAll(world, id))
  })

  it('runs a member again where its checkpoint is, and finishes what was begun before its study was stopped', async () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(undefined, port())
    const id = createStudy(world)
    const { store } = world
    const hostsOf = () =>
      store.studies
        .open(id)
        .map(({ job }) => (job !== undefined && isActive(job.state) ? job.state.places[0]?.host : undefined))
    for (let tick = 0; tick < 3; tick++) await turn(world)
    const before = hostsOf()
    expect(before).toHaveLength(4)
    // All are requeued, and the other host becomes free first.
    store.applyAll(
      store.studies.open(id).map(({ job }) => ({ id: job?.id ?? 0, event: { kind: 'requeue' } })),
      world.nowMs,
    )
    world.act(false)
    for (let tick = 0; tick < 3; tick++) {
      world.down.clear()
      if (tick === 0) world.down.add('m1')
      await turn(world)
    }
    expect(hostsOf()).toEqual(before)
    for (let tick = 0; tick < 100 && store.studies.get(id)?.state.population?.replacements.length === 0; tick++)
      await turn(world)
    const state = store.studies.get(id)?.state
    const members = state?.population?.replacements.map(({ member }) => member)
    expect(members?.length).toBeGreaterThan(0)
    if (state === undefined) return
    store.studies.setState(id, { ...state, kind: 'stopped' })
    for (let tick = 0; tick < 3; tick++) await turn(world)
    expect(store.studies.get(id)?.state.population?.replacements.map(({ member }) => member)).toEqual(members)
    store.studies.setState(id, state)
    checkLines(world, await runAll(world, id))
  })

  it('takes no link for a checkpoint, and copies links as links', async () => {
    using world = new QueueWorld(HOSTS, false)
    world.restart(undefined, port())
    const id = createStudy(world)
    writeFileSync(join(directory, 'secret'), 'secret')
    await turn(world)
    for (let tick = 0; tick < 3; tick++) await turn(world)
    for (const { name } of HOSTS) {
      const own = join(directory, name, '.local/state/muster/studies', checkpointsOf(world))
      for (const member of readdirSync(own)) symlinkSync(join(directory, 'secret'), join(own, member, 'link'))
    }
    const trials = await runAll(world, id)
    checkLines(world, trials)
    expect(readFileSync(join(directory, 'secret'), 'utf8')).toBe('secret')
  })
})
