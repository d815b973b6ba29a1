import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { MusterError } from '../../../src/base/errors.ts'
import { Secret } from '../../../src/base/secret.ts'
import {
  createConnectingTransport,
  createFleet,
  createFleetTransport,
  type FleetEvent,
  type FleetOptions,
} from '../../../src/ssh/create-fleet.ts'
import { WRITE_QUEUE_LIMIT_BYTES } from '../../../src/ssh/host-shell.ts'
import type { CredentialAsker } from '../../../src/ssh/questions.ts'
import type {
  ChannelEnd,
  ConnectContext,
  ConnectFailure,
  Connection,
  ExecHandlers,
} from '../../../src/ssh/transport.ts'
import { endpointOf, FakeTransport } from './fake-transport.ts'
import { ManualClock } from './manual-clock.ts'

const UNREACHABLE: ConnectFailure = { kind: 'unreachable', phase: 'tcp', reason: 'connection refused' }
const NO_CREDENTIALS: CredentialAsker = {
  passphrase: async () => undefined,
  password: async () => undefined,
  keyboardInteractive: async () => undefined,
}

const bytes = (text: string) => Buffer.from(text)

function fleetOf(names: readonly string[], options: Partial<FleetOptions> = {}) {
  const transport = new FakeTransport()
  const clock = new ManualClock()
  const events: FleetEvent[] = []
  const fleet = createFleet({
    transports: { ssh2: transport },
    hostKeys: { verify: async () => ({ ok: true }), preferredAlgorithms: async () => [] },
    credentials: NO_CREDENTIALS,
    clock,
    random: () => 0.5,
    shell: { term: 'xterm-256color' },
    ...options,
  })
  fleet.on((event) => events.push(event))
  names.forEach((name, index) => {
    fleet.add(endpointOf(name, index + 1))
  })
  return { fleet, transport, clock, events }
}

/** Lets every promise that is settled have its say. */
const settle = () => new Promise<void>((resolve) => setImmediate(resolve))

async function connectedFleet(names: readonly string[], options: Partial<FleetOptions> = {}) {
  const parts = fleetOf(names, options)
  parts.fleet.connect(names)
  await settle()
  return parts
}

describe('a fleet that connects', () => {
  it('tells what a server printed before the login, also if that failed, and when it prints nothing any more', async () => {
    const { fleet, transport, events } = fleetOf(['m1'])
    const banners = () => events.flatMap((event) => (event.type === 'banner' ? [event.text] : []))
    transport.answersAtOnce = false
    for (const [at, text] of ['closed', 'closed', ''].entries()) {
      fleet.reconnect(['m1'])
      await settle()
      const attempt = transport.attempts[at]
      if (text !== '') attempt?.context.onBanner?.(text)
      attempt?.fail({ kind: 'authentication', phase: 'authentication', reason: 'no' })
      await settle()
    }
    expect(banners()).toEqual(['closed', ''])
  })

  it('opens a shell on each host as soon as its session is ready', async () => {
    const { fleet, transport } = await connectedFleet(['m1', 'm2'])
    expect(fleet.hosts).toEqual(['m1', 'm2'])
    expect(fleet.session('m1').kind).toBe('ready')
    expect(fleet.shell('m2')).toEqual({ kind: 'open' })
    expect(transport.shell('m1').options).toMatchObject({ term: 'xterm-256color', size: { columns: 80, rows: 24 } })
  })

  it('opens no shell if it is for commands only', async () => {
    const transport = new FakeTransport()
    const fleet = createFleet({
      transports: { ssh2: transport },
      hostKeys: { verify: async () => ({ ok: true }), preferredAlgorithms: async () => [] },
      credentials: NO_CREDENTIALS,
      clock: new ManualClock(),
      random: () => 0,
    })
    fleet.add(endpointOf('m1'))
    fleet.connect(['m1'])
    await settle()
    expect(fleet.connection('m1')).toBe(transport.connections.get('m1'))
    expect(fleet.shell('m1')).toEqual({ kind: 'none' })
    expect(fleet.write(['m1'], bytes('x')).skipped).toEqual([{ host: 'm1', reason: 'no shell' }])
  })

  it('sets up no more connections at once than the fan-out allows', async () => {
    const { fleet, transport } = fleetOf(['m1', 'm2', 'm3'], { fanOut: 2 })
    transport.answersAtOnce = false
    fleet.connect(fleet.hosts)
    await settle()
    expect(transport.attempts.map(({ host }) => host)).toEqual(['m1', 'm2'])
    transport.attempts[0]!.succeed()
    await settle()
    expect(transport.attempts.map(({ host }) => host)).toEqual(['m1', 'm2', 'm3'])
  })

  it('lets others connect while one waits for the user, but not while it only reads a file', async () => {
    let answer = (_: Secret | undefined) => {}
    const credentials = {
      ...NO_CREDENTIALS,
      password: () =>
        new Promise<Secret | undefined>((r) => {
          answer = r
        }),
    }
    const { fleet, transport, clock } = fleetOf(['m1', 'm2', 'm3'], { fanOut: 1, credentials })
    transport.onAttempt = async ({ host, context, succeed }) => {
      if (host !== 'm1') return
      await context.credentials.password(endpointOf(host), false, context.signal)
      succeed()
    }
    fleet.connect(fleet.hosts)
    await settle()
    clock.advance(100)
    await settle()
    expect(transport.attempts).toHaveLength(1)
    clock.advance(1000)
    await settle()
    expect(transport.attempts.map(({ host }) => host)).toEqual(['m1', 'm2'])
    answer(new Secret('pw'))
    await settle()
    expect(fleet.session('m1').kind).toBe('ready')
    expect(transport.attempts).toHaveLength(2)
  })

  it('retries an unreachable host for ever, with a countdown in its state', async () => {
    const { fleet, transport, clock } = fleetOf(['m1'])
    transport.onAttempt = ({ fail }) => fail(UNREACHABLE)
    fleet.connect(['m1'])
    await settle()
    const delays: number[] = []
    for (let round = 0; round < 8; round++) {
      const state = fleet.session('m1')
      if (state.kind !== 'waiting') throw new Error(`expected waiting, not ${state.kind}`)
      delays.push(state.retryAtMs - clock.now())
      clock.advance(state.retryAtMs - clock.now())
      await settle()
    }
    expect(delays).toEqual([1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000])
    expect(transport.attempts).toHaveLength(9)
  })

  it('stays failed after a refused login, and retries only when asked', async () => {
    const { fleet, transport, clock } = fleetOf(['m1'])
    transport.onAttempt = ({ fail }) => fail({ kind: 'authentication', phase: 'authentication', reason: 'no key fits' })
    fleet.connect(['m1'])
    await settle()
    clock.advance(600_000)
    await settle()
    expect(fleet.session('m1')).toMatchObject({ kind: 'failed', failure: { reason: 'no key fits' } })
    expect(transport.attempts).toHaveLength(1)
    fleet.reconnect(['m1'])
    await settle()
    expect(transport.attempts).toHaveLength(2)
  })

  it('makes only one attempt if retries are off', async () => {
    const { fleet, transport } = fleetOf(['m1'], { retries: false })
    transport.onAttempt = ({ fail }) => fail(UNREACHABLE)
    fleet.connect(['m1'])
    await settle()
    expect(fleet.session('m1').kind).toBe('failed')
  })

  it('says which transport is missing', async () => {
    const { fleet } = fleetOf([])
    fleet.add({ ...endpointOf('m1'), transport: 'openssh' })
    fleet.connect(['m1'])
    await settle()
    expect(fleet.session('m1')).toMatchObject({ kind: 'failed', failure: { kind: 'configuration' } })
  })

  it('closes a connection that comes too late', async () => {
    const { fleet, transport } = fleetOf(['m1'])
    transport.answersAtOnce = false
    fleet.connect(['m1'])
    await settle()
    const connection = transport.attempts[0]!.succeed()
    fleet.close(['m1'])
    await settle()
    expect(connection.isClosed).toBe(true)
    expect(fleet.session('m1')).toEqual({ kind: 'closed' })
  })
})

describe('a fleet that loses hosts', () => {
  it('ends the shell, waits, and comes back with a new shell of the last size', async () => {
    const { fleet, transport, clock, events } = await connectedFleet(['m1'])
    fleet.resize('m1', { columns: 120, rows: 40 })
    events.length = 0
    transport.connections.get('m1')!.context.onLost('keep-alive unanswered')
    expect(events.map((event) => ('state' in event ? event.state.kind : event.type))).toEqual([
      'ended',
      'lost',
      'waiting',
    ])
    expect(fleet.connection('m1')).toBeUndefined()
    expect(fleet.write(['m1'], bytes('x')).skipped).toEqual([{ host: 'm1', reason: 'reconnecting' }])
    clock.advance(1000)
    await settle()
    expect(fleet.shell('m1')).toEqual({ kind: 'open' })
    expect(transport.shell('m1').options.size).toEqual({ columns: 120, rows: 40 })
  })

  it('ignores events of a connection that it closed itself', async () => {
    const { fleet, transport } = await connectedFleet(['m1'])
    const { context } = transport.connections.get('m1')!
    const { handlers } = transport.shell('m1')
    fleet.close(['m1'])
    context.onLost('closed')
    handlers.onEnd({ kind: 'exit', code: 0 })
    expect(fleet.session('m1')).toEqual({ kind: 'closed' })
    expect(fleet.shell('m1')).toEqual({ kind: 'none' })
  })

  it('notices a connection that is lost the moment it is ready', async () => {
    const { fleet, transport } = fleetOf(['m1'])
    transport.onAttempt = ({ succeed, context }) => {
      succeed()
      context.onLost('reset')
    }
    fleet.connect(['m1'])
    await settle()
    expect(fleet.session('m1')).toMatchObject({ kind: 'waiting', reason: 'reset' })
  })

  it('reopens a shell that the user ended only when asked, and leaves a live one alone', async () => {
    const { fleet, transport, clock } = await connectedFleet(['m1', 'm2'])
    transport.shell('m1').handlers.onEnd({ kind: 'exit', code: 0 })
    expect(fleet.write(['m1', 'm2'], bytes('x'))).toEqual({
      sent: ['m2'],
      skipped: [{ host: 'm1', reason: 'shell ended' }],
    })
    transport.connections.get('m1')!.context.onLost('reset')
    clock.advance(2000)
    await settle()
    expect(fleet.session('m1').kind).toBe('ready')
    expect(fleet.shell('m1').kind).toBe('ended')
    const live = transport.shell('m2')
    fleet.reconnect(['m1', 'm2'])
    await settle()
    expect(fleet.shell('m1')).toEqual({ kind: 'open' })
    expect(transport.shell('m2')).toBe(live)
  })

  it('reconnects a waiting host at once when asked', async () => {
    const { fleet, transport } = await connectedFleet(['m1'])
    transport.connections.get('m1')!.context.onLost('reset')
    expect(fleet.session('m1').kind).toBe('waiting')
    fleet.reconnect(['m1'])
    await settle()
    expect(fleet.session('m1').kind).toBe('ready')
  })

  it('says why no shell was opened', async () => {
    const { fleet, transport } = fleetOf(['m1'])
    transport.onAttempt = ({ succeed }) => {
      succeed().shellRefusal = 'the server refused a shell'
    }
    fleet.connect(['m1'])
    await settle()
    expect(fleet.shell('m1')).toEqual({ kind: 'ended', end: { kind: 'lost', reason: 'the server refused a shell' } })
    expect(fleet.session('m1').kind).toBe('ready')
  })
})

describe('typing into a fleet', () => {
  it('reaches exactly the hosts that were named', async () => {
    const { fleet, transport } = await connectedFleet(['m1', 'm2', 'm3'])
    expect(fleet.write(['m1', 'm3'], bytes('ls\r'))).toEqual({ sent: ['m1', 'm3'], skipped: [] })
    expect(['m1', 'm2', 'm3'].map((host) => transport.shell(host).text)).toEqual(['ls\r', '', 'ls\r'])
  })

  it('reports why a host got nothing', async () => {
    const { fleet, transport } = fleetOf(['idle', 'asking', 'down', 'closed'])
    transport.onAttempt = ({ host, fail }) => {
      if (host === 'down') fail(UNREACHABLE)
    }
    fleet.connect(['asking', 'down', 'closed'])
    fleet.close(['closed'])
    await settle()
    const report = fleet.write(['idle', 'asking', 'down', 'closed', 'nobody'], bytes('x'))
    expect(report.sent).toEqual([])
    expect(report.skipped.map(({ host, reason }) => `${host}: ${reason}`)).toEqual([
      'idle: waiting to connect',
      'asking: connecting',
      'down: unreachable',
      'closed: closed',
      'nobody: waiting to connect',
    ])
  })

  it('keeps the order on a slow host, says that it lags, and delays no other', async () => {
    const { fleet, transport, events } = await connectedFleet(['slow', 'quick'])
    const slow = transport.shell('slow')
    slow.hasRoom = false
    fleet.write(['slow', 'quick'], bytes('1'))
    fleet.write(['slow', 'quick'], bytes('2'))
    fleet.write(['slow', 'quick'], Buffer.alloc(5000, '3'))
    expect(slow.text).toBe('1')
    expect(transport.shell('quick').text).toHaveLength(5002)
    slow.drain()
    expect(slow.text).toBe(`12${'3'.repeat(5000)}`)
    expect(events.filter(({ type }) => type === 'lagging')).toEqual([
      { type: 'lagging', host: 'slow', queuedBytes: 5001 },
      { type: 'lagging', host: 'slow', queuedBytes: 0 },
    ])
  })

  it('skips a host whose queue is full, without sending it a part of what was typed', async () => {
    const { fleet, transport } = await connectedFleet(['m1'])
    const shell = transport.shell('m1')
    shell.hasRoom = false
    fleet.write(['m1'], bytes('a'))
    expect(fleet.write(['m1'], Buffer.alloc(WRITE_QUEUE_LIMIT_BYTES - 1)).sent).toEqual(['m1'])
    expect(fleet.write(['m1'], bytes('bc')).skipped).toEqual([{ host: 'm1', reason: 'queue full' }])
    expect(fleet.write(['m1'], bytes('d')).sent).toEqual(['m1'])
    shell.drain()
    expect(shell.text.endsWith('\0d')).toBe(true)
  })

  it('drops queued input of a full host in favour of an interrupt, and says so', async () => {
    const { fleet, transport } = await connectedFleet(['m1'])
    const shell = transport.shell('m1')
    shell.hasRoom = false
    fleet.write(['m1'], bytes('a'))
    fleet.write(['m1'], Buffer.alloc(WRITE_QUEUE_LIMIT_BYTES))
    expect(fleet.write(['m1'], bytes('\x03'))).toEqual({
      sent: ['m1'],
      skipped: [],
      discarded: [{ host: 'm1', bytes: WRITE_QUEUE_LIMIT_BYTES }],
    })
    shell.drain()
    expect(shell.text).toBe('a\x03')
  })

  it('keeps an interrupt in order while there is room', async () => {
    const { fleet, transport } = await connectedFleet(['m1'])
    const shell = transport.shell('m1')
    shell.hasRoom = false
    for (const key of ['a', 'b', '\x03', 'c']) fleet.write(['m1'], bytes(key))
    shell.drain()
    expect(shell.text).toBe('ab\x03c')
  })

  it('does not send to a new shell what was typed into the old one', async () => {
    const { fleet, transport, clock } = await connectedFleet(['m1'])
    transport.shell('m1').hasRoom = false
    fleet.write(['m1'], bytes('a'))
    fleet.write(['m1'], bytes('rm -rf x\r'))
    transport.connections.get('m1')!.context.onLost('reset')
    clock.advance(1000)
    await settle()
    fleet.write(['m1'], bytes('ls\r'))
    expect(transport.shell('m1').text).toBe('ls\r')
  })

  it('sends every host exactly what it reported as sent, in order, whatever fills and drains', async () => {
    const names = ['m1', 'm2', 'm3']
    const step = fc.oneof(
      { weight: 4, arbitrary: fc.subarray(names).map((hosts) => ({ kind: 'write' as const, hosts })) },
      fc.constantFrom(...names).map((host) => ({ kind: 'fill' as const, host })),
      fc.constantFrom(...names).map((host) => ({ kind: 'drain' as const, host })),
      fc.constantFrom(...names).map((host) => ({ kind: 'end' as const, host })),
    )
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 60 }), async (steps) => {
        const { fleet, transport } = await connectedFleet(names)
        const reported = new Map(names.map((name) => [name, '']))
        steps.forEach((each, index) => {
          if (each.kind === 'write') {
            const { sent, skipped } = fleet.write(each.hosts, bytes(`${index},`))
            expect([...sent, ...skipped.map(({ host }) => host)].sort()).toEqual([...each.hosts].sort())
            for (const host of sent) reported.set(host, `${reported.get(host)}${index},`)
          } else if (each.kind === 'fill') transport.shell(each.host).hasRoom = false
          else if (each.kind === 'drain') transport.shell(each.host).drain()
          else transport.shell(each.host).handlers.onEnd({ kind: 'exit', code: 0 })
        })
        for (const name of names) {
          const isAlive = fleet.shell(name).kind === 'open'
          transport.shell(name).drain()
          if (isAlive) expect(transport.shell(name).text).toBe(reported.get(name))
          else expect(reported.get(name)?.startsWith(transport.shell(name).text)).toBe(true)
        }
        fleet[Symbol.dispose]()
      }),
    )
  })

  it('reports a shell whose write throws as skipped, and types into the others', async () => {
    const { fleet, transport } = await connectedFleet(['m1', 'm2'])
    transport.shell('m1').write = () => {
      throw new Error('channel is gone')
    }
    expect(fleet.write(['m1', 'm2'], bytes('x'))).toEqual({
      sent: ['m2'],
      skipped: [{ host: 'm1', reason: 'channel is gone' }],
    })
  })
})

describe('a fleet of shells', () => {
  it('sends several resizes as one, and none without a change', async () => {
    const { fleet, transport, clock } = await connectedFleet(['m1'])
    for (const columns of [90, 100, 110]) fleet.resize('m1', { columns, rows: 30 })
    clock.advance(50)
    fleet.resize('m1', { columns: 110, rows: 30 })
    clock.advance(50)
    expect(transport.shell('m1').sizes).toEqual([{ columns: 110, rows: 30 }])
  })

  it('sends a resize that came while the shell was being opened', async () => {
    const { fleet, transport } = fleetOf(['m1'])
    fleet.connect(['m1'])
    fleet.on((event) => {
      if (event.type === 'shell' && event.state.kind === 'opening') fleet.resize('m1', { columns: 99, rows: 9 })
    })
    await settle()
    const shell = transport.shell('m1')
    expect(shell.sizes.at(-1) ?? shell.options.size).toEqual({ columns: 99, rows: 9 })
  })

  it('pauses and resumes a host', async () => {
    const { fleet, transport } = await connectedFleet(['m1'])
    fleet.pause('m1')
    expect(transport.shell('m1').isPaused).toBe(true)
    fleet.resume('m1')
    expect(transport.shell('m1').isPaused).toBe(false)
  })

  it('passes data to its listeners with the host it came from', async () => {
    const { transport, events } = await connectedFleet(['m1'])
    transport.shell('m1').handlers.onData(bytes('hello'))
    expect(events.at(-1)).toEqual({ type: 'data', host: 'm1', bytes: bytes('hello') })
  })

  it('adds and removes hosts while it runs', async () => {
    const { fleet, transport, events } = await connectedFleet(['m1'])
    expect(() => fleet.add(endpointOf('m1'))).toThrow(MusterError)
    fleet.add(endpointOf('m2', 2))
    fleet.connect(['m2'])
    await settle()
    fleet.remove('m1')
    expect(fleet.hosts).toEqual(['m2'])
    expect(transport.connections.get('m1')!.isClosed).toBe(true)
    expect(fleet.endpoint('m1')).toBeUndefined()
    expect(events.at(-1)).toEqual({ type: 'removed', host: 'm1' })
  })

  it('closes everything and stops every timer when it is disposed of', async () => {
    const { fleet, transport, clock, events } = await connectedFleet(['m1', 'm2'])
    transport.connections.get('m2')!.context.onLost('reset')
    const shell = transport.shell('m1')
    events.length = 0
    fleet[Symbol.dispose]()
    expect(shell.isClosed).toBe(true)
    expect(transport.connections.get('m1')!.isClosed).toBe(true)
    expect(clock.timerCount).toBe(0)
    expect(events).toEqual([])
  })
})

describe('connections of a fleet that are lent', () => {
  it('tell what runs over them when the fleet closes them, unless it has ended', async () => {
    const { fleet, transport } = await connectedFleet(['m1', 'm2'])
    const started: ExecHandlers[] = []
    let closed = 0
    const exec: Connection['exec'] = async (_command, handlers) => {
      started.push(handlers)
      const nothing = () => {}
      return {
        write: () => true,
        pause: nothing,
        resume: nothing,
        endInput: nothing,
        signal: nothing,
        close: () => closed++,
      }
    }
    for (const connection of transport.connections.values()) Object.assign(connection, { exec })
    const lender = createFleetTransport(fleet)
    const ends: (readonly [string, ChannelEnd])[] = []
    const run = async (host: string, name: string) => {
      const connection = await lender.connect(endpointOf(host), {} as ConnectContext)
      const onEnd = (end: ChannelEnd) => ends.push([name, end])
      return await connection.exec(name, { onStdout() {}, onStderr() {}, onEnd })
    }
    await run('m1', 'runs')
    await run('m1', 'has ended')
    const left = await run('m1', 'was left')
    await run('m2', 'runs elsewhere')
    started[1]?.onEnd({ kind: 'exit', code: 0 })
    left.close()
    expect(closed).toBe(1)
    fleet.remove('m1')
    started[0]?.onEnd({ kind: 'exit', code: 0 })
    expect(ends).toEqual([
      ['has ended', { kind: 'exit', code: 0 }],
      ['runs', { kind: 'lost', reason: 'the connection was closed' }],
    ])
    fleet.close(['m2'])
    expect(ends.at(-1)).toEqual(['runs elsewhere', { kind: 'lost', reason: 'the connection was closed' }])
  })

  it('are refused with the reason while they are being made, for the first time or again', async () => {
    const { fleet, transport, clock } = fleetOf(['m1'])
    transport.answersAtOnce = false
    const refused = async () =>
      await createFleetTransport(fleet)
        .connect(endpointOf('m1'), { signal: new AbortController().signal } as ConnectContext)
        .catch(String)
    fleet.connect(['m1'])
    await settle()
    expect(await refused()).toContain('it is still being connected')
    transport.attempts[0]?.fail(UNREACHABLE)
    await settle()
    expect(await refused()).toContain('no connection: connection refused')
    clock.advance(60_000)
    await settle()
    // It is tried again just now.
    expect(await refused()).toContain('no connection: connection refused')
  })

  it('are made for a retry, without waiting until the next attempt is due', async () => {
    const { fleet, transport } = fleetOf(['m1'])
    const refuse = (attempt: (typeof transport.attempts)[number]) => attempt.fail(UNREACHABLE)
    transport.onAttempt = refuse
    fleet.connect(['m1'])
    await settle()
    const retry = async () =>
      await createConnectingTransport(fleet)
        .connect(endpointOf('m1'), { signal: new AbortController().signal } as ConnectContext)
        .then(
          () => 'connected',
          (error: unknown) => String(error),
        )
    expect(await retry()).toContain('no connection: connection refused')
    expect(transport.attempts).toHaveLength(2)
    transport.onAttempt = undefined
    expect(await retry()).toBe('connected')
    expect(await retry()).toBe('connected')
    expect(transport.attempts).toHaveLength(3)
  })
})
