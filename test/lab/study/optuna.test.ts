/** Real Optuna: its samplers as programs that are killed, and a study of which Optuna chooses the points on a host over SSH. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { pythonSetUp } from '../../../src/cli/job/environment.ts'
import { samplerScript } from '../../../src/ops/optuna/sampler-program.ts'
import { SamplerLine } from '../../../src/scheduler/jobs/sampler-line.ts'
import { canonicalPoint, type Point, pointKey } from '../../../src/scheduler/study/space.ts'
import { type StudySpec, spaceOf, type Trial, type TrialEnd } from '../../../src/scheduler/study/study.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { ENVIRONMENT, ENVIRONMENT_PLACE, pythonEnvironment } from '../cluster/python-environment.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ssh',
  'ip',
  'nsenter',
  'flock',
  'setsid',
  'python environments',
)

const BUILD_MS = 300_000
const REAL = ['lr=log:1e-5:0.1', 'size=int:10:200:10', 'x=float:-1.0:1.0:0.1']
const FINITE = ['size=int:1:5', 'x=float:0.1:0.4:0.1', 'opt=adam,sgd']
const CONDITIONAL = ['lr=log:1e-5:0.1', 'opt=adam,sgd', 'if opt=sgd momentum=float:0:0.9', 'if opt=adam eps=1e-8,1e-4']

describe.skipIf(!canRun)('samplers of Optuna', { timeout: 120_000 }, () => {
  let path: string
  const studies: Study[] = []

  beforeAll(async () => {
    path = join(await pythonEnvironment('optuna'), 'venv', 'bin')
  }, BUILD_MS)
  afterEach(async () => {
    for (const study of studies.splice(0)) await study.end()
  })

  /** A study in memory, and the program that suggests its points in a shell of this machine. */
  class Study {
    readonly trials: Trial[] = []
    readonly line: SamplerLine
    child: ChildProcess | undefined
    #answer = Promise.withResolvers<void>()

    constructor(
      spec: Partial<StudySpec>,
      setUp = `PATH=${path}:$PATH`,
      options: Readonly<Record<string, string>> = {},
    ) {
      const whole: StudySpec = {
        parameters: REAL,
        method: 'tpe',
        seed: 3,
        metrics: [{ name: 'loss' }],
        repeat: 1,
        failures: 5,
        sampler: { host: 'here', setUp, options },
        ...spec,
      }
      this.spec = whole
      this.line = new SamplerLine({
        study: { spec: whole },
        history: () => this.trials,
        onAnswer: () => {
          this.#answer.resolve()
          this.#answer = Promise.withResolvers()
        },
        clock: systemClock,
        port: {
          open: (place, { onText, onEnd }) => {
            const child = spawn('sh', ['-s'], { stdio: ['pipe', 'pipe', 'ignore'], detached: true })
            this.child = child
            child.stdout.setEncoding('utf8').on('data', onText)
            child.stdin.on('error', () => undefined)
            child.on('close', () => onEnd('it ended'))
            child.stdin.write(samplerScript(place.setUp))
            return { write: (text) => void child.stdin.write(text), [Symbol.dispose]: () => child.stdin.end() }
          },
        },
      })
      studies.push(this)
    }

    readonly spec: StudySpec

    async suggestion(): Promise<Readonly<Record<string, string>>> {
      for (;;) {
        const answer = this.line.poll()
        if (answer.kind === 'raw') return answer.values
        if (answer.kind === 'trouble') throw new Error(answer.reason)
        await this.#answer.promise
      }
    }

    /** A new point, which has become a trial; undefined: only old ones were suggested. */
    async next(): Promise<Trial | undefined> {
      for (let attempt = 0; attempt < 200; attempt++) {
        const point = canonicalPoint(spaceOf(this.spec), await this.suggestion())
        if (point === undefined) throw new Error('the suggestion is not in the space')
        const old = this.trials.find((trial) => pointKey(trial.point) === pointKey(point))
        if (old === undefined) return this.take(point)
        this.line.repeat(old.end && [lossOf(point)])
      }
      return undefined
    }

    take(point: Point): Trial {
      const trial = { number: this.trials.length, point, repetition: 0, job: undefined, end: undefined }
      this.trials.push(trial)
      this.line.take(trial)
      return trial
    }

    tell(trial: Trial, kind: TrialEnd['kind'] = 'done'): void {
      const values = Object.fromEntries(this.spec.metrics.map(({ name }) => [name, String(lossOf(trial.point))]))
      const ended = { ...trial, end: { kind, values, endedMs: 1 } }
      this.trials[trial.number] = ended
      this.line.tell(ended)
    }

    /** What has been added without the sampler. */
    fill(count: number): void {
      const space = spaceOf(this.spec)
      for (let number = 0; number < count; number++) {
        const raw = { lr: String(1e-5 * (1 + number)), size: String(10 + 10 * (number % 20)), x: '0.5' }
        const point = canonicalPoint(space, raw) ?? {}
        const end = { kind: 'done', values: { loss: String(lossOf(point)) }, endedMs: 1 } as const
        this.trials.push({ number, point, repetition: 0, job: undefined, end })
      }
    }

    stop(): void {
      process.kill(-(this.child?.pid ?? unreachable()), 'SIGSTOP')
    }

    /** The program and its shell. */
    async kill(): Promise<void> {
      const { pid } = this.child ?? {}
      if (this.child === undefined || pid === undefined) return
      const closed = once(this.child, 'close')
      process.kill(-pid, 'SIGKILL')
      await closed
    }

    /** Its shell and its program end by themselves. */
    async end(): Promise<void> {
      const child = this.child
      const closed = child && child.exitCode === null && child.signalCode === null ? once(child, 'close') : undefined
      this.line[Symbol.dispose]()
      await closed
    }
  }

  function unreachable(): never {
    throw new Error('no point')
  }

  function lossOf(point: Point): number {
    return Math.abs(Number(point.lr ?? 0.01) - 0.01) + Math.abs(Number(point.size ?? 3) - 3) + Number(point.x ?? 0) ** 2
  }

  it.each([
    ['tpe', REAL],
    ['optuna:TPESampler', CONDITIONAL],
    ['optuna:CmaEsSampler', REAL],
    ['optuna:NSGAIISampler', CONDITIONAL],
    ['optuna:QMCSampler', REAL],
    ['optuna:RandomSampler', CONDITIONAL],
    ['optuna:BruteForceSampler', FINITE],
    ['optuna:GridSampler', FINITE],
  ])('%s goes on after its program was killed, with trials that run, failed and were pruned', async (method, parameters) => {
    const study = new Study({ method, parameters })
    for (const kind of ['done', 'failed', 'done', 'pruned', 'done', 'done', 'done', 'done', 'done', 'done'] as const) {
      const [trial] = [await study.next(), await study.next()]
      if (trial === undefined) return unreachable()
      study.tell(trial, kind)
      if (kind === 'pruned') await study.kill()
      // With its suggestion under way: it is stopped, so that it cannot answer before it is killed.
      if (trial.number === 12) {
        study.stop()
        study.line.poll()
        await study.kill()
        await expect(study.suggestion()).rejects.toThrow('it ended')
        await waitUntil(() => study.line.poll().kind !== 'trouble', 'it begins again')
      }
    }
    expect(new Set(study.trials.map(({ point }) => pointKey(point))).size).toBe(20)
    for (const { point } of study.trials) {
      expect(point.momentum !== undefined).toBe(point.opt === 'sgd' && parameters === CONDITIONAL)
      expect(point.eps !== undefined).toBe(point.opt === 'adam' && parameters === CONDITIONAL)
    }
  })

  it.each([
    'tpe',
    'optuna:BruteForceSampler',
    'optuna:GridSampler',
    'optuna:RandomSampler',
    'optuna:NSGAIISampler',
  ])('%s tries 40 points of 40 with few repeats', async (method) => {
    const study = new Study({ method, parameters: FINITE })
    for (let count = 0; count < 40; count++) {
      const trial = await study.next()
      if (trial === undefined) break
      study.tell(trial)
    }
    expect(study.trials.length).toBeGreaterThanOrEqual(30)
    expect(new Set(study.trials.map(({ point }) => pointKey(point))).size).toBe(study.trials.length)
  })

  it.each([
    'tpe',
    'optuna:CmaEsSampler',
    'optuna:NSGAIISampler',
    'optuna:QMCSampler',
  ])('%s is told 1000 trials at once, and more later', async (method) => {
    const study = new Study({ method })
    study.fill(1000)
    for (let count = 0; count < 5; count++) {
      const trial = await study.next()
      if (trial !== undefined) study.tell(trial)
    }
    expect(study.trials).toHaveLength(1005)
  })

  it('optimises several metrics, and takes the place of suggestions', async () => {
    const metrics = [{ name: 'loss' }, { name: 'acc', isMost: true }]
    for (const method of ['tpe', 'optuna:NSGAIISampler', 'optuna:NSGAIIISampler']) {
      const study = new Study({ method, metrics, parameters: CONDITIONAL })
      for (let count = 0; count < 30; count++) {
        await study.suggestion()
        const sgd = { lr: '0.01', opt: 'sgd', momentum: String(count / 100) }
        const adam = { lr: String(count / 1000 + 0.001), opt: 'adam', eps: '1e-8' }
        study.tell(study.take(canonicalPoint(spaceOf(study.spec), count % 2 ? sgd : adam) ?? {}), 'done')
      }
      expect(study.trials).toHaveLength(30)
    }
  })

  it('finds a better point than the first ones', async () => {
    const study = new Study({ parameters: ['x=float:-10:10', 'y=float:-10:10'] }, undefined, { n_startup_trials: '8' })
    const losses: number[] = []
    for (let count = 0; count < 60; count++) {
      const trial = await study.next()
      if (trial === undefined) break
      const loss = (Number(trial.point.x) - 2) ** 2 + (Number(trial.point.y) + 3) ** 2
      losses.push(loss)
      study.line.tell({ ...trial, end: { kind: 'done', values: { loss: String(loss) }, endedMs: 1 } })
    }
    expect(Math.min(...losses)).toBeLessThan(Math.min(...losses.slice(0, 8)))
    expect(Math.min(...losses)).toBeLessThan(2)
  })

  it.each([
    [{ method: 'optuna:NopeSampler' }, {}, /no NopeSampler; it has .*CmaEsSampler, .*TPESampler/],
    [{ method: 'optuna:nsgaii' }, {}, /no nsgaii; it has/],
    [{}, { foo: '1' }, /TPESampler has no option foo; it has .*n_startup_trials/],
    [{}, { n_startup_trials: '1.5' }, /n_startup_trials must be a whole number/],
    [{ method: 'optuna:CmaEsSampler' }, { sigma0: 'x' }, /sigma0 must be a number/],
    [{}, { gamma: 'print' }, /TPESampler has no option gamma/],
    [{ method: 'optuna:GridSampler' }, {}, /GridSampler needs a space without conditions/],
    [{ method: 'optuna:BruteForceSampler' }, {}, /BruteForceSampler/],
  ])('refuses what the sampler cannot do: %j %j', async (spec, options, words) => {
    await expect(new Study(spec, undefined, options).suggestion()).rejects.toThrow(words)
  })

  it('sets options, and runs in a container', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-optuna-'))
    try {
      const program = '#!/bin/sh\n[ "$1 $2 $3" = "exec -i train" ] && shift 3 && exec "$@"\n'
      writeFileSync(join(directory, 'docker'), program, { mode: 0o755 })
      const container = pythonSetUp({ kind: 'image', name: 'any', container: 'train' })
      const setUp = `PATH=${directory}:${path}:$PATH\n${container}`
      const options = { popsize: '8', sigma0: '1', with_margin: 'true', x0: "{'lr': 0.01, 'size': 50, 'x': 0}" }
      const study = new Study({ method: 'optuna:CmaEsSampler' }, setUp, options)
      for (let count = 0; count < 3; count++) study.tell((await study.next()) ?? unreachable())
    } finally {
      rmSync(directory, { recursive: true })
    }
  })

  it('says that Optuna, the environment or Python is missing', async () => {
    await expect(new Study({}, 'PATH=/usr/bin:/bin').suggestion()).rejects.toThrow('Optuna is not installed on here.')
    await expect(new Study({}, '. /none/bin/activate').suggestion()).rejects.toThrow(
      /cannot activate its environment on here: .*\/none\/bin\/activate/,
    )
    await expect(new Study({}, 'PATH=/none').suggestion()).rejects.toThrow('there is no python3 on here')
  })
})

describe.skipIf(!canRun)('a study with Optuna on a host', { timeout: 200_000 }, () => {
  let lab: Lab
  let file: string
  const drivers: ChildProcess[] = []

  const argv = (...args: readonly string[]) => [...PROGRAM, '--hosts', file, '--connect-timeout', '10', ...args]
  const muster = async (...args: readonly string[]) => await lab.run(argv(...args), { timeoutMs: 60_000 })

  beforeAll(async () => {
    lab = await startLab({ count: 2, mounts: { [ENVIRONMENT_PLACE]: await pythonEnvironment('optuna') } })
    file = join(lab.directory, 'study.yaml')
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const environment = `environment:\n  venv: { path: ${ENVIRONMENT} }\n`
    writeFileSync(
      file,
      `cluster: study\ndefaults: { user: root, resources: { cpu: 4 } }\nhosts:\n${hosts}${environment}`,
    )
  }, BUILD_MS)
  afterEach(async () => {
    for (const child of drivers.splice(0)) {
      if (child.exitCode !== null || child.signalCode !== null) continue
      const ended = once(child, 'close')
      child.kill('SIGKILL')
      await ended
    }
  })
  afterAll(async () => await lab?.stop())

  const work = () => {
    const [program = '', ...args] = lab.command(argv('job', 'work', '--until-empty'))
    const child = spawn(program, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'pipe'] })
    drivers.push(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    return { child, ended: once(child, 'close'), output: () => output }
  }

  it('tries 20 points once each, while its program and the scheduler are killed', async () => {
    const [first] = lab.hosts
    if (first === undefined) throw new Error('no host')
    const options = ['--method', 'tpe', '--metric', 'loss', '--at-once', '4', '--cpu', '0.5', '--seed', '1']
    const created = await muster(
      ...['study', 'create', 'wf', '--param', 'size=int:1:5', '--param', 'opt=a,b,c,d', ...options],
      ...['--', 'echo "$size $opt" >> ran; echo loss=$size'],
    )
    expect(created).toMatchObject({ code: 0 })
    const dones = (output: string) => output.split('\n').filter((line) => line.includes(': done on')).length
    const { child, output, ended } = work()
    await waitUntil(() => dones(output()) >= 5, 'trials are done', 60_000)
    // Its parent is the shell of Muster; sshd and the jobs go on.
    expect((await first.exec('pkill -9 -f "[i]mport ast, inspect"')).code).toBe(0)
    await waitUntil(() => dones(output()) >= 10, 'more trials are done', 60_000)
    child.kill('SIGKILL')
    await ended
    const second = work()
    await second.ended
    const ran = (await Promise.all(lab.hosts.map(async (host) => (await host.exec('cat ran')).stdout))).join('')
    const points = ran.trim().split('\n')
    expect(points).toHaveLength(20)
    expect(new Set(points).size).toBe(20)
    expect((await muster('study', 'show', 'wf')).stdout).toContain('done: all 20 points tried')
    const left = async () => (await first.exec('pgrep -f "[i]mport ast, inspect"')).code !== 0
    await waitUntil(left, 'Optuna has ended')
  })
})
