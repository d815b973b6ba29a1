/**
 * How good the best of the first trials is: TPE through a study, which tries nothing twice, and Optuna's TPE alone in one process,
 * with one or four trials under way. Objectives are computed here, so what is compared is the choice of points.
 */
import { spawn } from 'node:child_process'
import { systemClock } from '../../../src/base/clock.ts'
import { samplerScript } from '../../../src/ops/optuna/sampler-program.ts'
import type { JobShellHandlers } from '../../../src/scheduler/jobs/host-line.ts'
import { SamplerLine } from '../../../src/scheduler/jobs/sampler-line.ts'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { StudyPass } from '../../../src/scheduler/jobs/study-pass.ts'
import { createRandomNumbers } from '../../../src/scheduler/policies/random.ts'
import { samplerParameters } from '../../../src/scheduler/study/optuna.ts'
import type { Point } from '../../../src/scheduler/study/space.ts'
import { type StudySpec, spaceOf } from '../../../src/scheduler/study/study.ts'
import { median, type Row } from '../support/statistics.ts'
import { PeerPoints } from './peer.ts'

const TRIALS = 60
const AT_ONCE = [1, 4]

type Objective = {
  readonly name: string
  readonly parameters: readonly string[]
  /** What it is without noise. */
  value(point: Point): number
  /** Standard deviation of what is added to it. */
  readonly noise?: number
}

const numberOf = (point: Point, name: string): number => Number(point[name])

function branin(point: Point): number {
  const [x, y] = [numberOf(point, 'x'), numberOf(point, 'y')]
  const bend = y - (5.1 / (4 * Math.PI ** 2)) * x ** 2 + (5 / Math.PI) * x - 6
  return bend ** 2 + 10 * (1 - 1 / (8 * Math.PI)) * Math.cos(x) + 10
}

/** Dixon and Szegő 1978: weights, and for each of the four hollows its narrowness and its place in six dimensions. */
const HOLLOWS = [
  [1, [10, 3, 17, 3.5, 1.7, 8], [0.1312, 0.1696, 0.5569, 0.0124, 0.8283, 0.5886]],
  [1.2, [0.05, 10, 17, 0.1, 8, 14], [0.2329, 0.4135, 0.8307, 0.3736, 0.1004, 0.9991]],
  [3, [3, 3.5, 1.7, 10, 17, 8], [0.2348, 0.1451, 0.3522, 0.2883, 0.3047, 0.665]],
  [3.2, [17, 8, 0.05, 10, 0.1, 14], [0.4047, 0.8828, 0.8732, 0.5743, 0.1091, 0.0381]],
] as const

function hartmann(point: Point): number {
  return -HOLLOWS.reduce((sum, [weight, narrow, places]) => {
    const far = places.reduce((all, place, index) => {
      return all + (narrow[index] ?? 0) * (numberOf(point, `x${index + 1}`) - place) ** 2
    }, 0)
    return sum + weight * Math.exp(-far)
  }, 0)
}

const OBJECTIVES: readonly Objective[] = [
  { name: 'Branin', parameters: ['x=float:-5:10', 'y=float:0:15'], value: branin },
  { name: 'Hartmann-6', parameters: [1, 2, 3, 4, 5, 6].map((number) => `x${number}=float:0:1`), value: hartmann },
  {
    name: 'Rosenbrock in steps of 0.25 (289 points)',
    parameters: ['x=float:-2:2:0.25', 'y=float:-2:2:0.25'],
    value(point) {
      const [x, y] = [numberOf(point, 'x'), numberOf(point, 'y')]
      return (1 - x) ** 2 + 100 * (y - x ** 2) ** 2
    },
  },
  {
    name: 'Branin with noise (standard deviation 5; the value without noise of the trial that seems best)',
    parameters: ['x=float:-5:10', 'y=float:0:15'],
    value: branin,
    noise: 5,
  },
  {
    name: 'conditional: rate and momentum for one choice, another rate for the other',
    parameters: [
      'opt=sgd,adam',
      'if opt=sgd lr=log:1e-5:1',
      'if opt=sgd momentum=float:0:0.99',
      'if opt=adam rate=log:1e-5:1',
    ],
    value: (point) =>
      point.opt === 'sgd'
        ? (Math.log10(numberOf(point, 'lr')) + 2) ** 2 + 4 * (numberOf(point, 'momentum') - 0.7) ** 2 + 0.1
        : (Math.log10(numberOf(point, 'rate')) + 3) ** 2 + 0.3,
  },
]

/** Numbers of a study have six digits. */
const TIE = 0.001

type Reached = { readonly best: number; readonly repeated: number }

export async function benchPoints(path: string, seeds: number, log: (line: string) => void): Promise<readonly Row[]> {
  const rows: Row[] = []
  for (const objective of OBJECTIVES)
    for (const atOnce of AT_ONCE) {
      const ours: Reached[] = []
      const theirs: Reached[] = []
      for (let seed = 1; seed <= seeds; seed++) {
        ours.push(await reachedBy(objective, atOnce, seed, askOurs(objective, seed, path)))
        theirs.push(await reachedBy(objective, atOnce, seed, askPeer(objective, seed, path)))
      }
      log(`${objective.name}, ${atOnce} at once: ${JSON.stringify({ ours, theirs })}`)
      const [our = Number.NaN, their = Number.NaN] = [ours, theirs].map((all) => median(all.map(({ best }) => best)))
      rows.push({
        what: `${objective.name}, ${atOnce} at once: best of ${TRIALS} trials, median of ${seeds} seeds; repeated points in all`,
        ours: text(ours),
        peer: text(theirs),
        goal: 'no worse by 0.1 %',
        isReached: our <= their + Math.abs(their) * TIE,
      })
    }
  return rows
}

interface Asked extends AsyncDisposable {
  ask(): Promise<Point>
  /** `trial`: from 0, as they were asked for. */
  tell(trial: number, value: number): Promise<void>
}

async function reachedBy(
  { value, noise = 0 }: Objective,
  atOnce: number,
  seed: number,
  asked: Asked,
): Promise<Reached> {
  await using _asked = asked
  const random = createRandomNumbers(seed)
  const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random())
  const points = new Set<string>()
  let seeming = Number.POSITIVE_INFINITY
  let best = Number.NaN
  const running: Point[] = []
  for (let trial = 0; trial < TRIALS; trial++) {
    while (running.length < Math.min(atOnce, TRIALS - trial)) running.push(await asked.ask())
    const point = running.shift() ?? {}
    points.add(JSON.stringify(point))
    const real = value(point)
    const measured = real + (noise > 0 ? noise * normal() : 0)
    if (measured < seeming) [seeming, best] = [measured, real]
    await asked.tell(trial, measured)
  }
  return { best, repeated: TRIALS - points.size }
}

const text = (all: readonly Reached[]): string =>
  `${median(all.map(({ best }) => best)).toPrecision(3)}; ${all.reduce((sum, { repeated }) => sum + repeated, 0)}`

function specOf({ parameters }: Objective, seed: number, path: string): StudySpec {
  const sampler = { host: 'here', setUp: `PATH=${path}:$PATH`, options: {} }
  const rest = { method: 'tpe', seed, metrics: [{ name: 'value' }], repeat: 1, failures: TRIALS, isAsked: true }
  return { parameters, sampler, ...rest }
}

function askPeer(objective: Objective, seed: number, path: string): Asked {
  const peer = new PeerPoints(path, seed, samplerParameters(spaceOf(specOf(objective, seed, path))))
  return {
    ask: async () => await peer.ask(),
    tell: async (trial, value) => peer.tell(trial, value),
    async [Symbol.asyncDispose]() {
      peer[Symbol.dispose]()
    },
  }
}

/** Through the scheduler's own pass, as a program that asks. */
function askOurs(objective: Objective, seed: number, path: string): Asked {
  const store = new JobStore(':memory:')
  const line = Symbol('bench')
  const run = () => {
    const { after } = store.together(() => pass.run(Date.now()))
    for (const settle of after) settle()
  }
  const pass: StudyPass = new StudyPass({
    store,
    signal: new AbortController().signal,
    onAnswer: () => void setImmediate(run),
    openSampler: (study, history, onAnswer) =>
      new SamplerLine({ study, history, onAnswer, clock: systemClock, port: { open: openShell } }),
  })
  const study = 'bench'
  store.studies.create({ name: study, user: 'bench', priority: 0, spec: specOf(objective, seed, path) }, Date.now())
  const tokens: string[] = []
  return {
    async ask() {
      const answer = await pass.desk.request({ study, kind: 'ask', isKept: false }, line)
      if (!('parameters' in answer)) throw new Error(JSON.stringify(answer))
      tokens[answer.trial] = answer.token
      return answer.parameters
    },
    async tell(trial, value) {
      const told = { kind: 'values', values: value } as const
      const token = tokens[trial] ?? ''
      const answer = await pass.desk.request({ study, kind: 'tell', trial, token, told }, line)
      if ('error' in answer) throw new Error(JSON.stringify(answer))
    },
    async [Symbol.asyncDispose]() {
      pass[Symbol.dispose]()
      store[Symbol.dispose]()
    },
  }
}

function openShell({ setUp }: { readonly setUp: string }, { onText, onEnd }: JobShellHandlers) {
  const child = spawn('/bin/sh', { stdio: ['pipe', 'pipe', 'ignore'] })
  child.stdout.setEncoding('utf8').on('data', onText)
  child.once('close', () => onEnd('it ended'))
  child.stdin.on('error', () => {})
  child.stdin.write(samplerScript(setUp))
  return {
    write: (words: string) => void child.stdin.write(words),
    [Symbol.dispose]: () => void child.kill('SIGKILL'),
  }
}
