import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import type { Endpoint } from '../../../src/inventory/host.ts'
import {
  type EmbeddedHosts,
  embeddedEndpoints,
  startEmbeddedHosts,
} from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { createOpensshTransport } from '../../../src/ssh/openssh/openssh-transport.ts'
import type { CredentialAsker, HostKeyReviewer, NewHostKey } from '../../../src/ssh/questions.ts'
import type { Connection } from '../../../src/ssh/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { untilHeldBack } from '../../support/flood.ts'
import {
  freePort,
  makeKey,
  type OpenSshServer,
  publicLine,
  startAgent,
  startOpenSshServer,
} from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { failureOf, nobody, openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

describe.skipIf(!requirement('ssh', 'sshd', 'ssh-keygen'))("the system's ssh as a transport", () => {
  let server: OpenSshServer
  let connection: Connection
  const reviewed: NewHostKey[] = []
  let accepts = true
  const reviewer: HostKeyReviewer = {
    async review(keys) {
      reviewed.push(...keys)
      return new Set(accepts ? keys.map(({ host }) => host) : [])
    },
  }
  const transport = createOpensshTransport({ spawnPty: spawnLocalPty, reviewer })
  const endpoint = (changes = {}) => server.endpoint({ transport: 'openssh', ...changes })

  beforeAll(async () => {
    server = await startOpenSshServer()
    connection = await transport.connect(endpoint(), watchedContext())
  })
  afterAll(async () => {
    connection.close()
    transport[Symbol.dispose]()
    await server.stop()
  })

  it('names the phases of a login', async () => {
    const context = watchedContext()
    const other = await transport.connect(endpoint(), context)
    expect(context.phases).toEqual(['tcp', 'banner', 'host-key', 'authentication'])
    other.close()
  })

  it('carries shells, commands and forwards over one login', async () => {
    const logins = () => server.log().match(/Accepted publickey/g)?.length
    const before = logins()
    const watched = await openWatchedShell(connection, 101, 33)
    watched.type('stty size; echo $TERM\n')
    await watched.shows(/33 101\r\nxterm-256color/)
    expect(await run(connection, 'echo out; echo err >&2; exit 3')).toEqual({
      stdout: 'out\n',
      stderr: 'err\n',
      end: { kind: 'exit', code: 3 },
    })
    watched.shell.resize({ columns: 77, rows: 22 })
    // The new size travels by a signal to the shared ssh, and may come after what is typed.
    watched.type('while [ "$(stty size)" != "22 77" ]; do sleep 0.01; done; echo re""sized\n')
    await watched.shows(/resized/)
    watched.type('exit 7\n')
    expect(await watched.ended).toEqual({ kind: 'exit', code: 7 })
    expect(logins()).toBe(before)
  })

  it('passes every byte of a shell, also those that ssh would treat as an escape', async () => {
    const watched = await openWatchedShell(connection)
    watched.type('\n~.\necho al"ive"\n')
    await watched.shows(/alive/)
    watched.shell.close()
  })

  it.each(['a shell', 'a command'] as const)('holds a flood back while %s is paused', async (kind) => {
    let received = 0
    let text = ''
    const onData = (bytes: Uint8Array) => {
      received += bytes.length
      if (text.length < 1000) text += Buffer.from(bytes).toString('latin1')
    }
    const flood = 'stty -opost 2>/dev/null; echo pid=$$; exec yes'
    const remote =
      kind === 'a command'
        ? await connection.exec(flood, { onStdout: onData, onStderr: () => {}, onEnd: () => {} })
        : await connection.openShell(
            { size: { columns: 80, rows: 24 }, term: 'dumb' },
            { onData, onDrain: () => {}, onEnd: () => {} },
          )
    if (kind === 'a shell') remote.write(Buffer.from(`${flood}\n`))
    await waitUntil(() => received > 4_000_000, 'the flood')
    const pid = Number(/pid=(\d+)/.exec(text)?.[1])
    remote.pause()
    const atPause = received
    await untilHeldBack(pid)
    // What was read from the pipe or the terminal already.
    expect(received - atPause).toBeLessThan(256 * 1024)
    remote.resume()
    await waitUntil(() => received > atPause + 8_000_000, 'the flood to go on')
    remote.close()
    await waitUntil(() => !existsSync(`/proc/${pid}`), 'the end of the flood')
  })

  it('forwards the agent only when asked to', async () => {
    const agent = await startAgent(server.directory, [server.keyFile])
    onTestFinished(agent.stop)
    const config = join(server.directory, 'forwards')
    for (const forwardAgent of [true, false]) {
      writeFileSync(config, `Host *\n  ForwardAgent ${forwardAgent ? 'no' : 'yes'}\n`)
      const other = await transport.connect(
        endpoint({ agentSocket: agent.socket, forwardAgent, sshConfigFile: config }),
        watchedContext(),
      )
      const { stdout } = await run(other, 'echo "[$SSH_AUTH_SOCK]"; ssh-add -l')
      if (forwardAgent) expect(stdout).toContain('ED25519')
      else expect(stdout).toMatch(/^\[\]\n/)
      other.close()
    }
  })

  it('shows a new host key for review, and accepts a no', async () => {
    reviewed.length = 0
    accepts = false
    const fresh = { knownHostsFiles: [join(server.directory, 'none')], strictHostKeyChecking: 'ask' }
    expect(await failureOf(transport.connect(endpoint(fresh), watchedContext()))).toMatchObject({
      kind: 'host-key',
      phase: 'host-key',
    })
    expect(reviewed).toEqual([
      {
        host: 'm1',
        lookupName: `[127.0.0.1]:${server.port}`,
        algorithm: 'ED25519',
        fingerprint: expect.stringMatching(/^SHA256:/),
      },
    ])
  })

  it('stores an accepted host key', async () => {
    accepts = true
    const file = join(server.directory, 'learned')
    const other = await transport.connect(
      endpoint({ knownHostsFiles: [file], strictHostKeyChecking: 'ask' }),
      watchedContext(),
    )
    other.close()
    expect(readFileSync(file, 'utf8')).toContain(`[127.0.0.1]:${server.port} ssh-ed25519`)
  })

  it('refuses a changed host key', async () => {
    const file = join(server.directory, 'changed')
    makeKey(join(server.directory, 'other_host'))
    writeFileSync(file, `[127.0.0.1]:${server.port} ${publicLine(join(server.directory, 'other_host'))}`)
    const failure = await failureOf(transport.connect(endpoint({ knownHostsFiles: [file] }), watchedContext()))
    expect(failure).toMatchObject({ kind: 'host-key', reason: 'the host key is not the one in known_hosts' })
    expect(failure.hint).toContain('ssh-keygen -R')
  })

  it('asks for the passphrase of a key, again if it was wrong, and never in a terminal', async () => {
    const keyFile = join(server.directory, 'locked key')
    copyFileSync(server.keyFile, keyFile)
    lock(keyFile, 'sesame')
    const asked: [string, boolean][] = []
    const answers = ['wrong', 'sesame']
    const credentials: CredentialAsker = {
      ...nobody,
      passphrase: async (file, _endpoint, isRetry) => {
        asked.push([file, isRetry])
        return new Secret(answers.shift() ?? '')
      },
    }
    const other = await transport.connect(endpoint({ identityFiles: [keyFile] }), watchedContext({ credentials }))
    expect(asked).toEqual([
      [keyFile, false],
      [keyFile, true],
    ])
    other.close()
  })

  it('gives up at once when a question is dismissed', async () => {
    const keyFile = join(server.directory, 'locked key 2')
    copyFileSync(server.keyFile, keyFile)
    lock(keyFile, 'sesame')
    const failure = await failureOf(transport.connect(endpoint({ identityFiles: [keyFile] }), watchedContext()))
    expect(failure.kind).toBe('declined')
  })

  it('distinguishes a refused login from an unreachable host', async () => {
    makeKey(join(server.directory, 'stranger'))
    const stranger = endpoint({ identityFiles: [join(server.directory, 'stranger')] })
    expect(await failureOf(transport.connect(stranger, watchedContext()))).toMatchObject({
      kind: 'authentication',
      reason: expect.stringContaining('Permission denied'),
    })
    const nobodyListens = endpoint({ port: await freePort() })
    expect(await failureOf(transport.connect(nobodyListens, watchedContext()))).toMatchObject({
      kind: 'unreachable',
      phase: 'tcp',
      reason: expect.stringContaining('Connection refused'),
    })
  })

  it('says that ssh is missing', async () => {
    const without = createOpensshTransport({ spawnPty: spawnLocalPty, sshFile: '/no/such/ssh' })
    const failure = await failureOf(without.connect(endpoint(), watchedContext()))
    expect(failure.kind).toBe('configuration')
    without[Symbol.dispose]()
  })

  it('reports the loss of the connection to the fleet and to the shell', async () => {
    const context = watchedContext()
    const other = await transport.connect(endpoint(), context)
    const watched = await openWatchedShell(other)
    watched.type('echo $PPID-$((40+2))\n')
    await watched.shows(/-42/)
    for (const pid of server.children()) process.kill(pid, 'SIGKILL')
    const reason = await context.lost
    expect(reason).toMatch(/closed|reset/)
    expect(reason).not.toContain('Authenticated')
    expect((await watched.ended).kind).toBe('lost')
    connection = await transport.connect(endpoint(), watchedContext())
  })

  it('opens no separate connection and asks nothing when the shared one is gone', async () => {
    const other = await transport.connect(endpoint(), watchedContext())
    const accepted = server.log().length
    other.close()
    const output = await run(other, 'echo reached')
    expect(output.stdout).toBe('')
    expect(server.log().slice(accepted)).not.toContain('Accepted')
  })
})

describe.skipIf(!requirement('ssh', 'sshd', 'ssh-keygen'))("a failure of the system's ssh", () => {
  const banner = [
    '@    WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED!     @',
    'Host key verification failed.',
    '@ REVOKED HOST KEY @',
    'debug1: Next authentication method: publickey',
    'The proxy says: Permission denied (publickey). Connection timed out.',
  ].join('\n')
  const transport = createOpensshTransport({ spawnPty: spawnLocalPty })
  const servers: Record<string, OpenSshServer> = {}
  const server = (name: string) => servers[name]!
  let directory: string

  beforeAll(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-banner-'))
    writeFileSync(join(directory, 'banner'), `${banner}\n`)
    const withBanner = [`Banner ${join(directory, 'banner')}`]
    const config = {
      plain: [],
      loud: withBanner,
      closed: ['AllowTcpForwarding no'],
      'loud closed': [...withBanner, 'AllowTcpForwarding no'],
    }
    for (const [name, lines] of Object.entries(config)) servers[name] = await startOpenSshServer({ config: lines })
    makeKey(join(directory, 'stranger'))
  })
  afterAll(async () => {
    transport[Symbol.dispose]()
    for (const each of Object.values(servers)) await each.stop()
    rmSync(directory, { recursive: true, force: true })
  })

  const knownAs = (name: string, port: number, key: string, marker = '') => {
    const file = join(directory, name)
    writeFileSync(file, `${marker}[127.0.0.1]:${port} ${key}`)
    return [file]
  }
  const hostKey = (name: string) => publicLine(join(server(name).directory, 'host_ed25519'))
  const ways: Readonly<Record<string, (name: string) => Partial<Endpoint>>> = {
    changed: (name) => ({
      knownHostsFiles: knownAs('changed', server(name).port, publicLine(join(directory, 'stranger'))),
    }),
    revoked: (name) => ({ knownHostsFiles: knownAs('revoked', server(name).port, hostKey(name), '@revoked ') }),
    unknown: () => ({ knownHostsFiles: [join(directory, 'none')] }),
    denied: () => ({ identityFiles: [join(directory, 'stranger')] }),
  }
  const verdicts = [
    ['changed', 'host-key', 'the host key is not the one in known_hosts'],
    ['revoked', 'host-key', 'the host key is revoked'],
    ['unknown', 'host-key', 'No ED25519 host key is known for [127.0.0.1]:'],
    ['denied', 'authentication', 'Permission denied (publickey'],
  ] as const
  const pairs = ['plain', 'loud'].flatMap((name) => verdicts.map((verdict) => [...verdict, name] as const))
  const openssh = (changes: Partial<Endpoint>) => ({ transport: 'openssh' as const, ...changes })

  it.each(pairs)('is told as it is: %s (%s, %s), the host is %s', async (way, kind, reason, name) => {
    const endpoint = server(name).endpoint(openssh(ways[way]!(name)))
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    expect(failure).toMatchObject({ kind, reason: expect.stringContaining(reason) })
    expect(failure.phase).toBe(kind)
  })

  it.each(pairs)('is told as that of the jump host: %s (%s, %s), which is %s', async (way, kind, reason, name) => {
    const jump = server(name).endpoint({ host: 'gate', ...ways[way]!(name) })
    const endpoint = server('loud').endpoint(openssh({ jump: [jump] }))
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    expect(failure).toMatchObject({
      kind,
      phase: 'proxy',
      reason: expect.stringContaining(`jump host gate: ${way === 'denied' ? '' : reason}`),
    })
    expect(failure.reason).toContain(reason)
  })

  it.each(
    pairs,
  )('is told as that of the target behind a loud jump host: %s (%s, %s), which is %s', async (way, kind, reason, name) => {
    const jump = server('loud').endpoint({ host: 'gate' })
    const endpoint = server(name).endpoint(openssh({ jump: [jump], ...ways[way]!(name) }))
    const failure = await failureOf(transport.connect(endpoint, watchedContext()))
    expect(failure).toMatchObject({ kind, phase: kind, reason: expect.stringContaining(reason) })
    expect(failure.reason).not.toContain('gate')
  })

  it.each(['closed', 'loud closed'])('names a jump host that forwards nothing: %s', async (name) => {
    const jump = server(name).endpoint({ host: 'gate' })
    const endpoint = server('plain').endpoint(openssh({ jump: [jump] }))
    expect(await failureOf(transport.connect(endpoint, watchedContext()))).toMatchObject({
      kind: 'unreachable',
      phase: 'proxy',
      reason: expect.stringMatching(/jump host gate: administratively prohibited: open failed$/),
      hint: expect.stringContaining('AllowTcpForwarding'),
    })
  })

  it.each(['plain', 'loud'])('tells a closed port of the target from one of the jump host: %s', async (name) => {
    const port = await freePort()
    const gate = server(name).endpoint({ host: 'gate' })
    const behind = server('plain').endpoint(openssh({ port, jump: [gate] }))
    const reason = expect.stringMatching(/jump host gate: connect failed: Connection refused$/)
    expect(await failureOf(transport.connect(behind, watchedContext()))).toMatchObject({ kind: 'unreachable', reason })
    const noGate = server(name).endpoint(openssh({ jump: [{ ...gate, port }] }))
    expect(await failureOf(transport.connect(noGate, watchedContext()))).toMatchObject({
      kind: 'unreachable',
      reason: expect.stringMatching(/jump host gate: connect to host 127.0.0.1 port \d+: Connection refused$/),
    })
  })

  it('logs in through loud jump hosts, and says when the first of them is gone', async () => {
    const jump = [server('loud').endpoint({ host: 'a' }), server('plain').endpoint({ host: 'b' })]
    const context = watchedContext()
    const connection = await transport.connect(server('loud').endpoint(openssh({ jump })), context)
    expect((await run(connection, 'echo here')).stdout).toBe('here\n')
    expect(context.phases).toEqual(['proxy', 'banner', 'host-key', 'authentication'])
    await server('plain').killChildren()
    expect(await context.lost).toMatch(/jump host|Broken pipe/)
    connection.close()
  })

  it('says that a silent host behind a jump host gave no answer', async () => {
    const silent = createServer(() => {}).listen(0, '127.0.0.1')
    await once(silent, 'listening')
    onTestFinished(() => void silent.close())
    const { port } = silent.address() as AddressInfo
    const jump = [server('loud').endpoint({ host: 'gate', connectTimeoutMs: 1000 })]
    const endpoint = server('plain').endpoint(openssh({ port, jump, connectTimeoutMs: 1000 }))
    expect(await failureOf(transport.connect(endpoint, watchedContext()))).toMatchObject({
      kind: 'unreachable',
      phase: 'proxy',
      reason: expect.stringMatching(/ via gate: no answer$/),
    })
  })
})

describe.skipIf(!requirement('ssh'))("the system's ssh on hosts that ask for a password", () => {
  const transport = createOpensshTransport({ spawnPty: spawnLocalPty })
  let embedded: EmbeddedHosts
  let endpoints: readonly Endpoint[]

  beforeAll(async () => {
    embedded = await startEmbeddedHosts({
      count: 2,
      spawnPty: spawnLocalPty,
      authentications: ['password', 'keyboard-interactive'],
      password: 'sesame',
    })
    endpoints = embeddedEndpoints(embedded).map((endpoint) => ({ ...endpoint, transport: 'openssh' }))
  })
  afterAll(async () => {
    transport[Symbol.dispose]()
    await embedded.close()
  })

  it('asks again after a wrong password', async () => {
    const asked: [string, boolean][] = []
    const credentials: CredentialAsker = {
      ...nobody,
      password: async ({ host }, isRetry) => {
        asked.push([host, isRetry])
        return new Secret(isRetry ? 'sesame' : 'wrong')
      },
    }
    const endpoint = { ...endpoints[0]!, authentications: ['password'] }
    const connection = await transport.connect(endpoint, watchedContext({ credentials }))
    expect((await run(connection, 'hostname')).stdout).toBe('m1\n')
    expect(asked).toEqual([
      ['m1', false],
      ['m1', true],
    ])
    connection.close()
  })

  it("passes on the server's own questions", async () => {
    const asked: string[] = []
    const credentials: CredentialAsker = {
      ...nobody,
      keyboardInteractive: async (_endpoint, _instruction, prompts) => {
        asked.push(...prompts.map(({ text }) => text))
        return [new Secret('sesame')]
      },
    }
    const endpoint = { ...endpoints[0]!, authentications: ['keyboard-interactive'] }
    const connection = await transport.connect(endpoint, watchedContext({ credentials }))
    expect(asked).toEqual([expect.stringContaining('Password:')])
    connection.close()
  })

  it('goes through a jump host, and says which host wants the password', async () => {
    const asked: string[] = []
    const credentials: CredentialAsker = {
      ...nobody,
      password: async ({ host }) => {
        asked.push(host)
        return new Secret('sesame')
      },
    }
    const [m1, m2] = endpoints.map((endpoint) => ({ ...endpoint, authentications: ['password'] }))
    // Both live at 127.0.0.1: only the alias tells them apart.
    const jump = { ...m1!, hostKeyAlias: `[127.0.0.1]:${m1!.port}` }
    const connection = await transport.connect(
      { ...m2!, hostKeyAlias: `[127.0.0.1]:${m2!.port}`, jump: [jump] },
      watchedContext({ credentials }),
    )
    expect((await run(connection, 'hostname')).stdout).toBe('m2\n')
    expect(asked).toEqual(['m1', 'm2'])
    connection.close()
  })
})

function lock(keyFile: string, passphrase: string): void {
  const { status, stderr } = spawnSync('ssh-keygen', ['-q', '-p', '-P', '', '-N', passphrase, '-f', keyFile], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(stderr)
}
