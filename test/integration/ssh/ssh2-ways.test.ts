import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { freePort, type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { failureOf, openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

const logins = (server: OpenSshServer) => server.log().split('Accepted publickey').length - 1

describe.skipIf(!requirement('sshd', 'ssh-keygen', 'ps'))('the route to a host', () => {
  let server: OpenSshServer
  const transport = createSsh2Transport()
  beforeAll(async () => {
    server = await startOpenSshServer()
  })
  afterAll(() => server.stop())

  const started = async (config: readonly string[] = []) => {
    const other = await startOpenSshServer({ config })
    onTestFinished(() => other.stop())
    return other
  }

  describe('through jump hosts', () => {
    it('leads over two jump hosts, each checked and logged in to', async () => {
      const [first, second] = [await started(), await started()]
      const jump = [first.endpoint({ host: 'outer' }), second.endpoint({ host: 'inner' })]
      const connection = await transport.connect(server.endpoint({ jump }), watchedContext())
      expect((await run(connection, 'echo there')).stdout).toBe('there\n')
      expect([logins(first), logins(second)]).toEqual([1, 1])
      connection.close()
      await waitUntil(
        () => first.children().length === 0 && second.children().length === 0,
        'the jump hosts to be left',
      )
    })

    it('shares one connection to a jump host among all hosts behind it, until the last is closed', async () => {
      const bastion = await started()
      const jump = [bastion.endpoint({ host: 'bastion' })]
      const hosts = Array.from({ length: 12 }, (_, index) => server.endpoint({ host: `m${index}`, jump }))
      const connections = await Promise.all(hosts.map((host) => transport.connect(host, watchedContext())))
      expect(logins(bastion)).toBe(1)
      for (const connection of connections.slice(1)) connection.close()
      expect((await run(connections[0]!, 'echo on')).stdout).toBe('on\n')
      connections[0]!.close()
      await waitUntil(() => bastion.children().length === 0, 'the jump host to be left')
    })

    it('names the jump host when it refuses, and keeps the kind of its failure', async () => {
      const bastion = await started()
      const jump = [bastion.endpoint({ host: 'bastion', identityFiles: [] })]
      const failure = await failureOf(transport.connect(server.endpoint({ jump }), watchedContext()))
      expect(failure).toMatchObject({ kind: 'authentication', phase: 'proxy' })
      expect(failure.reason).toContain('via bastion: jump host bastion: cannot log in')
    })

    it('names the jump host when it cannot reach the host', async () => {
      const jump = [server.endpoint({ host: 'bastion' })]
      const failure = await failureOf(
        transport.connect(server.endpoint({ port: await freePort(), jump }), watchedContext()),
      )
      expect(failure).toMatchObject({ kind: 'unreachable', phase: 'proxy' })
      expect(failure.reason).toContain('Connection refused')
    })

    it('is lost with its jump host, and the reason says so', async () => {
      const bastion = await started()
      const context = watchedContext()
      const jump = [bastion.endpoint({ host: 'bastion' })]
      const connection = await transport.connect(server.endpoint({ jump }), context)
      const watched = await openWatchedShell(connection)
      await bastion.killChildren()
      expect(await context.lost).toBe('jump host bastion: the server closed the connection')
      expect((await watched.ended).kind).toBe('lost')
    })

    it('continues for the others when the host that asked first is stopped', async () => {
      const bastion = await started()
      const abort = new AbortController()
      const jump = [bastion.endpoint({ host: 'bastion' })]
      const stopped = failureOf(
        transport.connect(server.endpoint({ host: 'm1', jump }), watchedContext({ signal: abort.signal })),
      )
      const going = transport.connect(server.endpoint({ host: 'm2', jump }), watchedContext())
      abort.abort()
      expect((await stopped).kind).toBe('declined')
      ;(await going).close()
    })

    it('leaves nothing behind when every host is stopped', async () => {
      const bastion = await started()
      const abort = new AbortController()
      const jump = [bastion.endpoint({ host: 'bastion' })]
      const context = watchedContext({ signal: abort.signal })
      const stopped = failureOf(transport.connect(server.endpoint({ jump }), context))
      await waitUntil(() => bastion.children().length > 0, 'the jump host to be called')
      abort.abort()
      expect((await stopped).kind).toBe('declined')
      await waitUntil(() => bastion.children().length === 0, 'the jump host to be left')
    })
  })

  describe('through a proxy command', () => {
    const proxy = (body: string) => `${process.execPath} -e '${body}'`
    const relay = (port: number) =>
      proxy(`const s = require("net").connect(${port}, "127.0.0.1"); process.stdin.pipe(s).pipe(process.stdout)`)

    it('works, and ends the command with the connection', async () => {
      const pidFile = join(server.directory, 'proxy.pid')
      const command = `sh -c 'echo $$ > ${pidFile}; ${relay(server.port).replaceAll("'", `'\\''`)}'`
      const connection = await transport.connect(server.endpoint({ proxyCommand: command }), watchedContext())
      expect((await run(connection, 'head -c 1000000 /dev/zero | wc -c')).stdout.trim()).toBe('1000000')
      const pid = readFileSync(pidFile, 'utf8').trim()
      connection.close()
      await waitUntil(
        () =>
          spawnSync('ps', ['-o', 'stat=', '-p', pid], { encoding: 'utf8' }).stdout.trim().replace(/^Z.*/, '') === '',
        'the command to end',
      )
    })

    it('quotes the last words of a command that fails', async () => {
      const proxyCommand = proxy('console.error("first"); console.error("no such bastion"); process.exit(1)')
      const failure = await failureOf(transport.connect(server.endpoint({ proxyCommand }), watchedContext()))
      expect(failure.phase).toBe('proxy')
      expect(failure.reason).toContain('no such bastion')
      expect(failure.reason).not.toContain('first')
    })

    it('says when the command does not exist', async () => {
      const failure = await failureOf(
        transport.connect(server.endpoint({ proxyCommand: '/no/such/program' }), watchedContext()),
      )
      expect(failure).toMatchObject({ phase: 'proxy' })
      expect(failure.reason).toMatch(/not found/)
    })
  })

  describe('within the limits of the server', () => {
    it('connects to 40 hosts at once through MaxStartups 10:30:100', async () => {
      const narrow = await started(['MaxStartups 10:30:100'])
      const hosts = Array.from({ length: 40 }, (_, index) => narrow.endpoint({ host: `m${index}` }))
      const connections = await Promise.all(hosts.map((host) => transport.connect(host, watchedContext())))
      expect(connections).toHaveLength(40)
      for (const connection of connections) connection.close()
    })

    it('survives a server that drops connections, by connecting again', async () => {
      let calls = 0
      const front = createServer((caller) => {
        calls += 1
        if (calls <= 10) return caller.end()
        caller.on('error', () => {})
        const sshd = connect(server.port, '127.0.0.1').on('error', () => {})
        caller.pipe(sshd).pipe(caller)
      }).listen(0, '127.0.0.1')
      await once(front, 'listening')
      onTestFinished(() => void front.close())
      const { port } = front.address() as AddressInfo
      const hosts = Array.from({ length: 10 }, (_, index) =>
        server.endpoint({ host: `m${index}`, port, hostKeyAlias: `[127.0.0.1]:${server.port}` }),
      )
      const connections = await Promise.all(hosts.map((host) => transport.connect(host, watchedContext())))
      for (const connection of connections) connection.close()
      expect(calls).toBe(20)
    })

    it('queues commands where MaxSessions allows one at a time', async () => {
      const narrow = await started(['MaxSessions 1'])
      const connection = await transport.connect(narrow.endpoint(), watchedContext())
      const outputs = await Promise.all([1, 2, 3, 4].map((index) => run(connection, `echo ${index}`)))
      expect(outputs.map(({ stdout }) => stdout)).toEqual(['1\n', '2\n', '3\n', '4\n'])
      connection.close()
    })

    it('names MaxSessions as the reason when only shells are open', async () => {
      const narrow = await started(['MaxSessions 1'])
      const connection = await transport.connect(narrow.endpoint(), watchedContext())
      await openWatchedShell(connection)
      const failure = await failureOf(run(connection, 'true'))
      expect(failure).toMatchObject({ kind: 'configuration', phase: 'shell' })
      expect(failure.hint).toContain('MaxSessions')
      connection.close()
    })

    it('falls back to group exchange for a server that has nothing else', async () => {
      const old = await started(['KexAlgorithms diffie-hellman-group-exchange-sha256'])
      const connection = await transport.connect(old.endpoint(), watchedContext())
      connection.close()
    })

    it('says that a server with nothing in common needs the system ssh', async () => {
      const odd = await started(['KexAlgorithms sntrup761x25519-sha512@openssh.com'])
      const failure = await failureOf(transport.connect(odd.endpoint(), watchedContext()))
      expect(failure.kind).toBe('configuration')
      expect(failure.hint).toContain('transport: openssh')
    })
  })
})
