import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { chmod, mkdir, readdir, writeFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'
import { PassThrough } from 'node:stream'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import type { Endpoint } from '../../../src/inventory/host.ts'
import {
  type EmbeddedHosts,
  embeddedEndpoints,
  startEmbeddedHosts,
} from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { findKeeper } from '../../../src/ssh/persist/persist-transport.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import type { ChannelEnd, Connection } from '../../../src/ssh/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { failureOf, nobody, openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { keeperSetup } from './keeper-setup.ts'

let embedded: EmbeddedHosts
let m1: Endpoint
const accepted = () => embedded.host('m1').acceptedCount

beforeAll(async () => {
  embedded = await startEmbeddedHosts({
    count: 2,
    spawnPty: spawnLocalPty,
    authentications: ['publickey', 'password'],
    password: 'open sesame',
  })
  m1 = embeddedEndpoints(embedded)[0]!
})
afterAll(() => embedded.close())

describe('warm connections', () => {
  it('run the next program’s command without a new connection', async () => {
    await using setup = await keeperSetup()
    const before = accepted()
    for (const word of ['one', 'two']) {
      using program = setup.program()
      const connection = await program.connect(m1, watchedContext())
      expect(await run(connection, `echo ${word}; echo err >&2; exit 3`)).toEqual({
        stdout: `${word}\n`,
        stderr: 'err\n',
        end: { kind: 'exit', code: 3 },
      })
      connection.close()
    }
    expect(accepted()).toBe(before + 1)
    expect(setup.startedCount).toBe(1)
    expect(setup.warnings).toEqual([])
  })

  it('tell every program what the server prints before the login, and what it says during it', async () => {
    await using setup = await keeperSetup()
    const real = createSsh2Transport()
    void setup.startKeeper({
      connect(endpoint, context) {
        context.onBanner?.('AUTHORIZED USE\n')
        context.onWords?.('A push was sent to your phone')
        return real.connect(endpoint, context)
      },
    })
    const said: string[] = []
    for (const name of ['one', 'two']) {
      using program = setup.program()
      const connection = await program.connect(m1, {
        ...watchedContext(),
        onBanner: (text) => said.push(`${name} banner ${text}`),
        onWords: (text) => said.push(`${name} words ${text}`),
      })
      connection.close()
    }
    expect([...new Set(said)]).toEqual([
      'one banner AUTHORIZED USE\n',
      'one words A push was sent to your phone',
      'two banner AUTHORIZED USE\n',
    ])
  })

  it('carry shells, input of any size and forwards', async () => {
    await using setup = await keeperSetup()
    const connection = await setup.program().connect(m1, watchedContext())

    const watched = await openWatchedShell(connection)
    watched.type('echo $((6 * 7))\n')
    await watched.shows(/\b42\b/)
    watched.shell.close()

    const sizeBytes = 3_000_000
    let echoed = 0
    const { promise: ended, resolve } = Promise.withResolvers<ChannelEnd>()
    const drained = Promise.withResolvers<void>()
    const remote = await connection.exec('cat', {
      onDrain: drained.resolve,
      onStdout: (bytes) => {
        echoed += bytes.length
      },
      onStderr: () => {},
      onEnd: resolve,
    })
    expect(remote.write(new Uint8Array(sizeBytes))).toBe(false)
    await drained.promise
    remote.endInput()
    expect(await ended).toEqual({ kind: 'exit', code: 0 })
    expect(echoed).toBe(sizeBytes)
  })

  it('hold back a flood only for the program that pauses', async () => {
    await using setup = await keeperSetup()
    const connection = await setup.program().connect(m1, watchedContext())
    let arrived = 0
    const flood = await connection.exec('head -c 20000000 /dev/zero', {
      onStdout: (bytes) => {
        arrived += bytes.length
        flood?.pause()
      },
      onStderr: () => {},
      onEnd: () => {},
    })
    await waitUntil(() => arrived > 0, 'the first bytes')
    expect((await run(connection, 'echo free')).stdout).toBe('free\n')
    expect(arrived).toBeLessThan(1_000_000)
    flood.close()
  })

  it('ask their questions in the program, and keep no answer', async () => {
    await using setup = await keeperSetup()
    const endpoint: Endpoint = { ...m1, identityFiles: [], authentications: ['password'] }
    let asked = 0
    const credentials = {
      ...nobody,
      password: async () => {
        asked += 1
        return new Secret('open sesame')
      },
    }
    const first = await setup.program().connect(endpoint, watchedContext({ credentials }))
    expect((await run(first, 'echo in')).stdout).toBe('in\n')
    expect(asked).toBe(1)
    using keeper = await findKeeper(setup.directory)
    await keeper?.stop()
    const failure = await failureOf(setup.program().connect(endpoint, watchedContext()))
    expect(failure.phase).toBe('authentication')
  })

  it('end the connection for streams when the keeper ends', async () => {
    await using setup = await keeperSetup()
    let closedCount = 0
    const streams: Partial<Connection> = {
      connectTcp: async () => new PassThrough(),
      close: () => {
        closedCount += 1
      },
    }
    const program = setup.program({ direct: { connect: async () => streams as Connection } })
    const connection = await program.connect(m1, watchedContext())
    await connection.connectTcp('localhost', 80)
    using keeper = await findKeeper(setup.directory)
    await keeper?.stop()
    await waitUntil(() => closedCount === 1, 'the end of the connection for streams')
  })

  it('report to a program why its host cannot be reached', async () => {
    await using setup = await keeperSetup()
    const failure = await failureOf(
      setup.program().connect({ ...m1, strictHostKeyChecking: 'yes', knownHostsFiles: [] }, watchedContext()),
    )
    expect(failure).toMatchObject({ kind: 'host-key', phase: 'host-key' })
  })

  it('share nothing between different routes to the same host', async () => {
    await using setup = await keeperSetup()
    const before = accepted()
    const program = setup.program()
    const credentials = { ...nobody, password: async () => new Secret('open sesame') }
    await program.connect(m1, watchedContext())
    await program.connect({ ...m1, authentications: ['password'] }, watchedContext({ credentials }))
    expect(accepted()).toBe(before + 2)
  })

  it('end what a program ran when the program is gone', async () => {
    await using setup = await keeperSetup()
    const program = setup.program()
    const connection = await program.connect(m1, watchedContext())
    const { promise: pid, resolve } = Promise.withResolvers<number>()
    // It ends when its input does.
    await connection.exec('echo $$; exec cat', {
      onStdout: (bytes) => resolve(Number(Buffer.from(bytes).toString())),
      onStderr: () => {},
      onEnd: () => {},
    })
    const remotePid = await pid
    expect(isAlive(remotePid)).toBe(true)
    program[Symbol.dispose]()
    await waitUntil(() => !isAlive(remotePid), 'the command to end')
    using keeper = await findKeeper(setup.directory)
    expect(await keeper?.list()).toMatchObject([{ host: 'm1', users: 0 }])
  })

  it('end when they are unused, and the keeper with the last one', async () => {
    await using setup = await keeperSetup()
    const keeper = Promise.withResolvers<void>()
    using program = setup.program({
      persistMs: 50,
      startKeeper: () => void setup.startKeeper().then(keeper.resolve),
    })
    const connection = await program.connect(m1, watchedContext())
    const open = embedded.host('m1').connectionCount
    connection.close()
    await waitUntil(() => embedded.host('m1').connectionCount === open - 1, 'the connection to end')
    program[Symbol.dispose]()
    await keeper.promise
    expect(await readdir(setup.directory)).toEqual(['token'])
  })

  it('stay as long as the endpoint asks for, and not at all if the program says no', async () => {
    await using setup = await keeperSetup()
    const direct = createSsh2Transport()
    const asked = setup.program({ direct, persistMs: undefined })
    const [plain, warm, denied] = await Promise.all([
      asked.connect(m1, watchedContext()),
      asked.connect({ ...m1, persistMs: 60_000 }, watchedContext()),
      setup.program({ direct, persistMs: 0 }).connect({ ...m1, persistMs: 60_000 }, watchedContext()),
    ])
    for (const connection of [plain, warm, denied]) connection.close()
    using keeper = await findKeeper(setup.directory)
    await waitUntil(async () => (await keeper?.list())?.[0]?.users === 0, 'the end of its use')
    expect(await keeper?.list()).toMatchObject([{ host: 'm1', users: 0 }])
  })

  it('are listed, and ended on request', async () => {
    await using setup = await keeperSetup()
    const context = watchedContext()
    await setup.program().connect(m1, context)
    using keeper = await findKeeper(setup.directory)
    expect(await keeper?.stop([{ user: 'somebody-else', address: m1.address, port: m1.port }])).toEqual([])
    expect(await keeper?.stop([m1])).toMatchObject([{ host: 'm1', users: 1 }])
    expect(await context.lost).toContain('stopped')
    expect(await keeper?.list()).toEqual([])
  })

  it('report a lost connection, and connect again', async () => {
    await using setup = await keeperSetup()
    const program = setup.program()
    const context = watchedContext()
    await program.connect(m1, context)
    embedded.host('m1').dropConnections()
    await context.lost
    const connection = await program.connect(m1, watchedContext())
    expect((await run(connection, 'echo again')).stdout).toBe('again\n')
  })
})

describe('a problem with the keeper', () => {
  it('a killed keeper loses its connections, and the next program starts a new one', async () => {
    await using setup = await keeperSetup()
    using program = setup.program({ startKeeper: () => void setup.startProcess() })
    const context = watchedContext()
    await program.connect(m1, context)
    const [process] = setup.processes
    process?.kill('SIGKILL')
    expect(await context.lost).toContain('keeper')
    expect(existsSync(setup.address)).toBe(true)
    const connection = await setup.program().connect(m1, watchedContext())
    expect((await run(connection, 'echo again')).stdout).toBe('again\n')
    expect(setup.warnings).toEqual([])
  })

  it('many programs at once start one keeper that serves all of them', async () => {
    await using setup = await keeperSetup()
    const before = accepted()
    const connections = await Promise.all(
      Array.from({ length: 6 }, () => setup.program().connect(m1, watchedContext())),
    )
    const answers = await Promise.all(connections.map((connection, index) => run(connection, `echo ${index}`)))
    expect(answers.map(({ stdout }) => stdout)).toEqual(['0\n', '1\n', '2\n', '3\n', '4\n', '5\n'])
    expect(accepted()).toBe(before + 1)
  })

  it('a directory that others may enter is refused, and the connection is made without the keeper', async () => {
    await using setup = await keeperSetup()
    await mkdir(setup.directory)
    await chmod(setup.directory, 0o755)
    const connection = await setup.program({ direct: createSsh2Transport() }).connect(m1, watchedContext())
    expect((await run(connection, 'echo direct')).stdout).toBe('direct\n')
    expect(setup.warnings).toEqual([expect.stringContaining('is accessible to others (mode 755)')])
    expect(setup.startedCount).toBe(0)
    connection.close()
  })

  it('a secret that others may read is refused', async () => {
    await using setup = await keeperSetup()
    await mkdir(setup.directory, { mode: 0o700 })
    await writeFile(`${setup.directory}/token`, Buffer.alloc(32), { mode: 0o644 })
    // Somebody listens there, so that the secret is looked at.
    const connection = await setup.program({ direct: createSsh2Transport() }).connect(m1, watchedContext())
    expect(setup.warnings).toEqual([expect.stringContaining('token is accessible to others')])
    connection.close()
  })

  it('many silent clients at the socket are rejected, and programs are still served', async () => {
    await using setup = await keeperSetup()
    const program = setup.program()
    ;(await program.connect(m1, watchedContext())).close()
    let turnedAway = 0
    const strangers = Array.from({ length: 70 }, () => connect(setup.address).on('error', () => {}))
    for (const stranger of strangers) stranger.once('close', () => (turnedAway += 1)).resume()
    await waitUntil(() => turnedAway === 6, 'those that are too many to be turned away')
    const connection = await program.connect(m1, watchedContext())
    expect((await run(connection, 'echo ok')).stdout).toBe('ok\n')
    for (const stranger of strangers) stranger.destroy()
  })

  it('something else at the socket gets no question and no answer', async () => {
    await using setup = await keeperSetup()
    await mkdir(setup.directory, { mode: 0o700 })
    let heard = ''
    const stranger = createServer((socket) => {
      socket.on('data', (bytes) => {
        heard += bytes.toString('latin1')
        socket.write('SSH-2.0-what?\r\n and more')
      })
      socket.on('error', () => {})
    }).listen(setup.address)
    await once(stranger, 'listening')
    const program = setup.program({ direct: createSsh2Transport(), startKeeper: () => {} })
    const connecting = program.connect(m1, watchedContext())
    await waitUntil(() => heard !== '', 'the greeting')
    stranger.close()
    await once(stranger, 'close')
    void setup.startKeeper()
    const connection = await connecting
    expect((await run(connection, 'echo ok')).stdout).toBe('ok\n')
    expect(heard).not.toContain(m1.address)
  })
})

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}
