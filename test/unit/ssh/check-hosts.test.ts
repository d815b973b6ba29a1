import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../src/inventory/host.ts'
import { type CheckOptions, checkHosts, type LoginCheck } from '../../../src/ssh/check-hosts.ts'
import { endpointOf, FakeTransport } from './fake-transport.ts'
import { ManualClock } from './manual-clock.ts'

const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

async function all(endpoints: readonly Endpoint[], options: CheckOptions): Promise<LoginCheck[]> {
  const checks: LoginCheck[] = []
  for await (const check of checkHosts(endpoints, options)) checks.push(check)
  return checks
}

function parts(changes: { fanOut?: number; signal?: AbortSignal } = {}) {
  const transport = new FakeTransport()
  const clock = new ManualClock()
  const options = {
    transports: { ssh2: transport },
    hostKeys: { verify: async () => ({ ok: true }) as const, preferredAlgorithms: async () => [] },
    credentials: {
      passphrase: async () => undefined,
      password: async () => undefined,
      keyboardInteractive: async () => undefined,
    },
    clock,
    ...changes,
  }
  return { transport, clock, options }
}

describe('checking hosts', () => {
  it('reports how long each phase took, and disconnects', async () => {
    const { transport, clock, options } = parts()
    transport.onAttempt = ({ context, succeed }) => {
      clock.advance(2)
      context.onPhase('tcp')
      clock.advance(10)
      context.onPhase('authentication')
      clock.advance(30)
      succeed()
    }
    const [check] = await all([endpointOf('m1')], options)
    expect(check).toEqual({
      host: 'm1',
      durationMs: 42,
      outcome: 'ok',
      failure: undefined,
      phases: [
        { phase: 'name', durationMs: 2 },
        { phase: 'tcp', durationMs: 10 },
        { phase: 'authentication', durationMs: 30 },
      ],
    })
    expect(transport.connections.get('m1')?.isClosed).toBe(true)
  })

  it('gives the reason for each failed host once, and continues with the others', async () => {
    const { transport, options } = parts()
    transport.onAttempt = ({ host, succeed, fail }) => {
      if (host === 'm2') {
        fail({ kind: 'unreachable', phase: 'tcp', reason: 'connection refused', hint: 'Is sshd running?' })
      } else succeed()
    }
    const checks = await all(
      ['m1', 'm2', 'm3'].map((name) => endpointOf(name)),
      options,
    )
    expect(Object.fromEntries(checks.map(({ host, outcome }) => [host, outcome]))).toEqual({
      m1: 'ok',
      m2: 'unreachable',
      m3: 'ok',
    })
    expect(transport.attempts).toHaveLength(3)
    expect(checks.find(({ host }) => host === 'm2')?.failure).toMatchObject({ phase: 'tcp', hint: 'Is sshd running?' })
  })

  it('keeps to the fan-out', async () => {
    const { transport, options } = parts({ fanOut: 1 })
    transport.answersAtOnce = false
    const checks = all([endpointOf('m1'), endpointOf('m2')], options)
    await settle()
    expect(transport.attempts).toHaveLength(1)
    transport.attempts[0]!.succeed()
    await settle()
    transport.attempts[1]!.succeed()
    expect(await checks).toHaveLength(2)
  })

  it('says which hosts were not checked when it is cancelled', async () => {
    const abort = new AbortController()
    const { transport, options } = parts({ fanOut: 1, signal: abort.signal })
    transport.answersAtOnce = false
    const checks = all([endpointOf('m1'), endpointOf('m2')], options)
    await settle()
    abort.abort()
    expect((await checks).map(({ failure }) => failure?.reason)).toEqual(['cancelled', 'cancelled'])
    expect(transport.attempts).toHaveLength(1)
  })

  it('says that a transport is missing', async () => {
    const { options } = parts()
    const [check] = await all([{ ...endpointOf('m1'), transport: 'openssh' }], options)
    expect(check?.failure).toMatchObject({ kind: 'configuration', reason: expect.stringContaining('openssh') })
  })
})
