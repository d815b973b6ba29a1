/** Programs that loop themselves, with the real scheduler and its Python module, whoever of them is killed. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { programSocket } from '../../../src/cli/study/program-socket.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { PROGRAM, ROOT } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { runMuster } from '../../support/run-muster.ts'
import { seededRandom } from '../../support/seeded-random.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = requirement('python3')
const EXAMPLES = join(ROOT, 'docs', 'examples')

const NOTED = `
import os, random, sys, time
import muster_study as optuna

def note(*words):
    with open(sys.argv[1], "a") as file:
        file.write(" ".join(map(str, words)) + "\\n")

def objective(trial):
    x = trial.suggest_int("x", 1, 20)
    note("start", os.getpid(), trial.number, x)
    time.sleep(random.uniform(0.05, 0.3))
    note("end", os.getpid(), trial.number, x)
    return (x - 7) ** 2

optuna.create_study(study_name="wf").optimize(objective)
`

describe.skipIf(!canRun)('programs that ask for points', { timeout: 240_000 }, () => {
  let directory: string
  let environment: Record<string, string>
  let socket: string
  let queue: string
  let children: ChildProcess[]

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-asked-'))
    mkdirSync(join(directory, 'home'))
    queue = join(directory, 'home', '.local', 'state', 'muster', 'jobs', 'lab.db')
    socket = programSocket(queue)
    writeFileSync(join(directory, 'hosts.yaml'), 'cluster: lab\nhosts:\n  m1: { address: 127.0.0.1, port: 1 }\n')
    const { PATH = '' } = process.env
    environment = {
      HOME: join(directory, 'home'),
      PATH,
      PYTHONPATH: EXAMPLES,
      PYTHONDONTWRITEBYTECODE: '1',
      MUSTER_STUDY_SOCKET: socket,
    }
    children = []
  })
  afterEach(async () => {
    for (const child of children) await kill(child)
    rmSync(directory, { recursive: true, force: true })
  })

  const kill = async (child: ChildProcess, signal: NodeJS.Signals = 'SIGKILL') => {
    if (child.exitCode !== null || child.signalCode !== null) return
    const exited = once(child, 'exit')
    child.kill(signal)
    await exited
  }
  const start = (program: string, args: readonly string[], cwd = directory) => {
    const child = spawn(program, args, { cwd, env: environment, stdio: ['ignore', 'pipe', 'pipe'] })
    children.push(child)
    let output = ''
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding('utf8').on('data', (text: string) => {
        output += text
      })
    return Object.assign(child, { output: () => output })
  }
  const startScheduler = async () => {
    const before = inode()
    const [file = '', ...args] = [...PROGRAM, 'job', 'work', '--hosts', join(directory, 'hosts.yaml')]
    const scheduler = start(file, args, ROOT)
    await waitUntil(() => inode() !== undefined && inode() !== before, 'the socket of the scheduler')
    return scheduler
  }
  const inode = () => statSync(socket, { throwIfNoEntry: false })?.ino
  const python = (text: string, ...args: readonly string[]) => start('python3', ['-c', text, ...args])
  const muster = (...args: readonly string[]) =>
    runMuster([...args, '--hosts', join(directory, 'hosts.yaml')], { directory, environment })

  it('give 20 points to 20 trials, while schedulers and programs are killed at any moment', async () => {
    const random = seededRandom()
    await muster('study', 'create', 'wf', '--ask', '--param', 'x=int:1:20', '--metric', 'min:loss')
    using store = new JobStore(queue)
    const log = join(directory, 'log')
    writeFileSync(log, '')
    const lines = () => readFileSync(log, 'utf8').split('\n').slice(0, -1)
    const isOver = () => store.studies.find('wf')?.state.kind === 'done'
    let scheduler = await startScheduler()
    const programs = [1, 2, 3, 4].map(() => python(NOTED, log))
    for (let round = 0; round < 10 && !isOver(); round++) {
      const count = lines().length + 1 + Math.floor(random() * 4)
      await waitUntil(() => lines().length >= count || isOver(), 'trials to go on')
      if (random() < 0.4) {
        await kill(scheduler)
        scheduler = await startScheduler()
      } else {
        const at = Math.floor(random() * programs.length)
        const program = programs[at] as (typeof programs)[number]
        await kill(program)
        appendFileSync(log, `killed ${program.pid}\n`)
        programs[at] = python(NOTED, log)
      }
    }
    await waitUntil(isOver, 'the end of the study', 150_000)
    for (const program of programs) {
      if (program.exitCode === null) await once(program, 'exit')
      expect(program.exitCode, program.output()).toBe(0)
    }
    const trials = store.studies.trials(1)
    expect(trials.map(({ point }) => Number(point.x)).toSorted((a, b) => a - b)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    )
    for (const { point, end } of trials)
      expect(end).toMatchObject({ kind: 'done', values: { loss: String((Number(point.x) - 7) ** 2) } })
    // Whoever began a trial that another one had, began it when that one was dead.
    const has = new Map<string, string>()
    const dead = new Set<string>()
    for (const [word = '', pid = '', trial = ''] of lines().map((line) => line.split(' '))) {
      if (word === 'killed') dead.add(pid)
      if (word !== 'start') continue
      const before = has.get(trial)
      expect(before === undefined || dead.has(before), `trial ${trial} of ${before} went to ${pid}`).toBe(true)
      has.set(trial, pid)
    }
  })

  it('take one point at a time in a shell, and tell what they found', async () => {
    await muster(
      'study',
      'create',
      'wf',
      '--ask',
      '--param',
      'x=int:1:2',
      '--param',
      'opt=a b,c',
      '--metric',
      'max:acc',
    )
    const scheduler = await startScheduler()
    const first = await muster('study', 'ask', 'wf')
    expect(first).toMatchObject({
      exitCode: 0,
      output: expect.stringMatching(/^MUSTER_TRIAL=0 x=[12] opt=('a b'|c)\n$/),
    })
    expect((await muster('study', 'ask', 'wf', '--json')).output).toMatch(
      /^\{"version":1,"type":"trial","study":"wf","trial":1,"parameters":\{"x":[12],"opt":"(a b|c)"\}\}\n$/,
    )
    expect((await muster('study', 'tell', 'wf', '0', '0.5')).exitCode).toBe(0)
    expect((await muster('study', 'tell', 'wf', '0', '0.50')).exitCode).toBe(0)
    expect(await muster('study', 'tell', 'wf', '0', '0.6')).toMatchObject({
      exitCode: 2,
      messages: 'muster: trial 0 already has a result: acc=0.5\n',
    })
    expect((await muster('study', 'tell', 'wf', '1', '--failed', 'out of memory')).exitCode).toBe(0)
    for (const _ of [2, 3]) await muster('study', 'ask', 'wf')
    expect((await muster('study', 'show', 'wf')).output).toMatch(
      /^trials: +2 of 4 ended: 1 done, 1 failed, 2 running$[\s\S]*^running: +trial 2 on a program for \d+ s: opt=('a b'|a b|c) x=[12]$/m,
    )
    await muster('study', 'tell', 'wf', '2', 'acc=0.7')
    await muster('study', 'tell', 'wf', '3', '--again')
    expect((await muster('study', 'ask', 'wf')).output).toContain('MUSTER_TRIAL=3 ')
    await muster('study', 'tell', 'wf', '3', '1e-3')
    expect(await muster('study', 'ask', 'wf')).toMatchObject({ exitCode: 1, messages: 'muster: all 4 points tried\n' })
    using store = new JobStore(queue)
    expect(store.studies.trials(1).map(({ end }) => [end?.kind, end?.values.acc ?? end?.reason])).toEqual([
      ['done', '0.5'],
      ['failed', 'out of memory'],
      ['done', '0.7'],
      ['done', '0.001'],
    ])
    await kill(scheduler, 'SIGTERM')
    expect(readdirSync(join(queue, '..')).filter((name) => name.includes('.sock'))).toEqual([])
  })

  it('stop what is not worth going on, and tell why a trial failed', async () => {
    await muster(
      ...['study', 'create', 'wf', '--ask', '--method', 'grid', '--param', 'x=int:1:9', '--metric', 'min:loss'],
      ...['--prune', 'median'],
    )
    await startScheduler()
    const program = python(`
import muster_study as optuna
def objective(trial):
    x = trial.suggest_int("x", 1, 9)
    for step in range(1, 4):
        trial.report(x if x < 9 else 100, step)
        if trial.should_prune():
            raise optuna.TrialPruned()
    if x == 1: raise ValueError("bad batch")
    return float("nan") if x == 2 else x
optuna.load_study(study_name="wf").optimize(objective, n_trials=9)
`)
    await once(program, 'exit')
    expect(program.exitCode, program.output()).toBe(0)
    using store = new JobStore(queue)
    const ends = store.studies.trials(1).map(({ end }) => `${end?.kind} ${end?.reason ?? ''}`)
    expect(ends.slice(0, 2)).toEqual(["failed ValueError('bad batch')", 'failed its loss was not a number'])
    expect(ends.at(-1)).toMatch(/^pruned at step \d its loss 100 is worse than the median/)
  })

  it('run the objective of Optuna, with one line changed', async () => {
    const example = readFileSync(join(EXAMPLES, 'objective.py'), 'utf8')
    expect(example.split('\n').filter((line) => line.includes('muster'))).toEqual([
      'import muster_study as optuna  # instead of: import optuna',
    ])
    await muster(
      ...['study', 'create', 'wf', '--ask', '--trials', '12', '--metric', 'min:loss', '--param', 'x=float:-10:10'],
      ...['--param', 'layers=int:1:3', '--param', 'optimizer=adam,sgd', '--if', 'optimizer=sgd momentum=float:0:0.9'],
    )
    await startScheduler()
    const program = start('python3', [join(EXAMPLES, 'objective.py')])
    await once(program, 'exit')
    expect(program.exitCode, program.output()).toBe(0)
    using store = new JobStore(queue)
    const done = store.studies.trials(1).filter(({ end }) => end?.kind === 'done')
    expect(done).toHaveLength(12)
    const best = Math.min(...done.map(({ end }) => Number(end?.values.loss)))
    expect(program.output()).toMatch(/^\{'x': .*\} \d+\.\d+$/m)
    expect(Number(program.output().trim().split(' ').at(-1))).toBe(best)
  })

  it('hear of the best trials of all programs, and refuse what the study was not made for', async () => {
    await muster('study', 'create', 'wf', '--ask', '--param', 'x=int:1:9', '--metric', 'max:acc')
    await muster(
      'study',
      'create',
      'two',
      '--ask',
      '--param',
      'x=int:1:3',
      '--metric',
      'max:acc',
      '--metric',
      'min:loss',
    )
    await startScheduler()
    environment.PYTHONUNBUFFERED = '1'
    const program = python(`
import muster_study as optuna

def tried(what):
    try:
        print("got", what())
    except Exception as error:
        print("refused", error)

seen = []
def noted(study, trial):
    seen.append((trial.number, trial.params["x"], trial.value))
    if len(seen) == 3:
        study.stop()

study = optuna.create_study(study_name="wf", direction="maximize", sampler=None)
tried(lambda: study.best_value)
study.optimize(lambda trial: -abs(trial.suggest_int("x", 1, 9) - 4), callbacks=[noted], n_jobs=2)
print(len(seen), study.best_value == max(value for _, _, value in seen), study.best_trial.number in [number for number, _, _ in seen])
study.optimize(lambda trial: -abs(trial.suggest_int("x", 1, 9) - 4), timeout=0)
print(len(seen))
study.optimize(lambda trial: -abs(trial.suggest_int("x", 1, 9) - 4))
print(study.best_params, study.best_value)
tried(lambda: optuna.create_study(study_name="wf", direction="minimize"))
tried(lambda: optuna.create_study())
two = optuna.create_study(study_name="two", directions=["maximize", "minimize"])
two.optimize(lambda trial: (trial.suggest_int("x", 1, 3), trial.params["x"] % 2))
print([(trial.params["x"], trial.values) for trial in two.best_trials])
tried(lambda: two.best_trial)
tried(lambda: optuna.load_study(study_name="none").best_params)
`)
    await once(program, 'exit')
    expect(program.output().trim().split('\n')).toEqual([
      'refused no trial of the study wf is done yet',
      'n_jobs is ignored: start this program several times instead',
      '3 True True',
      '3',
      "{'x': 4} 0.0",
      "refused the study wf was made with the directions ['maximize'], not ['minimize']: change one of them",
      'refused study_name is missing: name a study that muster study create has made, or set MUSTER_STUDY',
      '[(3, [3.0, 1.0]), (2, [2.0, 0.0])]',
      'refused the study two has 2 metrics: use best_trials',
      'refused there is no study none',
    ])
  })

  it('need ten lines of Python without the module', async () => {
    const [, text = ''] = readFileSync(join(ROOT, 'docs', 'study-programs.md'), 'utf8').split('## In ten lines')
    const [, lines = ''] = /```python\n(.*?)```/s.exec(text) ?? []
    expect(lines.split('\n').filter((line) => line !== '')).toHaveLength(10)
    await muster('study', 'create', 'wf', '--ask', '--param', 'x=int:1:9', '--metric', 'min:loss')
    await startScheduler()
    const program = python(`train = lambda x: (x - 3) ** 2\n${lines}`)
    await once(program, 'exit')
    expect(program.exitCode, program.output()).toBe(0)
    using store = new JobStore(queue)
    expect(store.studies.trials(1).filter(({ end }) => end?.kind === 'done')).toHaveLength(9)
    expect(store.studies.find('wf')?.state).toMatchObject({ kind: 'done', reason: 'all 9 points tried' })
  })

  it('get a module that knows the socket of the queue', async () => {
    delete environment.MUSTER_STUDY_SOCKET
    expect((await muster('study', 'client', '--socket')).output).toBe(`${socket}\n`)
    const { output } = await muster('study', 'client')
    writeFileSync(join(directory, 'muster_study.py'), output)
    environment.PYTHONPATH = directory
    const program = python('import muster_study; print(muster_study.SOCKET)')
    await once(program, 'close')
    expect(program.output()).toBe(`${socket}\n`)
  })
})
