import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { freePort, type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { failureOf, openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'
import { waitUntil } from '../../support/wait-until.ts'

const transport = createSsh2Transport()

/** A plain TCP server on loopback; `peers` are the sockets that came. `allowHalfOpen`: they stay open when the other end closes. */
async function listen(onConnection: (socket: Socket) => void, allowHalfOpen = false) {
  const peers: Socket[] = []
  const server: Server = createServer({ allowHalfOpen }, (socket) => {
    peers.push(socket)
    socket.on('error', () => {}).resume()
    onConnection(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const peer of peers) peer.destroy()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  const endpoint = endpointOf('m1', { address: '127.0.0.1', port, strictHostKeyChecking: 'no' })
  return { endpoint, peers }
}

/** SSH_MSG_DISCONNECT before any keys (RFC 4253, sections 6 and 11.1). */
function disconnectPacket(code: number, words: string): Buffer {
  const numberOf = (value: number) => Buffer.from([0, 0, 0, value])
  const text = Buffer.from(words)
  const payload = Buffer.concat([Buffer.from([1]), numberOf(code), numberOf(text.length), text, numberOf(0)])
  const paddingBytes = 4 + ((8 - ((5 + payload.length + 4) % 8)) % 8)
  const length = numberOf(1 + payload.length + paddingBytes)
  return Buffer.concat([length, Buffer.from([paddingBytes]), payload, Buffer.alloc(paddingBytes)])
}

describe('servers that do not behave', () => {
  it('are refused when nothing listens on the port', async () => {
    const endpoint = endpointOf('m1', { address: '127.0.0.1', port: await freePort() })
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    expect(failure).toMatchObject({ kind: 'unreachable', phase: 'tcp' })
    expect(failure.reason).toContain(`root@127.0.0.1:${endpoint.port}: connection refused`)
    expect(failure.hint).toContain('sshd')
  })

  it('fail in time when they do not accept the connection, and the text says what to check', async () => {
    const script =
      'const s = require("net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, () => console.log(s.address().port))'
    const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
    const [line] = (await once(child.stdout, 'data')) as [Buffer]
    const port = Number(String(line))
    // While it is stopped, it accepts no connection: a few fill the queue of the kernel, and the next ones are not answered.
    child.kill('SIGSTOP')
    const callers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}))
    onTestFinished(() => {
      for (const caller of callers) caller.destroy()
      child.kill('SIGKILL')
    })
    await waitUntil(() => callers.some(({ connecting }) => !connecting), 'the first caller')
    const endpoint = endpointOf('m1', { address: '127.0.0.1', port, connectTimeoutMs: 300 })
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    expect(failure).toMatchObject({ kind: 'unreachable', phase: 'tcp' })
    expect(failure.reason).toContain('no answer within 0.3 s')
    expect(failure.hint).toContain('firewall')
  })

  it('fail in time when they say nothing, and leave nothing open', async () => {
    const { endpoint, peers } = await listen(() => {})
    const failure = await failureOf(transport.connect({ ...endpoint, connectTimeoutMs: 2_000 }, watchedContext()))
    expect(failure).toMatchObject({ kind: 'unreachable', phase: 'banner' })
    expect(failure.reason).toContain('sent no SSH banner within 2 s')
    await waitUntil(() => peers[0]!.closed || peers[0]!.readableEnded, 'the socket to close')
  })

  it('fail in time when they hang after the banner, and the text says so', async () => {
    const { endpoint } = await listen((socket) => socket.write('SSH-2.0-Hanging_1.0\r\n'))
    const failure = await failureOf(transport.connect({ ...endpoint, connectTimeoutMs: 2_000 }, watchedContext()))
    expect(failure.phase).toBe('banner')
    expect(failure.reason).toContain('(Hanging_1.0) but did not finish the key exchange')
  })

  it.each([2, 11])('fail at once when they disconnect and keep the socket open (reason %i)', async (code) => {
    const hello = Buffer.concat([Buffer.from('SSH-2.0-Full_1.0\r\n'), disconnectPacket(code, 'come\u001b back later')])
    const { endpoint } = await listen((socket) => socket.write(hello), true)
    const connecting = transport.connect({ ...endpoint, connectTimeoutMs: 3_600_000 }, watchedContext())
    const failure = await failureOf(connecting)
    expect(failure).toMatchObject({ kind: 'unreachable', phase: 'banner' })
    expect(failure.reason).toMatch(/ broke off the key exchange: come\\x1b back later$/)
  })

  it('are distinguished from SSH servers, and what they said is made printable', async () => {
    const { endpoint } = await listen((socket) => socket.end('HTTP/1.1 400 Bad\u001b[31m Request\r\n\r\n'))
    const failure = await failureOf(createSsh2Transport({ random: () => 0 }).connect(endpoint, watchedContext()))
    expect(failure).toMatchObject({ kind: 'unreachable', phase: 'banner' })
    expect(failure.reason).toContain('it said "HTTP/1.1 400 Bad\\x1b[31m Request"')
  })

  it('are tried again when they drop the connection before their banner', async () => {
    let calls = 0
    const { endpoint } = await listen((socket) => {
      calls += 1
      socket.end('Exceeded MaxStartups\r\n')
    })
    const failure = await failureOf(createSsh2Transport({ random: () => 0 }).connect(endpoint, watchedContext()))
    expect(calls).toBe(5)
    expect(failure.reason).toContain('Exceeded MaxStartups')
  })

  it('cause a normal failure with any rubbish after the banner', async () => {
    const { endpoint } = await listen((socket) =>
      socket.end(`SSH-2.0-Rubbish\r\n${'\u0000\u0000\u0001\u0000'.repeat(400)}`),
    )
    expect((await failureOf(transport.connect(endpoint, watchedContext()))).kind).toBe('unreachable')
  })

  it('are not left without a reason when they refuse a channel without one', async () => {
    const { endpoint } = await startInProcessServer(
      (attempt) => attempt.accept(),
      (client) => client.on('session', (_accept, reject) => reject()),
    )
    const connection = await transport.connect(endpoint(), watchedContext())
    const { reason } = await failureOf(run(connection, 'true'))
    expect(reason).toMatch(/^cannot open a command on \S+: the host refused it without a reason$/)
    connection.close()
  })

  it.each([
    'before it begins',
    'while it waits for the banner',
  ])('end at once when the attempt is stopped %s', async (when) => {
    const abort = new AbortController()
    const { endpoint, peers } = await listen(() => {})
    if (when === 'before it begins') abort.abort()
    const failing = failureOf(transport.connect(endpoint, watchedContext({ signal: abort.signal })))
    if (!abort.signal.aborted) {
      await waitUntil(() => peers.length === 1, 'the connection')
      abort.abort()
    }
    expect((await failing).kind).toBe('declined')
    await waitUntil(() => peers.every((peer) => peer.closed || peer.readableEnded), 'the sockets to close')
  })
})

describe.skipIf(!requirement('sshd', 'ssh-keygen', 'ps'))('connections to a real sshd that break', () => {
  let server: OpenSshServer
  beforeEach(async () => {
    server = await startOpenSshServer()
  })
  afterEach(() => server.stop())

  it('are reported lost once, and so is their shell, when sshd is killed', async () => {
    const context = watchedContext()
    const connection = await transport.connect(server.endpoint(), context)
    const watched = await openWatchedShell(connection)
    await server.killChildren()
    expect(await context.lost).toBe('the server closed the connection')
    expect(await watched.ended).toEqual({ kind: 'lost', reason: 'the server closed the connection' })
    await expect(run(connection, 'true')).rejects.toMatchObject({ failure: { kind: 'unreachable', phase: 'shell' } })
  })

  it('are detected by keep-alives when the server is silent', async () => {
    const context = watchedContext()
    const endpoint = server.endpoint({ keepAliveIntervalMs: 100, keepAliveMaxMissed: 3 })
    const connection = await transport.connect(endpoint, context)
    const watched = await openWatchedShell(connection)
    for (const pid of server.children()) process.kill(pid, 'SIGSTOP')
    expect(await context.lost).toBe('no answer for 0.3 s')
    expect((await watched.ended).kind).toBe('lost')
  })

  it('stay open when they are quiet but the server answers keep-alives', async () => {
    const context = watchedContext()
    const connection = await transport.connect(
      server.endpoint({ keepAliveIntervalMs: 100, keepAliveMaxMissed: 30 }),
      context,
    )
    expect((await run(connection, 'sleep 4; echo still here')).stdout).toBe('still here\n')
    connection.close()
  })

  it('stay open while bytes come, even if the answers to keep-alives come far behind them', async () => {
    const { port, hostKeyAlias = `[127.0.0.1]:${server.endpoint().port}` } = server.endpoint()
    const slow = await listen((client) => {
      const upstream = connect(port, '127.0.0.1').on('error', () => {})
      const queued: Buffer[] = []
      upstream.on('data', (bytes: Buffer) => queued.push(bytes))
      client.on('data', (bytes) => upstream.write(bytes))
      // About 100 KB/s.
      const trickle = setInterval(() => {
        const bytes = Buffer.concat(queued.splice(0))
        if (bytes.length > 2048) queued.push(bytes.subarray(2048))
        client.write(bytes.subarray(0, 2048))
      }, 20)
      client.once('close', () => {
        clearInterval(trickle)
        upstream.destroy()
      })
    })
    const endpoint = server.endpoint({ port: slow.endpoint.port, hostKeyAlias, keepAliveIntervalMs: 100 })
    const connection = await transport.connect({ ...endpoint, keepAliveMaxMissed: 3 }, watchedContext())
    expect((await run(connection, 'head -c 200000 /dev/zero')).stdout).toHaveLength(200_000)
    connection.close()
  })

  it.each([
    'name',
    'tcp',
    'banner',
    'host-key',
    'authentication',
  ])('leave nothing open when stopped in phase %s', async (phase) => {
    const abort = new AbortController()
    const context = watchedContext({ signal: abort.signal })
    const connecting = transport.connect(server.endpoint(), {
      ...context,
      onPhase: (entered) => {
        if (entered === phase) abort.abort()
      },
    })
    expect((await failureOf(connecting)).kind).toBe('declined')
    await waitUntil(() => server.children().length === 0, 'sshd to be left')
  })

  it('do not make the server prove host keys that nobody asked for', async () => {
    const verbose = await startOpenSshServer({ config: ['LogLevel DEBUG1'], hostKeyTypes: ['ed25519', 'ecdsa'] })
    onTestFinished(() => verbose.stop())
    const connection = await transport.connect(verbose.endpoint(), watchedContext())
    await run(connection, 'true')
    connection.close()
    expect(verbose.log()).toContain('server_input_channel_req')
    expect(verbose.log()).not.toContain('hostkeys-prove')
  })

  it('report nothing after we close them', async () => {
    const context = watchedContext()
    const connection = await transport.connect(server.endpoint(), context)
    const watched = await openWatchedShell(connection)
    connection.close()
    connection.close()
    await waitUntil(() => server.children().length === 0, 'sshd to see it')
    await new Promise(setImmediate)
    const winner = await Promise.race([context.lost, Promise.resolve('nothing')])
    expect(winner).toBe('nothing')
    expect(watched.shell.write(Buffer.from('x'))).toBe(false)
  })

  it('report a program that never starts', async () => {
    const connection = await transport.connect(server.endpoint({ shell: '/no/such/program' }), watchedContext())
    const watched = await openWatchedShell(connection)
    expect(await watched.ended).toEqual({ kind: 'exit', code: 127 })
    connection.close()
  })

  it('fail cleanly when sshd goes away in the middle of connecting', async () => {
    const failing = failureOf(
      transport.connect(
        server.endpoint(),
        watchedContext({
          hostKeys: {
            preferredAlgorithms: async () => [],
            verify: async () => {
              await server.killChildren()
              return { ok: true }
            },
          },
        }),
      ),
    )
    expect(await failing).toMatchObject({ kind: 'unreachable' })
  })
})
