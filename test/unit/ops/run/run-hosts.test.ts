import { describe, expect, it } from 'vitest'
import {
  type CommandEnd,
  type CommandHandlers,
  HostRun,
  type RunEvent,
  type RunningCommand,
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

function start(hosts: readonly string[], options: { fanOut?: number; timeoutMs?: number } = {}) {
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
