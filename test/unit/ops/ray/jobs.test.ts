import { describe, expect, it } from 'vitest'
import type { ScriptOptions, ScriptResult } from '../../../../src/ops/kernel/host-port.ts'
import { askForJobs, parseJobEvent, type RayJobEvent, type RayJobOrder } from '../../../../src/ops/ray/jobs.ts'
import type { RunOutcome } from '../../../../src/ops/run/outcome.ts'
import { rayWanted } from './ray-wanted.ts'

const WANTED = rayWanted({
  head: { host: 'm10', isHead: true, ip: '10.81.0.1', address: '10.81.0.1', custom: {}, labels: {} },
  port: 6379,
  dashboardHost: '0.0.0.0',
})

/** What the head prints, in pieces, and how it ends. */
async function ask(order: RayJobOrder, pieces: readonly string[], outcome: RunOutcome = { kind: 'exit', code: 0 }) {
  const events: RayJobEvent[] = []
  let asked: { script: string; options: ScriptOptions } | undefined
  const hosts = {
    async exec(_: string, script: string, options: ScriptOptions): Promise<ScriptResult> {
      asked = { script, options }
      for (const piece of pieces) options.onOutput?.('stdout', piece)
      return { outcome, stdout: Buffer.alloc(0), stderr: Buffer.from('Traceback\nNameError: x\n'), durationMs: 1 }
    },
  }
  const { signal } = new AbortController()
  const end = await askForJobs(WANTED, order, { hosts, signal, timeoutMs: 1, onEvent: (event) => events.push(event) })
  return { end, events, asked }
}

describe('jobs of Ray', () => {
  it('are queried on the head, at its own dashboard, whatever the arguments contain', async () => {
    const { asked, end } = await ask(
      {
        do: 'submit',
        follow: true,
        job: { entrypoint: `echo 'it''s'`, environment: { K: 'v' }, cpus: 2, archive: Buffer.from('tar') },
      },
      [],
    )
    expect(asked?.script).toContain('"dashboard":"127.0.0.1:8265"')
    expect(asked?.script).toContain(`"entrypoint":"echo '\\''it'\\'''\\''s'\\''"`)
    expect(asked?.options.stdin).toEqual(Buffer.from('tar'))
    expect(end).toEqual({ kind: 'done' })
  })

  it('arrive line by line, however the answer is cut, without other output', async () => {
    const { events } = await ask({ do: 'logs', id: 'one', follow: true }, [
      'a warning\n{"type":"log","te',
      'xt":"\\u001b[1m12\\u001b[0m\\n"}\n{"type":"job","submission_id":"one","status":"FAILED","driver_exit_code":3,"message":"exit code 3, last available logs:\\nx","start_time":5,"end_time":null}\n',
    ])
    expect(events).toEqual([
      { type: 'log', text: '12\n' },
      {
        type: 'job',
        job: { id: 'one', status: 'FAILED', entrypoint: '', message: 'exit code 3', startMs: 5, exitCode: 3 },
      },
    ])
  })

  it('are not read from an endless answer', async () => {
    const piece = 'x'.repeat(1_000_000)
    const endless = Array.from({ length: 70 }, () => piece)
    expect((await ask({ do: 'logs', id: 'one', follow: false }, ['{"type":"log","text":"', ...endless])).end).toEqual({
      kind: 'refused',
      reason: 'it sent a line of more than 64 MB',
    })
    const { end, events } = await ask({ do: 'list' }, [`${'{"type":"job","submission_id":"a"}\n'.repeat(100_001)}`])
    expect(end).toEqual({ kind: 'refused', reason: 'it lists more than 100000 jobs' })
    expect(events).toHaveLength(100_000)
  })

  it.each([
    [
      'lines that are no answers',
      'y\n',
      'it printed more than 10000 lines that are not answers, and was cut off',
      11_000,
    ],
    ['jobs', '{"type":"job","submission_id":"a"}\n', 'it lists more than 100000 jobs', 101_000],
  ])('stop a head that prints %s without end', async (_, line, reason, mostLines) => {
    const piece = line.repeat(1000)
    let printed = 0
    const hosts = {
      async exec(_host: string, _script: string, { signal, onOutput }: ScriptOptions): Promise<ScriptResult> {
        for (; !signal.aborted && printed < 1_000_000; printed += 1000) onOutput?.('stdout', piece)
        return { outcome: { kind: 'cancelled' }, stdout: Buffer.alloc(0), stderr: Buffer.alloc(0), durationMs: 1 }
      },
    }
    const { signal } = new AbortController()
    const end = await askForJobs(WANTED, { do: 'list' }, { hosts, signal, timeoutMs: 1, onEvent() {} })
    expect(end).toEqual({ kind: 'refused', reason })
    expect(printed).toBeLessThanOrEqual(mostLines)
  })

  it("end with Ray's error, or with the reason why the head could not be asked", async () => {
    const refused = '{"type":"error","reason":"Traceback\\n  File x\\nRuntimeError: Job nope does not exist"}\n'
    expect((await ask({ do: 'stop', id: 'nope' }, [refused])).end).toEqual({
      kind: 'refused',
      reason: 'RuntimeError: Job nope does not exist',
    })
    const twice = '{"type":"error","reason":"Traceback\\nValueError: Job three already exists.\\n."}\n'
    expect((await ask({ do: 'list' }, [twice])).end).toMatchObject({ reason: 'ValueError: Job three already exists.' })
    expect((await ask({ do: 'list' }, [], { kind: 'exit', code: 1 })).end).toMatchObject({ kind: 'refused' })
    const away = { kind: 'unreachable', reason: 'no route' } as const
    expect((await ask({ do: 'list' }, [], away)).end).toEqual({ kind: 'away', reason: 'no route' })
    expect(parseJobEvent('[1]')).toBeUndefined()
    expect(parseJobEvent('null')).toBeUndefined()
  })

  it('have possible times and exit codes', () => {
    const job = { type: 'job', submission_id: 'a', start_time: 1e300, end_time: -9e15, driver_exit_code: 256 }
    const plain = { type: 'job', job: { id: 'a', status: '', entrypoint: '', message: '' } }
    expect(parseJobEvent(JSON.stringify(job))).toEqual(plain)
    expect(parseJobEvent(JSON.stringify({ ...job, driver_exit_code: 1.5 }))).toEqual(plain)
  })
})
