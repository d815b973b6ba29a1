import { describe, expect, it } from 'vitest'
import type { OpsHosts, ScriptOptions, ScriptResult } from '../../../../src/ops/kernel/host-port.ts'
import { watchCluster } from '../../../../src/ops/ray/watch.ts'
import { ManualClock } from '../../ssh/manual-clock.ts'
import { rayWanted } from './ray-wanted.ts'

const HEAD = { host: 'm10', isHead: true, ip: '10.0.0.1', address: '10.0.0.1', custom: {}, labels: {} }
const WANTED = rayWanted({ head: HEAD })

function watching() {
  const clock = new ManualClock()
  const told: string[] = []
  let options: ScriptOptions | undefined
  let end: (result: ScriptResult) => void = () => {}
  const hosts: OpsHosts = {
    exec: (_, __, given) => {
      options = given
      return new Promise((resolve) => {
        end = resolve
      })
    },
  }
  const reason = watchCluster(WANTED, {
    hosts,
    clock,
    signal: new AbortController().signal,
    intervalMs: 60_000,
    rounds: 0,
    onUsage: (usage, why) => told.push(usage === undefined ? `down: ${why}` : 'up'),
    onSilent: (why) => told.push(`silent: ${why}`),
  })
  const asked = () => options?.signal
  return {
    clock,
    told,
    reason,
    signal: asked,
    say: (text: string) => options?.onOutput?.('stdout', text),
    end: () => end(ENDED),
  }
}

const NOTHING = new Uint8Array()
const ENDED: ScriptResult = { outcome: { kind: 'exit', code: 1 }, stdout: NOTHING, stderr: NOTHING, durationMs: 0 }

describe('a head that is watched', () => {
  it('is reported as silent once, nine seconds after its last answer, however long the interval is', () => {
    const { clock, told, say } = watching()
    say('\n')
    say('{"nodes": {}}\n')
    for (let second = 0; second < 30; second++) {
      clock.advance(8999)
      say('\n')
    }
    expect(told).toEqual(['up'])
    clock.advance(8999)
    expect(told).toEqual(['up'])
    clock.advance(1)
    clock.advance(60_000)
    expect(told).toEqual(['up', 'silent: it has sent nothing for 9 s'])
    say('{"error": "its GCS does not answer"}\n')
    expect(told.slice(2)).toEqual(['down: its GCS does not answer'])
  })

  it('is cut off if it prints too many lines at once, but not if they come over time', async () => {
    const { clock, told, say, reason, end, signal } = watching()
    for (let count = 0; count < 1000; count++) {
      say('\n')
      clock.advance(20)
    }
    expect(signal()?.aborted).toBe(false)
    say('{"error": "no"}\n'.repeat(1000))
    expect(signal()?.aborted).toBe(true)
    expect(told.length).toBeLessThanOrEqual(100)
    end()
    expect(await reason).toBe('it printed more than 100 lines within a second, and was cut off')
    expect(clock.timerCount).toBe(0)
  })

  it('is not silent before it has been asked, nor when it has ended', async () => {
    const { clock, told, say, reason, end } = watching()
    clock.advance(60_000)
    say('\n')
    end()
    expect(await reason).toBe('exit 1')
    expect(clock.timerCount).toBe(0)
    expect(told).toEqual([])
  })
})
