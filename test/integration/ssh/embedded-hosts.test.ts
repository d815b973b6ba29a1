import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, statSync } from 'node:fs'
import { createConnection } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../../src/base/secret.ts'
import {
  type EmbeddedHosts,
  embeddedEndpoints,
  startEmbeddedHosts,
} from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { requirement } from '../../support/requirements.ts'
import { failureOf, nobody, openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { TcpProxy, through } from '../../support/tcp-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

describe('embedded hosts', () => {
  let embedded: EmbeddedHosts
  const transport = createSsh2Transport()
  const endpoint = (name: string, changes = {}) => {
    const found = embeddedEndpoints(embedded).find(({ host }) => host === name)
    if (found === undefined) throw new Error(name)
    return { ...found, ...changes }
  }
  const connect = (name: string, changes = {}) => transport.connect(endpoint(name, changes), watchedContext())

  beforeAll(async () => {
    embedded = await startEmbeddedHosts({ count: 3, spawnPty: spawnLocalPty, password: 'sesame' })
  })
  afterAll(() => embedded.close())

  it('look like different machines from inside', async () => {
    const names = ['m1', 'm2', 'm3']
    const shells = await Promise.all(names.map(async (name) => openWatchedShell(await connect(name))))
    for (const each of shells) each.type('echo "<$(hostname),$(uname -n),$HOSTNAME,$(pwd)>"\n')
    const texts = await Promise.all(shells.map((each) => each.shows(/<m\d/)))
    names.forEach((name, index) => {
      expect(texts[index]).toContain(`<${name},${name},${name},${embedded.directory}/${name}>`)
      expect(texts[index]).toContain(`${embedded.user}@${name}`)
    })
    for (const each of shells) each.type('exit 5\n')
    expect(await Promise.all(shells.map(({ ended }) => ended))).toEqual(names.map(() => ({ kind: 'exit', code: 5 })))
  })

  it('carry several shells and commands over one connection', async () => {
    const before = embedded.host('m1').acceptedCount
    const connection = await connect('m1')
    const [one, two] = [await openWatchedShell(connection, 90, 20), await openWatchedShell(connection)]
    one.type('stty size\n')
    await one.shows(/20 90/)
    one.shell.resize({ columns: 60, rows: 15 })
    one.type('stty size\n')
    await one.shows(/15 60/)
    two.type('kill -TERM $$; kill -KILL $$\n')
    expect(await two.ended).toEqual({ kind: 'signal', signal: 'SIGKILL' })
    const output = await run(connection, 'cat release; echo err >&2; exit 3')
    expect(output).toEqual({ stdout: 'app 1.4.2\n', stderr: 'err\n', end: { kind: 'exit', code: 3 } })
    expect(embedded.host('m1').acceptedCount).toBe(before + 1)
    connection.close()
  })

  it('lose no byte of long output', async () => {
    const connection = await connect('m1')
    const { stdout } = await run(connection, 'head -c 6000000 /dev/zero | tr "\\0" x; echo end')
    expect(stdout).toHaveLength(6_000_004)
    expect(stdout.endsWith('xend\n')).toBe(true)
    connection.close()
  })

  it('work as jump hosts, but reach nothing beyond this machine', async () => {
    const behind = await connect('m2', { jump: [endpoint('m1')] })
    expect((await run(behind, 'hostname')).stdout).toBe('m2\n')
    behind.close()
    await expect(connect('m2', { jump: [endpoint('m1')], address: '192.0.2.1' })).rejects.toThrow(/cannot reach/)
  })

  it('accept only their own client key, and a password only if that is offered', async () => {
    expect(await failureOf(connect('m1', { identityFiles: [] }))).toMatchObject({ kind: 'authentication' })
    await using others = await startEmbeddedHosts({
      count: 1,
      spawnPty: spawnLocalPty,
      names: ['pw'],
      authentications: ['password', 'keyboard-interactive'],
      password: 'sesame',
    })
    const [other] = embeddedEndpoints(others)
    const credentials = {
      ...nobody,
      password: async () => new Secret('sesame'),
      keyboardInteractive: async () => [new Secret('sesame')],
    }
    for (const authentication of ['password', 'keyboard-interactive']) {
      const only = { ...other!, authentications: [authentication] }
      const connection = await transport.connect(only, watchedContext({ credentials }))
      expect((await run(connection, 'hostname')).stdout).toBe('pw\n')
      connection.close()
    }
  })

  it('have one host key each, and are refused if they show another one', async () => {
    const [shown, known] = [embedded.host('m3'), endpoint('m2')]
    expect(shown.publicKeyLine).not.toBe(embedded.host('m2').publicKeyLine)
    const swapped = { ...known, port: shown.port, hostKeyAlias: `[${known.address}]:${known.port}` }
    const context = watchedContext()
    expect(await failureOf(transport.connect(swapped, context))).toMatchObject({ kind: 'host-key', phase: 'host-key' })
    expect(context.phases).not.toContain('authentication')
  })

  it('cut their connections, and come back on demand', async () => {
    const host = embedded.host('m3')
    const context = watchedContext()
    await transport.connect(endpoint('m3'), context)
    host.dropConnections()
    expect(await context.lost).toMatch(/\S/)
    await host.stop()
    expect(await failureOf(connect('m3'))).toMatchObject({ kind: 'unreachable', phase: 'tcp' })
    await host.start()
    const again = await connect('m3')
    expect((await run(again, 'hostname')).stdout).toBe('m3\n')
    again.close()
  })

  it('are given up on when they send nothing, or nothing after their banner', async () => {
    await using proxy = await TcpProxy.to(embedded.host('m3').port)
    for (const mode of ['silent', 'banner-only'] as const) {
      proxy.mode = mode
      const connecting = transport.connect(through(proxy, endpoint('m3', { connectTimeoutMs: 300 })), watchedContext())
      expect(await failureOf(connecting)).toMatchObject({ kind: 'unreachable' })
    }
  })

  it('are lost when their connection is cut in the middle of output', async () => {
    await using proxy = await TcpProxy.to(embedded.host('m3').port)
    proxy.cutsAfterBytes = 200_000
    const connection = await transport.connect(through(proxy, endpoint('m3')), watchedContext())
    const { stdout, end } = await run(connection, 'head -c 1000000 /dev/zero')
    expect(stdout.length).toBeLessThan(200_000)
    expect(end.kind).toBe('lost')
  })

  it('continue after a freeze, and are lost by keep-alive if it lasts', async () => {
    await using proxy = await TcpProxy.to(embedded.host('m3').port)
    const connection = await transport.connect(through(proxy, endpoint('m3')), watchedContext())
    const watched = await openWatchedShell(connection)
    watched.type('echo $((1+1))a\n')
    await watched.shows(/2a/)
    proxy.stall()
    watched.type('echo $((2+2))b\n')
    const impatient = transport.connect(through(proxy, endpoint('m3', { connectTimeoutMs: 2_000 })), watchedContext())
    expect(await failureOf(impatient)).toMatchObject({ kind: 'unreachable', phase: 'banner' })
    expect(watched.text()).not.toContain('4b')
    proxy.unstall()
    await watched.shows(/4b/)
    connection.close()

    const closely = watchedContext()
    await transport.connect(through(proxy, endpoint('m3', { keepAliveIntervalMs: 50, keepAliveMaxMissed: 2 })), closely)
    proxy.stall()
    expect(await closely.lost).toMatch(/\S/)
  })

  it('accept a paste that is longer than every buffer on the way', async () => {
    const connection = await connect('m1')
    const watched = await openWatchedShell(connection)
    watched.type(`cat >/dev/null <<'end'\n${`${'x'.repeat(60)}\n`.repeat(3000)}end\necho do""ne\n`)
    await watched.shows(/done/)
    connection.close()
  })

  it('report when a shell is full because its program does not read, and when it accepts more', async () => {
    const connection = await connect('m1')
    const drained = Promise.withResolvers<void>()
    let text = ''
    const shell = await connection.openShell(
      { size: { columns: 80, rows: 24 }, term: 'dumb' },
      {
        onData: (bytes) => {
          text += Buffer.from(bytes).toString()
        },
        onDrain: () => drained.resolve(),
        onEnd: () => {},
      },
    )
    shell.write(Buffer.from('stty raw -echo; echo re""ady; until [ -e go ]; do sleep 0.05; done; cat >/dev/null\n'))
    await waitUntil(() => text.includes('ready'), 'the reader')
    const bytes = Buffer.alloc(50_000, 'x')
    let sent = 0
    while (shell.write(bytes)) {
      sent += bytes.length
      if (sent > 50_000_000) throw new Error('the channel never fills')
    }
    await run(connection, 'touch go')
    await drained.promise
    connection.close()
  })

  it("work with the system's ssh", async () => {
    if (!requirement('ssh')) return
    const { port } = embedded.host('m1')
    const args = ['-F', 'none', '-i', embedded.identityFile, '-o', `UserKnownHostsFile=${embedded.knownHostsFile}`]
    const child = spawn('ssh', [...args, '-p', String(port), '-tt', '127.0.0.1', 'tty; hostname; exit 4'], {
      stdio: ['ignore', 'pipe', 'ignore'],
    })
    let text = ''
    child.stdout.on('data', (bytes) => {
      text += String(bytes)
    })
    const code = await new Promise((resolve) => child.on('close', resolve))
    expect(text).toMatch(/^\/dev\/\S+\r\nm1\r\n/)
    expect(code).toBe(4)
  })

  it('hide the key and everything else from other accounts', () => {
    expect(statSync(embedded.identityFile).mode & 0o777).toBe(0o600)
    expect(statSync(embedded.directory).mode & 0o777).toBe(0o700)
  })

  it('leave nothing behind when their owner is killed', async () => {
    const owner = spawn(process.execPath, ['--import', 'tsx', join(import.meta.dirname, 'embedded-owner-fixture.ts')], {
      stdio: ['ignore', 'pipe', 'inherit'],
    })
    const [line] = (await once(owner.stdout, 'data')) as [Buffer]
    const { directory, pids } = JSON.parse(String(line)) as { directory: string; pids: readonly number[] }
    expect(existsSync(directory) && pids.some(isRunning)).toBe(true)
    owner.kill('SIGKILL')
    await waitUntil(
      () => !existsSync(directory) && !pids.some(isRunning),
      'the end of the directory and of the programs',
    )
  })

  it('leave no listener, no directory and no program behind, however stubborn it is', async () => {
    const others = await startEmbeddedHosts({ count: 1, spawnPty: spawnLocalPty })
    const [other] = embeddedEndpoints(others)
    const connection = await transport.connect(other!, watchedContext())
    const watched = await openWatchedShell(connection)
    watched.type('sleep 1000 & echo "pid=$!="\n')
    const pids = [Number(/pid=(\d+)=/.exec(await watched.shows(/pid=\d+=/))?.[1])]
    await connection.exec("trap '' HUP TERM; echo $$; while :; do sleep 1; done", {
      onStdout: (bytes) => pids.push(Number(Buffer.from(bytes).toString())),
      onStderr: () => {},
      onEnd: () => {},
    })
    await connection.exec("setsid sh -c 'echo $$; trap : TERM; while :; do sleep 1; done' || echo 0", {
      onStdout: (bytes) => pids.push(Number(Buffer.from(bytes).toString())),
      onStderr: () => {},
      onEnd: () => {},
    })
    await waitUntil(() => pids.length === 3, 'the process ids')
    await others.close()
    await waitUntil(() => !pids.some(isRunning), 'the end of the programs')
    expect(existsSync(others.directory)).toBe(false)
    const socket = createConnection({ host: '127.0.0.1', port: other!.port })
    const code = await new Promise((resolve) =>
      socket.on('error', (error: NodeJS.ErrnoException) => resolve(error.code)),
    )
    expect(code).toBe('ECONNREFUSED')
  })
})

function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}
