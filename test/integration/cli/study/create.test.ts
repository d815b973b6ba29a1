/** `muster study create` and `muster sweep`: what they store, show and refuse. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { unusedWords } from '../../../../src/cli/study/prepare.ts'
import { JobStore } from '../../../../src/scheduler/jobs/store.ts'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-study-create-'))
  writeFileSync(
    join(directory, 'hosts.yaml'),
    'cluster: lab\nhosts: { m1: { transport: local, resources: { cpu: 4, gpu: 2, memory: 8GiB } } }\n',
  )
})
afterEach(() => rmSync(directory, { recursive: true }))

const muster = (...args: readonly string[]) => runMuster(args, { directory, now: () => 1000 })
const create = (...options: readonly string[]) => muster('study', 'create', 'wf', ...options)
const openStore = () => new JobStore(join(directory, '.local', 'state', 'muster', 'jobs', 'lab.db'))
const studyOf = (name: string) => {
  using store = openStore()
  const study = store.studies.find(name)
  return study && { ...study, job: store.studies.jobOf(study) }
}

const NO_SCHEDULER = 'muster: no scheduler running. Run: muster job work\n'

describe('muster study create', () => {
  test('stores a study and says in one line what it will do', async () => {
    const points = ['--param', 'size=int:10:200:10', '--trials', '12']
    expect(await create(...points, '--metric', 'max:acc', '--record', 'loss', '--', 'train $size')).toEqual({
      exitCode: 0,
      output: 'wf: 20 points, random, up to 12 trials. See: muster study show wf\n',
      messages: NO_SCHEDULER,
    })
    expect(studyOf('wf')).toMatchObject({
      spec: { parameters: ['size=int:10:200:10'], method: 'random', metrics: [{ name: 'acc', isMost: true }] },
      state: { kind: 'running', trials: 12 },
      job: { name: 'wf', command: 'train $size', metrics: [{ name: 'acc', isMost: true }, { name: 'loss' }] },
    })
  })

  test.each([
    [['--param', 'n=int:1:3', '--method', 'grid', '--repeat', '2'], '3 points, each 2 times, grid, all of them'],
    [['--param', 'n=float:0:1', '--time', '60'], '1 parameter, random, for 60 s'],
    [['--param', 'n=1,2', '--trials', '9'], '2 points, random, all of them'],
  ])('says how far %j goes', async (options, plan) => {
    expect((await create(...options, '--', 'echo $n')).output).toBe(`wf: ${plan}. See: muster study show wf\n`)
  })

  test('shows the space, the first points and the place with --dry-run, and stores nothing', async () => {
    const space = ['--param', 'lr=log:1e-4:1e-1', '--param', 'opt=adam,sgd', '--if', 'opt=sgd m=float:0:0.9']
    const { exitCode, output, messages } = await create(
      ...[...space, '--trials', '2', '--seed', '1', '--gpu', '1', '--dry-run', '--', "train '$lr' $opt $m"],
    )
    expect([exitCode, messages]).toEqual([0, ''])
    expect(output).toBe(`study:     wf: 3 parameters, random, up to 2 trials
searches:  lr   any number from 0.0001 to 0.1, on a log scale
           opt  adam, sgd
           m    any number from 0 to 0.9, if opt is sgd
first:     trial 0  lr=0.000747566 opt=sgd m=0.682068
           trial 1  lr=0.0004194 opt=adam
runs:      lr=0.000747566 opt=sgd m=0.682068 sh -c 'train '\\''$lr'\\'' $opt $m'
now:       m1, GPU 0
`)
    expect(studyOf('wf')).toBeUndefined()
  })

  test('says with --dry-run that a trial does not fit', async () => {
    const { exitCode, output } = await create('--param', 'a=1,2', '--gpu', '4', '--dry-run', '--', 'echo $a')
    expect(exitCode).toBe(1)
    expect(output).toContain('now:       it does not fit right now\n')
    const json = await create('--param', 'a=1,2', '--method', 'grid', '--dry-run', '--json', '--', 'echo $a')
    expect(JSON.parse(json.output)).toMatchObject({
      ...{ type: 'study', study: 'wf', points: 2, fits: true, first: [{ a: '1' }, { a: '2' }] },
      ...{ places: [{ host: 'm1', devices: [] }], command: "a=1 sh -c 'echo $a'" },
    })
  })

  test('starts the ranks of each trial with a launcher', async () => {
    const launch = ['--launch', 'torchrun', '--bundles', '2', '--gpu', '1']
    expect((await create('--param', 'lr=0.1,0.2', ...launch, '--', 'train.py --lr $lr')).exitCode).toBe(0)
    expect(studyOf('wf')?.job).toMatchObject({ launch: { kind: 'torchrun' }, bundles: 2 })
  })

  test.each([
    [['--metric', 'loss', '--', 'a'], 'the study has no parameter\nAdd one, such as'],
    [['--param', 'a=1,2', '--param', 'a=3,4', '--', 'x $a'], 'duplicate parameter: a\n'],
    [
      ['--param', 'a=folat:1:2', '--', 'x $a'],
      'muster: --param a=folat:1:2: unknown kind: folat; did you mean float?\nKinds: int, float, log',
    ],
    [['--param', 'a=loguniform:1e-5:1e-1', '--', 'x $a'], 'unknown kind: loguniform\nWrite a=log:1e-5:1e-1.\n'],
    [['--param', 'b=1,2', '--if', 'b=1 a=choice:8,16', '--', 'x $a'], '--if b=1 a=choice:8,16: unknown kind: choice\n'],
    [['--param', 'a=1:2', '--', 'x $a'], 'the kind of the range is missing\nWrite int:1:2, float:1:2 or log:1:2.\n'],
    [
      ['--param', 'a=float:2:1', '--', 'x $a'],
      'muster: --param a=float:2:1: the first number must be less than the second',
    ],
    [['--param', 'PATH=a,b', '--', 'x'], '--param PATH: the job itself needs a variable of this name\n'],
    [['--param', 'a=1,2', '--env', 'a=3', '--', 'x $a'], 'a is both a parameter and a variable of --env\n'],
    [['--param', 'a=1,2', '--if', 'b=1 c=1,2', '--', 'x'], 'c depends on b, and there is no such parameter\n'],
    [
      ['--param', 'a=1,2', '--if', 'c=1 b=1,2', '--if', 'a=1 c=1,2', '--', 'x'],
      'b depends on c, which comes later\nPut the --if of c before it.\n',
    ],
    [
      ['--param', 'a=1,2', '--method', 'tpee', '--', 'x $a'],
      'unknown method: tpee; did you mean tpe?\nMethods: grid, ',
    ],
    [['--param', 'a=1,2', '--method', 'tpe', '--', 'x $a'], '--method tpe needs --metric: what should it optimise?\n'],
    [
      ['--param', 'a=float:0:1', '--method', 'grid', '--', 'x $a'],
      'tries all points, but a has infinitely many values\nGive it',
    ],
    [
      ['--param', 'a=float:0:1', '--', 'x $a'],
      '--trials is missing: a has infinitely many values, so the study would never end',
    ],
    [['--param', 'a=1,2', '--prune', 'median', '--', 'x $a'], '--prune needs exactly one --metric, and there are 0\n'],
    [['--param', 'a=1,2', '--step-metric', 'epoch', '--', 'x $a'], '--step-metric needs --prune\n'],
    [['--param', 'a=1,2', '--engine', 'ray', '--', 'x $a'], 'hosts.yaml declares no Ray cluster\n'],
    [['--param', 'a=1,2'], 'the command is missing\nThe first word (wf) is the name of the study. Write: muster study'],
  ])('refuses %j and says what to do', async (options, words) => {
    const { exitCode, messages, output } = await create(...options)
    expect([exitCode === 2 || exitCode === 3, output]).toEqual([true, ''])
    expect(messages).toContain(words)
  })

  test('refuses a name that is taken or unusable', async () => {
    await create('--param', 'a=1,2', '--', 'x $a')
    expect((await create('--param', 'a=1,2', '--', 'x $a')).messages).toBe(
      'muster: a study named wf already exists\nChoose another name. To continue that one: muster study more wf\n',
    )
    const wrong = await muster('study', 'create', '\x1b[2J', '--param', 'a=1,2', '--', 'x $a')
    expect(wrong.messages).toContain('muster: not a valid study name: \\x1b[2J\n')
  })
})

test.each([
  [['train $lr $' + '{opt}'], []],
  [['train $lr_max $opt'], ['$lr does not appear in the command']],
  [['train'], ['$lr or $opt does not appear']],
  [
    ['train', '$lr', '$opt'],
    ["no shell replaces $lr or $opt, because the command is several words. Quote the whole command: 'train $lr $opt'"],
  ],
  [['/bin/bash', '-c', 'train $lr $opt'], []],
])('warns of parameters that %j does not use', (words, warnings) => {
  const found = unusedWords(words, ['lr', 'opt'])
  expect(found).toHaveLength(warnings.length)
  warnings.forEach((warning, index) => {
    expect(found[index]).toContain(warning)
  })
})

describe('muster sweep', () => {
  test('tries every combination of exact values, and takes its name from the program', async () => {
    const grid = ['--grid', 'lr=0.1:0.3:0.1', '--grid', 'size=8,16', '--metric', 'loss']
    expect(await muster('sweep', ...grid, '--', 'python3 -u bin/train.py $lr $size')).toEqual({
      exitCode: 0,
      output: 'train: 6 points, grid, all of them. See: muster study show train\n',
      messages: NO_SCHEDULER,
    })
    expect(studyOf('train')?.spec).toMatchObject({ method: 'grid', parameters: ['lr=float:0.1:0.3:0.1', 'size=8,16'] })
    await muster('sweep', ...grid, '--', 'OMP=1 ./train.py $lr $size')
    expect(studyOf('train-2')).toBeDefined()
    await muster('sweep', ...grid, '--name', 'mine', '--', 'train $lr $size')
    expect(studyOf('mine')).toBeDefined()
    await muster('sweep', ...grid, '--', '$lr $size')
    expect(studyOf('sweep')).toBeDefined()
  })

  test.each([
    [['--', 'x'], 'the sweep has no parameter\nAdd one, such as --grid lr=0.1,0.2'],
    [['--grid', 'lr', '--', 'x'], '--grid lr: write it as lr=0.1,0.2 or lr=0.1:1.0:0.1\n'],
    [['--grid', 'lr=1:2', '--', 'x'], '--grid lr=1:2: from:to:step must be three plain numbers\n'],
    [['--param', 'lr=float:0:1', '--', 'x $lr'], '--method grid tries all points, but lr has infinitely many values\n'],
    [['--grid', 'lr=1,2', '--name', '-x', '--', 'x $lr'], 'not a valid study name: -x\n'],
  ])('refuses %j', async (options, words) => {
    const { exitCode, messages } = await muster('sweep', ...options)
    expect(exitCode).toBe(2)
    expect(messages).toContain(words)
  })
})
