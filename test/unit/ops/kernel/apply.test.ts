/** Applying a plan on hosts that answer as the test says: order, failures, checks, undo, what goes from step to step. */
import { describe, expect, it } from 'vitest'
import { type ApplyEvent, applyPlan } from '../../../../src/ops/kernel/apply.ts'
import type { OpsHosts } from '../../../../src/ops/kernel/host-port.ts'
import type { Check, Operation } from '../../../../src/ops/kernel/operation.ts'
import { failure, operationOf, StandInHosts } from './stand-in-hosts.ts'

async function apply(
  hosts: StandInHosts,
  operations: readonly Operation[],
  signal = new AbortController().signal,
  fanOut = 8,
) {
  const events: ApplyEvent[] = []
  const plan = { direction: 'up', operations } as const
  const result = await applyPlan(plan, { hosts, signal, fanOut, now: () => 0, onEvent: (event) => events.push(event) })
  const ends = Object.fromEntries(
    [...result.ends].map(([id, end]) => [
      id.slice('area/'.length),
      'reason' in end ? `${end.kind}: ${end.reason}` : end.kind,
    ]),
  )
  return { ...result, ends, events }
}

describe('a plan', () => {
  it('runs the steps of a host in sequence, and the hosts in parallel', async () => {
    const first = Promise.withResolvers<void>()
    const hosts = new StandInHosts(async (host) => {
      if (host === 'm1') await first.promise
      else first.resolve()
      return {}
    })
    const { ends, isComplete } = await apply(hosts, [
      operationOf('a', 'm1', ['one', 'two']),
      operationOf('b', 'm2', ['three']),
    ])
    expect(isComplete).toBe(true)
    expect(hosts.scripts.filter((each) => each.startsWith('m1'))).toEqual(['m1 one', 'm1 two'])
    expect(Object.values(ends)).toEqual(['done', 'done', 'done'])
  })

  it('waits for earlier operations on another host', async () => {
    const hosts = new StandInHosts()
    await apply(hosts, [
      operationOf('export', 'm10', ['export']),
      operationOf('mount', 'm8', ['mount'], ['area/export@m10']),
    ])
    expect(hosts.scripts).toEqual(['m10 export', 'm8 mount'])
  })

  it('stops a host at its first failure, and tells waiting operations why they do not start', async () => {
    const hosts = new StandInHosts((_, script) => (script === 'export' ? failure : {}))
    const { ends, isComplete } = await apply(hosts, [
      operationOf('export', 'm10', ['export', 'check']),
      operationOf('other', 'm10', ['other']),
      operationOf('mount', 'm8', ['mount'], ['area/export@m10']),
      operationOf('free', 'm9', ['free']),
    ])
    expect(isComplete).toBe(false)
    expect(ends).toEqual({
      'export@m10/export': 'failed: no (exit 1)',
      'export@m10/check': 'skipped: export failed on m10',
      'other@m10/other': 'skipped: export failed on m10',
      'mount@m8/mount': 'skipped: export failed on m10',
      'free@m9/free': 'done',
    })
  })

  it('does not start what waits for a blocked operation', async () => {
    const finding = { host: 'm10', gravity: 'blocker', id: 'x', cause: 'no disk' } as const
    const blocked: Operation = {
      ...operationOf('export', 'm10', []),
      verdict: { kind: 'blocked', findings: [finding] },
    }
    const { ends } = await apply(new StandInHosts(), [
      blocked,
      operationOf('mount', 'm8', ['mount'], ['area/export@m10']),
    ])
    expect(ends).toEqual({ 'mount@m8/mount': 'skipped: export on m10 is blocked: no disk' })
  })

  it('works on no more hosts at once than allowed', async () => {
    let atWork = 0
    let most = 0
    const hosts = new StandInHosts(async () => {
      atWork += 1
      most = Math.max(most, atWork)
      await new Promise((resolve) => setImmediate(resolve))
      atWork -= 1
      return {}
    })
    const operations = Array.from({ length: 9 }, (_, index) => operationOf('a', `m${index}`, ['x', 'y']))
    const { isComplete } = await apply(hosts, operations, undefined, 2)
    expect([isComplete, most, hosts.ran.length]).toEqual([true, 2, 18])
  })

  it('stops running steps and starts nothing more when it is cancelled', async () => {
    const stop = new AbortController()
    const hosts = new StandInHosts((_, script) => {
      if (script !== 'one') return {}
      stop.abort()
      return { outcome: { kind: 'cancelled' } }
    })
    const { ends, isComplete } = await apply(hosts, [operationOf('a', 'm1', ['one', 'two'])], stop.signal)
    expect(isComplete).toBe(false)
    expect(ends).toEqual({ 'a@m1/one': 'cancelled', 'a@m1/two': 'skipped: cancelled' })
  })
})

describe('a plan whose events cannot be reported', () => {
  it('ends on all hosts before that error is thrown', async () => {
    const ran: string[] = []
    const begun = Promise.withResolvers<void>()
    const hosts = new StandInHosts(async (host, script, signal) => {
      ran.push(`${host} ${script} begins`)
      if (host === 'm1') await begun.promise
      else {
        begun.resolve()
        await new Promise((resolve) => signal.addEventListener('abort', resolve))
        await new Promise((resolve) => setImmediate(resolve))
      }
      ran.push(`${host} ${script} ended`)
      return host === 'm1' ? {} : { outcome: { kind: 'cancelled' } }
    })
    const operations = [operationOf('a', 'm2', ['long', 'more']), operationOf('b', 'm1', ['short', 'more'])]
    const applied = applyPlan(
      { direction: 'up', operations },
      {
        hosts,
        signal: new AbortController().signal,
        fanOut: 8,
        now: () => 0,
        onEvent: ({ type, operation }) => {
          if (type === 'end' && operation.host === 'm1') throw new Error('no room for the journal')
        },
      },
    )
    await expect(applied).rejects.toThrow('no room for the journal')
    expect(ran).toEqual(['m2 long begins', 'm1 short begins', 'm1 short ended', 'm2 long ended'])
  })

  it('ends also if output cannot be reported, without an error in the source of the output', async () => {
    const hosts: OpsHosts = {
      async exec(_host, _script, { onOutput, signal }) {
        onOutput?.('stdout', 'a line')
        const outcome = signal.aborted ? ({ kind: 'cancelled' } as const) : ({ kind: 'exit', code: 0 } as const)
        return { outcome, stdout: new Uint8Array(), stderr: new Uint8Array(), durationMs: 0 }
      },
    }
    const ends: string[] = []
    const applied = applyPlan(
      { direction: 'up', operations: [operationOf('a', 'm1', ['one', 'two'])] },
      {
        hosts,
        signal: new AbortController().signal,
        fanOut: 8,
        now: () => 0,
        onEvent: (event) => {
          if (event.type === 'output') throw new Error('stdout is closed')
          if (event.type === 'end') ends.push(`${event.step.title} ${event.end.kind}`)
        },
      },
    )
    await expect(applied).rejects.toThrow('stdout is closed')
    expect(ends).toEqual(['one cancelled', 'two skipped'])
  })
})

describe('a step that may start early', () => {
  const join = (early = 'join early') => [{ id: 'join', run: { script: 'join', early } }]
  const head = operationOf('head', 'm10', ['install', 'start'])
  const worker = (early?: string) => operationOf('worker', 'm8', join(early), ['area/head@m10'])

  it('loads while the operations before it run, and continues when they are done', async () => {
    const hosts = new StandInHosts()
    const { ends, events } = await apply(hosts, [head, worker()])
    expect(hosts.scripts.toSorted()).toEqual(['m10 install', 'm10 start', 'm8 join early'])
    expect(hosts.scripts.at(-1)).toBe('m10 start')
    expect(hosts.turns).toEqual(['join early: went on'])
    expect(ends['worker@m8/join']).toBe('done')
    expect(events.map(({ type, step }) => `${type} ${step.id}`).slice(-2)).toEqual([
      'begin area/worker@m8/join',
      'end area/worker@m8/join',
    ])
  })

  it('is stopped if its turn does not come', async () => {
    const hosts = new StandInHosts((_, script) => (script === 'start' ? failure : {}))
    const { ends } = await apply(hosts, [head, worker()])
    expect(hosts.turns).toEqual(['join early: ended'])
    expect(ends['worker@m8/join']).toBe('skipped: start failed on m10')
  })

  it('is stopped when the plan is cancelled', async () => {
    const stop = new AbortController()
    const hosts = new StandInHosts((_, script) => {
      if (script !== 'start') return {}
      stop.abort()
      return { outcome: { kind: 'cancelled' } }
    })
    await apply(hosts, [head, worker()], stop.signal)
    expect(hosts.turns).toEqual(['join early: ended'])
    expect(hosts.scripts).not.toContain('m8 join')
  })

  it('is stopped if its check holds', async () => {
    const hosts = new StandInHosts()
    const checked = [
      {
        id: 'join',
        run: { script: 'join', early: 'join early' },
        check: { script: 'joined', lack: 'it is not there' },
      },
    ]
    const { ends } = await apply(hosts, [head, operationOf('worker', 'm8', checked, ['area/head@m10'])])
    expect(hosts.turns).toEqual(['join early: ended'])
    expect(ends['worker@m8/join']).toBe('unneeded')
  })

  it('runs normally if the early start has ended by itself', async () => {
    const hosts = new StandInHosts()
    const { ends } = await apply(hosts, [head, worker('one that ends')])
    expect(hosts.scripts.at(-1)).toBe('m8 join')
    expect(ends['worker@m8/join']).toBe('done')
  })

  it('runs normally if it is not the first step, waits for nothing, or exceeds the limit of hosts at once', async () => {
    const hosts = new StandInHosts()
    await apply(hosts, [operationOf('alone', 'm7', join())])
    await apply(hosts, [head, operationOf('worker', 'm8', ['token', ...join()], ['area/head@m10'])])
    const second = operationOf('worker', 'm9', join(), ['area/head@m10'])
    expect(hosts.turns).toEqual([])
    await apply(hosts, [head, worker(), second], undefined, 1)
    expect(hosts.turns).toEqual(['join early: went on'])
  })

  it('does not load what an earlier operation of its host still changes', async () => {
    const hosts = new StandInHosts()
    await apply(hosts, [operationOf('env', 'm10', ['sync']), head, worker()])
    expect(hosts.scripts.slice(0, 1)).toEqual(['m10 sync'])
    expect(hosts.scripts.indexOf('m8 join early')).toBeGreaterThan(0)
  })
})

describe('a step', () => {
  it('whose output is secret gives it to another step, and shows it nowhere', async () => {
    const stdins: string[] = []
    let code = 0
    const hosts: OpsHosts = {
      async exec(_, script, { stdin, onOutput }) {
        const stdout = script === 'make' ? 'key-7' : ''
        onOutput?.('stdout', stdout)
        if (script === 'take') stdins.push(Buffer.from(stdin ?? []).toString())
        return { outcome: { kind: 'exit', code }, stdout: Buffer.from(stdout), stderr: new Uint8Array(), durationMs: 0 }
      },
    }
    const steps = [
      { id: 'make', run: { script: 'make', isSecret: true } },
      { id: 'take', run: { script: 'take', stdin: [{ output: 'area/a@m1/make', pattern: 'key-\\d' }] } },
    ]
    const plan = { direction: 'up', operations: [operationOf('a', 'm1', steps)] } as const
    const seen: unknown[] = []
    const { signal } = new AbortController()
    const options = { hosts, signal, fanOut: 1, now: () => 0, onEvent: (event: ApplyEvent) => seen.push(event) }
    await applyPlan(plan, options)
    code = 1
    const { ends } = await applyPlan(plan, options)
    expect(stdins).toEqual(['key-7'])
    expect(ends.get('area/a@m1/make')?.kind).toBe('failed')
    expect(JSON.stringify([seen, [...ends]])).not.toContain('key-7')
  })

  it('has more time on slow hosts, as its check has', async () => {
    const limits: number[] = []
    const hosts = new StandInHosts((_, script) => (script === 'is made' && limits.length === 1 ? failure : {}))
    const watched: OpsHosts = {
      exec: async (host, script, options) => {
        limits.push(options.timeoutMs)
        return await hosts.exec(host, script, options)
      },
    }
    const step = {
      id: 'make',
      check: { script: 'is made', lack: 'it is not there' },
      run: { script: 'make', timeoutMs: 7000 },
    }
    const plan = { direction: 'up', operations: [operationOf('a', 'm1', [step])] } as const
    const { signal } = new AbortController()
    await applyPlan(plan, { hosts: watched, signal, fanOut: 1, limitFactor: 3, now: () => 0, onEvent() {} })
    expect(limits).toEqual([60_000, 21_000, 60_000])
  })

  it('is skipped if its check holds', async () => {
    const hosts = new StandInHosts()
    const { ends } = await apply(hosts, [
      operationOf('a', 'm1', [{ id: 'make', check: { script: 'is made', lack: 'it is not there' } }]),
    ])
    expect(hosts.scripts).toEqual(['m1 is made'])
    expect(ends).toEqual({ 'a@m1/make': 'unneeded' })
  })

  it('fails if its check does not hold afterwards, and is undone', async () => {
    const hosts = new StandInHosts((_, script) => (script === 'is made' ? failure : {}))
    const step = {
      id: 'make',
      check: { script: 'is made', lack: 'it is not there' },
      undo: { title: 'take it back', script: 'unmake' },
    }
    const { ends } = await apply(hosts, [operationOf('a', 'm1', [step])])
    expect(hosts.scripts).toEqual(['m1 is made', 'm1 make', 'm1 is made', 'm1 unmake'])
    expect(ends).toEqual({
      'a@m1/make': 'failed: it ran, but it is not there: no (exit 1); undone: take it back',
    })
  })

  it('reports that undoing it failed, too', async () => {
    const hosts = new StandInHosts(() => failure)
    const { ends } = await apply(hosts, [
      operationOf('a', 'm1', [{ id: 'make', undo: { title: 'take it back', script: 'unmake' } }]),
    ])
    expect(ends['a@m1/make']).toBe('failed: no (exit 1); and undoing it failed: no (exit 1)')
  })

  const maker = (check?: Check) => operationOf('key', 'm1', [check === undefined ? 'make' : { id: 'make', check }])
  const reader = operationOf(
    'list',
    'm2',
    [
      {
        id: 'write',
        run: { script: 'write', stdin: ['<', { output: 'area/key@m1/make', pattern: 'key [a-z]+' }, '>'] },
      },
    ],
    ['area/key@m1'],
  )

  it('reads the output of another step, which runs for this even if its check holds', async () => {
    const hosts = new StandInHosts((_, script) => (script === 'make' ? { stdout: 'key abc\n' } : {}))
    const { isComplete } = await apply(hosts, [maker({ script: 'is made', lack: 'it is not there' }), reader])
    expect(isComplete).toBe(true)
    expect(hosts.ran.at(-1)).toEqual({ host: 'm2', script: 'write', stdin: '<key abc>' })
  })

  it('compares the output of another step in a check, before and after it', async () => {
    const stdin = [{ output: 'area/key@m1/make', pattern: 'key [a-z]+' }]
    const step = { id: 'write', check: { script: 'is written', lack: 'it is not there', stdin } }
    const answer = (_: string, script: string) =>
      script === 'make' ? { stdout: 'key abc\n' } : script === 'is written' ? failure : {}
    const hosts = new StandInHosts(answer)
    const writer = operationOf('list', 'm2', [step], ['area/key@m1'])
    expect((await apply(hosts, [maker(), writer])).isComplete).toBe(false)
    expect(hosts.ran.map(({ script, stdin: text }) => `${script} ${text}`.trim())).toEqual([
      'make',
      'is written key abc',
      'write',
      'is written key abc',
    ])
  })

  it.each([
    'key abc\nkey def\n',
    'key abc; rm -rf /\n',
    '',
    'key ABC',
  ])('does not start with unexpected output: %j', async (stdout) => {
    const hosts = new StandInHosts((_, script) => (script === 'make' ? { stdout } : {}))
    const { ends } = await apply(hosts, [maker(), reader])
    expect(ends['list@m2/write']).toBe('failed: area/key@m1/make printed unexpected output')
    expect(hosts.scripts).toEqual(['m1 make'])
  })

  it('reports its output as it comes, and its end with a printable reason', async () => {
    const hosts = new StandInHosts(() => ({ outcome: { kind: 'exit', code: 3 }, stderr: 'bad \u001b[31mthing\n' }))
    const { events } = await apply(hosts, [operationOf('a', 'm1', ['make'])])
    expect(events.map(({ type }) => type)).toEqual(['begin', 'end'])
    expect(events.at(-1)).toMatchObject({ end: { kind: 'failed', reason: 'bad \\x1b[31mthing (exit 3)' } })
  })
})
