/** What the scheduler says to a program that suggests points, and what it makes of its answers. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { JobShellHandlers } from '../../../../src/scheduler/jobs/host-line.ts'
import { SamplerLine } from '../../../../src/scheduler/jobs/sampler-line.ts'
import type { StudySpec, Trial, TrialEnd } from '../../../../src/scheduler/study/study.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

type Message = { readonly op: string; readonly [name: string]: unknown }

const SPEC: StudySpec = {
  parameters: ['lr=log:1e-5:0.1', 'size=int:10:200:10', 'opt=adam,sgd', 'if opt=sgd momentum=float:0.0:0.9:0.1'],
  method: 'tpe',
  seed: 7,
  metrics: [{ name: 'acc', isMost: true }],
  repeat: 1,
  failures: 3,
  prune: { rule: 'median', stepMetric: 'epoch', fromStep: 1, fromTrials: 5 },
  sampler: { host: 'm1', environment: 'train', setUp: '', options: { n_startup_trials: '5' } },
}

const POINT = { lr: '0.001', size: '10', opt: 'adam' }

function trial(number: number, kind?: TrialEnd['kind'], values: TrialEnd['values'] = {}): Trial {
  const end = kind === undefined ? undefined : { kind, values, endedMs: 1 }
  return { number, point: POINT, repetition: 0, job: number, end }
}

const ended = (number: number, kind: TrialEnd['kind'], values: TrialEnd['values'] = {}) =>
  trial(number, kind, values) as Trial & { readonly end: TrialEnd }

/** One program after the other; the test says what they print. */
class Programs {
  readonly opened: { readonly handlers: JobShellHandlers; readonly told: Message[]; isOpen: boolean }[] = []
  failure: Error | undefined

  readonly open = (_: unknown, handlers: JobShellHandlers) => {
    if (this.failure !== undefined) throw this.failure
    const program = { handlers, told: [] as Message[], isOpen: true }
    this.opened.push(program)
    return {
      write: (text: string) => {
        expect(text.endsWith('\n')).toBe(true)
        program.told.push(JSON.parse(text))
      },
      [Symbol.dispose]: () => {
        program.isOpen = false
      },
    }
  }

  get last() {
    const program = this.opened.at(-1)
    if (program === undefined) throw new Error('no program was started')
    return program
  }

  print(...messages: readonly object[]): void {
    this.last.handlers.onText(messages.map((message) => `${JSON.stringify(message)}\n`).join(''))
  }

  /** Ready for questions. */
  begin(): void {
    this.print({ op: 'hello' }, { op: 'ready', optuna: '5.0.0' })
  }

  answer(point: unknown = POINT): void {
    this.print({ op: 'point', id: this.told('ask', 'repeat').at(-1)?.id, point })
  }

  told(...ops: readonly string[]): readonly Message[] {
    return this.last.told.filter(({ op }) => ops.includes(op))
  }
}

describe('the line to a sampler', () => {
  let programs: Programs
  let clock: ManualClock
  let line: SamplerLine
  let answers: number
  let history: readonly Trial[]

  const make = (spec: StudySpec = SPEC) =>
    new SamplerLine({
      study: { spec },
      history: () => history,
      onAnswer: () => {
        answers++
      },
      port: programs,
      clock,
    })

  beforeEach(() => {
    programs = new Programs()
    clock = new ManualClock()
    answers = 0
    history = []
    line = make()
  })

  it('tells the program the whole study when it says hello, and nothing before', () => {
    expect(line.poll()).toEqual({ kind: 'wait' })
    history = [
      trial(0, 'done', { acc: '0.5' }),
      trial(1, 'failed'),
      trial(2, 'pruned', { acc: '0.25', epoch: '3' }),
      trial(3),
      trial(4, 'done', { acc: 'inf' }),
      trial(5, 'done', { acc: 'nan' }),
    ]
    line.tell(ended(1, 'failed'))
    expect(programs.last.told).toEqual([])
    programs.print({ op: 'hello' })
    expect(programs.last.told).toEqual([
      {
        op: 'start',
        sampler: 'TPESampler',
        options: { n_startup_trials: '5' },
        seed: 7,
        directions: ['maximize'],
        parameters: [
          { name: 'lr', kind: 'float', low: 1e-5, high: 0.1, log: true },
          { name: 'size', kind: 'int', low: 10, high: 200, step: 10 },
          { name: 'opt', kind: 'choice', values: ['adam', 'sgd'] },
          {
            name: 'momentum',
            kind: 'float',
            low: 0,
            high: 0.9,
            step: 0.1,
            when: { name: 'opt', values: ['sgd'] },
          },
        ],
        trials: [
          { number: 0, point: POINT, state: 'done', values: [0.5] },
          { number: 1, point: POINT, state: 'failed', values: [null] },
          { number: 2, point: POINT, state: 'pruned', values: [0.25], steps: [[3, 0.25]] },
          { number: 3, point: POINT, state: 'open' },
          { number: 4, point: POINT, state: 'done', values: ['Infinity'] },
          { number: 5, point: POINT, state: 'done', values: [null] },
        ],
      },
    ])
    line.tell(ended(3, 'done', { acc: '0.75' }))
    programs.print({ op: 'ready' })
    expect(programs.last.told.slice(1)).toEqual([
      { op: 'tell', number: 3, point: POINT, state: 'done', values: [0.75] },
      { op: 'ask', id: 1 },
    ])
  })

  it('asks once, keeps the suggestion until it is taken, and then asks again', () => {
    line.poll()
    programs.begin()
    line.poll()
    expect(programs.told('ask')).toEqual([{ op: 'ask', id: 1 }])
    programs.answer()
    expect(answers).toBe(1)
    expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 0 })
    expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 0 })
    line.take(trial(8))
    expect(programs.told('take')).toEqual([{ op: 'take', id: 1, number: 8, point: POINT }])
    line.take(trial(9))
    expect(programs.told('take')).toHaveLength(1)
    expect(programs.told('ask')).toHaveLength(1)
    expect(line.poll()).toEqual({ kind: 'wait' })
    expect(programs.told('ask').at(-1)).toEqual({ op: 'ask', id: 2 })
  })

  it('asks again for a suggestion that was tried', () => {
    line.poll()
    programs.begin()
    programs.answer()
    line.repeat([0.5])
    expect(line.poll()).toEqual({ kind: 'wait' })
    programs.answer({ lr: '0.1' })
    line.repeat(undefined)
    expect(programs.told('repeat')).toEqual([
      { op: 'repeat', id: 1, values: [0.5] },
      { op: 'repeat', id: 1, values: null },
    ])
    programs.answer({ lr: '0.2' })
    expect(line.poll()).toEqual({ kind: 'raw', values: { lr: '0.2' }, repeats: 2 })
    expect(programs.told('ask')).toHaveLength(1)
  })

  it('asks for several at once, and counts the repetitions of each', () => {
    line.poll(3)
    programs.begin()
    expect(programs.told('ask').map(({ id }) => id)).toEqual([1, 2, 3])
    for (const id of [1, 2]) programs.print({ op: 'point', id, point: { lr: `0.${id}` } })
    expect(line.poll(3)).toEqual({ kind: 'raw', values: { lr: '0.1' }, repeats: 0 })
    line.repeat([0.5])
    expect(line.poll(3)).toEqual({ kind: 'raw', values: { lr: '0.2' }, repeats: 0 })
    line.take(trial(4))
    expect(line.poll(2)).toEqual({ kind: 'wait' })
    programs.print({ op: 'point', id: 1, point: { lr: '0.4' } }, { op: 'point', id: 3, point: { lr: '0.3' } })
    expect(line.poll(2)).toEqual({ kind: 'raw', values: { lr: '0.4' }, repeats: 1 })
    line.take(trial(5))
    expect(line.poll(1)).toEqual({ kind: 'raw', values: { lr: '0.3' }, repeats: 0 })
    line.take(trial(6))
    expect(programs.told('ask', 'repeat', 'take').slice(3)).toEqual([
      { op: 'repeat', id: 1, values: [0.5] },
      { op: 'take', id: 2, number: 4, point: POINT },
      { op: 'take', id: 1, number: 5, point: POINT },
      { op: 'take', id: 3, number: 6, point: POINT },
    ])
    expect(clock.timerCount).toBe(0)
  })

  it('has asked often enough also when the program ended in between', () => {
    line.poll()
    programs.begin()
    programs.answer()
    line.repeat([0.5])
    programs.last.handlers.onEnd('lost')
    clock.advance(1_000)
    line.poll()
    programs.begin()
    programs.answer()
    expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 1 })
  })

  it('reads lines in any pieces and ignores what else is printed', () => {
    line.poll()
    const text =
      'Welcome to m1\n{"op":"hello"}\n{"op":}\n[1]\nnull\n{"op":"point","id":0,"point":{}}\n{"op":"ready"}\n{"x":1}\n'
    for (const letter of text) programs.last.handlers.onText(letter)
    programs.print({ op: 'point', id: 99, point: POINT }, { op: 'hello' }, { op: 'ready' }, { op: 'gossip' })
    expect(programs.last.told.map(({ op }) => op)).toEqual(['start', 'ask'])
    expect(line.poll()).toEqual({ kind: 'wait' })
    programs.answer()
    expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 0 })
    programs.print({ op: 'point', id: 1, point: { lr: 'late' } })
    expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 0 })
  })

  it.each([
    ['numbers and lists', { lr: 5, size: '10', opt: ['adam'] }, { size: '10' }],
    ['a long text', { lr: 'x'.repeat(201), opt: 'sgd' }, { opt: 'sgd' }],
    ['a text', 'lr=1', {}],
    ['nothing', null, {}],
    ['a list', [], {}],
  ])('takes texts alone from a suggestion, of %s', (_, point, values) => {
    line.poll()
    programs.begin()
    programs.answer(point)
    expect(line.poll()).toEqual({ kind: 'raw', values, repeats: 0 })
  })

  it('gives up after a minute without a sign of life, and tries again after longer and longer pauses', () => {
    line.poll()
    programs.begin()
    clock.advance(59_000)
    programs.print({ op: 'busy' })
    clock.advance(59_000)
    expect(line.poll()).toEqual({ kind: 'wait' })
    clock.advance(1_000)
    expect(answers).toBe(1)
    expect(programs.last.isOpen).toBe(false)
    const reason = 'Optuna on m1 (environment train): no answer within 60 s'
    expect(line.poll()).toEqual({ kind: 'trouble', reason })
    for (const pauseMs of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
      const count = programs.opened.length
      clock.advance(pauseMs - 1)
      expect(line.poll()).toEqual({ kind: 'trouble', reason })
      const before = answers
      clock.advance(1)
      expect(answers).toBe(before + 1)
      expect(line.poll()).toEqual({ kind: 'wait' })
      expect(programs.opened).toHaveLength(count + 1)
      clock.advance(60_000)
      expect(line.poll()).toEqual({ kind: 'trouble', reason })
    }
    clock.advance(60_000)
    line.poll()
    programs.begin()
    programs.answer()
    line.take(trial(1))
    line.poll()
    programs.last.handlers.onEnd('connection lost')
    clock.advance(1_000)
    expect(line.poll()).toEqual({ kind: 'wait' })
  })

  it('tries again after its pause also when the clock was set back', () => {
    line.poll()
    programs.last.handlers.onEnd('connection lost')
    expect(line.poll()).toMatchObject({ kind: 'trouble' })
    clock.set(-86_400_000)
    clock.advance(1_000)
    expect(line.poll()).toEqual({ kind: 'wait' })
  })

  it('gives up when the program works at one suggestion for too long', () => {
    line.poll()
    programs.begin()
    for (let minute = 0; minute < 20; minute++) {
      clock.advance(30_000)
      programs.print({ op: 'busy' })
    }
    expect(line.poll()).toEqual({
      kind: 'trouble',
      reason: 'Optuna on m1 (environment train): no suggestion within 10 min; --method random needs no time for it',
    })
  })

  it('does not mind that the program ends while it has nothing to do', () => {
    line.poll()
    programs.begin()
    programs.answer()
    line.take(trial(0))
    programs.last.handlers.onEnd('the connection was lost')
    expect(answers).toBe(1)
    line.tell(ended(0, 'done', { acc: '1' }))
    history = [trial(0, 'done', { acc: '1' })]
    expect(line.poll()).toEqual({ kind: 'wait' })
    programs.begin()
    expect(programs.told('start')[0]?.trials).toHaveLength(1)
    programs.answer()
    expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 0 })
    expect(clock.timerCount).toBe(0)
  })

  it('keeps a suggestion whose program has ended, and a new program does not hear of it', () => {
    line.poll()
    programs.begin()
    programs.answer()
    programs.last.handlers.onEnd('the connection was lost')
    expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 0 })
    line.take(trial(0))
    history = [trial(0)]
    expect(line.poll()).toEqual({ kind: 'wait' })
    programs.begin()
    expect(programs.last.told.map(({ op }) => op)).toEqual(['start', 'ask'])
    programs.answer()
    programs.last.handlers.onEnd('again')
    line.repeat([1])
    expect(line.poll()).toEqual({ kind: 'wait' })
    programs.begin()
    expect(programs.last.told.map(({ op }) => op)).toEqual(['start', 'ask'])
  })

  it.each([
    ['a line without an end', '{"op":"point","id":1,"point":'.padEnd(65 * 1024, 'x')],
    ['a line without an end, many times as long', 'x'.repeat(200 * 1024), 200 * 1024],
    ['many lines', `${'{"op":"busy"}\n'.repeat(80_000)}`],
    ['much noise', `${'x'.repeat(100)}\n`.repeat(11_000)],
  ])('disconnects a host that prints too much: %s', (_, text, pieceLength = 32_768) => {
    line.poll()
    programs.begin()
    for (let at = 0; at < text.length; at += pieceLength)
      programs.last.handlers.onText(text.slice(at, at + pieceLength))
    expect(programs.last.isOpen).toBe(false)
    expect(line.poll()).toMatchObject({ kind: 'trouble', reason: expect.stringContaining('disconnected: it printed') })
    programs.print({ op: 'point', id: 1, point: POINT })
    expect(line.poll()).toMatchObject({ kind: 'trouble' })
  })

  it('lets a program answer for ever', () => {
    line.poll()
    programs.begin()
    for (let number = 0; number < 300; number++) {
      programs.last.handlers.onText(`${'x'.repeat(30_000)}\n`)
      programs.answer()
      expect(line.poll()).toEqual({ kind: 'raw', values: POINT, repeats: 0 })
      line.take(trial(number))
      line.poll()
    }
    expect(programs.opened).toHaveLength(1)
  })

  it.each([
    [
      { kind: 'no-optuna', message: '/usr/bin/python3' },
      'Optuna is not installed on m1 (environment train). Install it there, or name another host with --sampler-on; --method random works without it',
    ],
    [{ kind: 'no-python' }, 'there is no python3 on m1 (environment train). Name another host with --sampler-on'],
    [{ kind: 'no-environment' }, 'cannot activate the environment train on m1: sh: 1: no such file'],
    [
      { kind: 'options', message: 'TPESampler has no option x; it has seed' },
      'TPESampler rejects its options: TPESampler has no option x; it has seed',
    ],
    [
      { kind: 'no-sampler', message: 'Optuna 5 has no TPESampler' },
      'there is no sampler TPESampler on m1 (environment train): Optuna 5 has no TPESampler',
    ],
  ])('says what is missing, and looks again every minute: %j', (error, reason) => {
    line.poll()
    programs.last.handlers.onText('sh: 1: no such file\n')
    programs.print({ op: 'error', ...error })
    programs.last.handlers.onEnd('exit 1')
    expect(answers).toBe(1)
    expect(line.poll()).toEqual({ kind: 'trouble', reason })
    clock.advance(59_999)
    expect(line.poll()).toEqual({ kind: 'trouble', reason })
    clock.advance(1)
    expect(answers).toBe(2)
    expect(line.poll()).toEqual({ kind: 'wait' })
    expect(programs.opened).toHaveLength(2)
  })

  it.each([
    ['control characters', { kind: 'failed', message: 'ValueError: \u001b[2Jno' }, 'ValueError: \\x1b[2Jno'],
    ['no message', { kind: 'constructor', message: 5 }, 'bash: docker: not found'],
    ['a long message', { kind: 'failed', message: 'x'.repeat(5000) }, 'x'.repeat(1000)],
  ])('prints an error of the host only as text: %s', (_, error, text) => {
    line.poll()
    programs.last.handlers.onText('bash: docker: not found\n')
    programs.print({ op: 'error', ...error })
    expect(line.poll()).toEqual({ kind: 'trouble', reason: `Optuna on m1 (environment train): ${text}` })
  })

  it('says why the shell ended', () => {
    line.poll()
    programs.last.handlers.onText('one\ntwo\n\nError: No such container: \u0007train\n\nSee help\n')
    programs.last.handlers.onEnd('it ended')
    expect(line.poll()).toMatchObject({
      kind: 'trouble',
      reason: 'Optuna on m1 (environment train): it ended: two · Error: No such container: \\x07train · See help',
    })
  })

  it('has trouble where the host cannot be opened, or is not known', () => {
    programs.failure = new Error('there is no host m1')
    expect(line.poll()).toEqual({ kind: 'trouble', reason: 'Optuna on m1 (environment train): there is no host m1' })
    programs.failure = undefined
    clock.advance(1_000)
    expect(line.poll()).toEqual({ kind: 'wait' })
    const { sampler: _, ...spec } = SPEC
    expect(make(spec).poll()).toEqual({ kind: 'trouble', reason: 'the study names no host for Optuna' })
  })

  it('leaves no timer and no shell when it is disposed of', () => {
    line.poll()
    programs.begin()
    line[Symbol.dispose]()
    expect(programs.last.isOpen).toBe(false)
    programs.answer()
    expect(answers).toBe(0)
    line = make()
    line.poll()
    programs.last.handlers.onEnd('lost')
    line[Symbol.dispose]()
    expect(clock.timerCount).toBe(0)
  })
})
