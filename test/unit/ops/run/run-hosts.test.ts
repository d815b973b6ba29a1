import { describe, expect, it } from 'vitest'
import {
  type CommandEnd,
  type CommandHandlers,
  HostRun,
  type RunEvent,
  type RunningCommand,
  type RunOptions,
} from '../../../../src/ops/run/run-hosts.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'

class FakeHosts {
  readonly handlers = new Map<string, CommandHandlers>()
  readonly calls: string[] = []

  start(host: string, handlers: CommandHandlers): RunningCommand {
    this.handlers.set(host, handlers)
    const note = (what: string) => () => void this.calls.push(`${what} ${host}`)
    return { stop: note('stop'), abandon: note('abandon'), pause: note('pause'), resume: note('resume') }
  }

  end(host: string, end: CommandEnd = { kind: 'exit', code: 0 }): void {
    this.handlers.get(host)?.onEnd(end)
  }
}

function start(hosts: readonly string[], options: Partial<RunOptions> = {}) {
  const exec = new FakeHosts()
  const clock = new ManualClock()
  const events: RunEvent[] = []
  const run = new HostRun(hosts, exec, { fanOut: 64, clock, onEvent: (event) => events.push(event), ...options })
  const outcomes = () =>
    Object.fromEntries(events.flatMap((event) => (event.type === 'end' ? [[event.host, event.outcome.kind]] : [])))
  return { exec, clock, events, run, outcomes }
}

describe('a run', () => {
  it('runs on no more hosts at once than the fan-out, in their order', () => {
    const { exec, run } = start(['a', 'b', 'c'], { fanOut: 2 })
    expect(run.running).toEqual(['a', 'b'])
    exec.end('b')
    expect(run.running).toEqual(['a', 'c'])
    expect(run.waitingCount).toBe(0)
  })

  it('is done when the last host has its end', async () => {
    const { exec, run, outcomes } = start(['a', 'b'])
    exec.end('b', { kind: 'exit', code: 3 })
    exec.end('a', { kind: 'unreachable', reason: 'no route' })
    await run.done
    expect(outcomes()).toEqual({ a: 'unreachable', b: 'exit' })
  })

  it('counts the time limit from the start of the command', () => {
    const { exec, clock, outcomes } = start(['a'], { timeoutMs: 1000 })
    clock.advance(5000)
    exec.handlers.get('a')?.onBegin()
    clock.advance(999)
    expect(exec.calls).toEqual([])
    clock.advance(1)
    expect(exec.calls).toEqual(['stop a'])
    exec.end('a', { kind: 'signal', signal: 'SIGTERM' })
    expect(outcomes()).toEqual({ a: 'timeout' })
  })

  it('starts nothing more once it is stopped, and reports every host', async () => {
    const { exec, run, outcomes } = start(['a', 'b', 'c'], { fanOut: 1 })
    run.stop()
    expect(outcomes()).toEqual({ b: 'cancelled', c: 'cancelled' })
    exec.end('a', { kind: 'signal', signal: 'SIGTERM' })
    await run.done
    expect(outcomes().a).toBe('cancelled')
    expect(exec.handlers.has('b')).toBe(false)
  })

  it('reports a lost host as lost, even while it is being stopped', () => {
    const { exec, run, outcomes } = start(['a'])
    run.stop()
    exec.end('a', { kind: 'unreachable', reason: 'lost' })
    expect(outcomes()).toEqual({ a: 'unreachable' })
  })

  it('closes all connections when it is abandoned', async () => {
    const { exec, run } = start(['a', 'b'], { fanOut: 1 })
    run.abandon()
    await run.done
    expect(exec.calls).toEqual(['abandon a'])
  })

  it('holds back hosts that begin while it is paused', () => {
    const { exec, run } = start(['a', 'b'], { fanOut: 1 })
    run.pause()
    exec.end('a')
    expect(exec.calls).toEqual(['pause a', 'pause b'])
  })
})

describe('a run that is fail-fast', () => {
  it('starts on no more hosts after a failure, and lets the command finish where it runs', async () => {
    const { exec, run, outcomes } = start(['a', 'b', 'c', 'd'], { fanOut: 3, isFailFast: true })
    exec.handlers.get('a')?.onBegin()
    exec.handlers.get('b')?.onBegin()
    exec.end('a', { kind: 'exit', code: 1 })
    // c is still being connected.
    expect(exec.calls).toEqual(['stop c'])
    expect(outcomes()).toEqual({ a: 'exit', d: 'cancelled' })
    exec.end('c', { kind: 'cancelled' })
    exec.end('b')
    await run.done
    expect(outcomes()).toEqual({ a: 'exit', b: 'exit', c: 'cancelled', d: 'cancelled' })
    expect(exec.handlers.has('d')).toBe(false)
  })

  it('starts on all hosts while nothing fails', () => {
    const { exec, run } = start(['a', 'b'], { fanOut: 1, isFailFast: true })
    exec.end('a')
    expect(run.running).toEqual(['b'])
  })
})

describe('a run in batches', () => {
  const inBatches = (size: number, answers: readonly boolean[], options: Partial<RunOptions> = {}) => {
    const asked: (readonly string[])[] = []
    const mayGoOn = async (left: readonly string[]) => {
      asked.push(left)
      return answers[asked.length - 1] ?? false
    }
    return { ...start(['a', 'b', 'c', 'd', 'e'], { serial: { size, mayGoOn }, ...options }), asked }
  }
  const settled = () => new Promise(setImmediate)

  it('starts the next one when all hosts of one have ended', async () => {
    const { exec, run, asked } = inBatches(2, [true, true])
    expect(run.running).toEqual(['a', 'b'])
    exec.end('b')
    await settled()
    expect(run.running).toEqual(['a'])
    exec.end('a')
    await settled()
    expect(run.running).toEqual(['c', 'd'])
    exec.end('c')
    exec.end('d')
    await settled()
    exec.end('e')
    await run.done
    expect(asked).toEqual([['c', 'd', 'e'], ['e']])
  })

  it('starts none of the other hosts if it may not go on', async () => {
    const { exec, run, outcomes } = inBatches(2, [false])
    exec.end('a')
    exec.end('b', { kind: 'exit', code: 1 })
    await run.done
    expect(outcomes()).toEqual({ a: 'exit', b: 'exit', c: 'cancelled', d: 'cancelled', e: 'cancelled' })
    expect(exec.handlers.has('c')).toBe(false)
  })

  it('keeps to the fan-out within one', () => {
    expect(inBatches(3, [], { fanOut: 2 }).run.running).toEqual(['a', 'b'])
  })

  it('can be stopped while it asks', async () => {
    const answer = Promise.withResolvers<boolean>()
    const { exec, run, outcomes } = start(['a', 'b'], { serial: { size: 1, mayGoOn: () => answer.promise } })
    exec.end('a')
    run.stop()
    await run.done
    answer.resolve(true)
    await settled()
    expect(outcomes()).toEqual({ a: 'exit', b: 'cancelled' })
    expect(exec.handlers.has('b')).toBe(false)
  })

  it('tries a host again before the next one', async () => {
    const { exec, clock, run } = inBatches(1, [true], { retryDelayMs: () => 1000 })
    exec.end('a', { kind: 'exit', code: 1 })
    await settled()
    expect([run.running, run.retrying]).toEqual([[], ['a']])
    clock.advance(1000)
    expect(run.running).toEqual(['a'])
    exec.end('a')
    await settled()
    expect(run.running).toEqual(['b'])
  })
})

describe('a run that tries again', () => {
  const failed: CommandEnd = { kind: 'exit', code: 1 }
  const again = { retryDelayMs: (failures: number) => failures * 1000 }

  it('waits longer after each failure, and reports one end', async () => {
    const { exec, clock, events, run } = start(['a'], again)
    exec.end('a', { kind: 'unreachable', reason: 'no route' })
    clock.advance(1000)
    exec.end('a', failed)
    clock.advance(1999)
    expect(run.running).toEqual([])
    clock.advance(1)
    exec.end('a')
    await run.done
    expect(events).toMatchObject([
      { type: 'retry', host: 'a', outcome: { kind: 'unreachable' }, failures: 1, delayMs: 1000 },
      { type: 'retry', host: 'a', outcome: { kind: 'exit', code: 1 }, failures: 2, delayMs: 2000 },
      { type: 'end', host: 'a', outcome: { kind: 'exit', code: 0 } },
    ])
    expect(clock.timerCount).toBe(0)
  })

  it('gives the turn of a host that waits to another one', () => {
    const { exec, clock, run } = start(['a', 'b'], { fanOut: 1, ...again })
    exec.end('a', failed)
    expect(run.running).toEqual(['b'])
    clock.advance(1000)
    expect(run.running).toEqual(['b'])
    exec.end('b')
    expect(run.running).toEqual(['a'])
  })

  it('does not try again what a host refuses', async () => {
    const { exec, run, outcomes } = start(['a'], again)
    exec.end('a', { kind: 'refused', reason: 'wrong password' })
    await run.done
    expect(outcomes()).toEqual({ a: 'refused' })
  })

  it('counts the time limit over all attempts, and stops the last one', async () => {
    const { exec, clock, run, outcomes } = start(['a'], { timeoutMs: 5000, ...again })
    exec.end('a', failed)
    clock.advance(1000)
    exec.handlers.get('a')?.onBegin()
    clock.advance(3999)
    expect(exec.calls).toEqual([])
    clock.advance(1)
    expect(exec.calls).toEqual(['stop a'])
    exec.end('a', { kind: 'signal', signal: 'SIGTERM' })
    await run.done
    expect(outcomes()).toEqual({ a: 'timeout' })
  })

  it('reports the last failure if the time is up between two attempts', async () => {
    const { exec, clock, run, outcomes, events } = start(['a'], { timeoutMs: 500, ...again })
    exec.end('a', { kind: 'unreachable', reason: 'no route' })
    clock.advance(500)
    await run.done
    expect(outcomes()).toEqual({ a: 'unreachable' })
    clock.advance(10_000)
    expect([events.length, clock.timerCount]).toEqual([2, 0])
  })

  it('forgets a host whose time is up while it waits for its turn', async () => {
    const { exec, clock, run, outcomes } = start(['a', 'b'], { fanOut: 1, timeoutMs: 1500, ...again })
    clock.advance(200)
    exec.end('a', failed)
    clock.advance(1299)
    expect([run.running, outcomes()]).toEqual([['b'], {}])
    clock.advance(1)
    expect(outcomes()).toEqual({ a: 'exit' })
    exec.end('b')
    await run.done
    expect(outcomes()).toEqual({ a: 'exit', b: 'exit' })
  })

  it('is over at once when it is stopped between two attempts', async () => {
    const { exec, clock, run, outcomes } = start(['a'], { timeoutMs: 9000, ...again })
    exec.end('a', failed)
    run.stop()
    await run.done
    expect(outcomes()).toEqual({ a: 'exit' })
    expect(clock.timerCount).toBe(0)
  })

  it('leaves no timer behind when it is abandoned', () => {
    const { exec, clock, run } = start(['a'], { timeoutMs: 9000, ...again })
    exec.end('a', failed)
    run.abandon()
    expect(clock.timerCount).toBe(0)
  })
})
