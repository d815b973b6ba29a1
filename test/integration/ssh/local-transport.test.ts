import { spawnSync } from 'node:child_process'
import { mkdtempSync, realpathSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { createLocalTransport } from '../../../src/ssh/local/local-transport.ts'
import { spawnProcess } from '../../../src/ssh/local/spawn-process.ts'
import type { Connection } from '../../../src/ssh/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { endpointOf } from '../../unit/ssh/fake-transport.ts'

describe('the transport local', () => {
  let home: string
  let connection: Connection
  const endpoint = { ...endpointOf('here'), transport: 'local' as const }
  const transport = () =>
    createLocalTransport({
      spawnPty: spawnLocalPty,
      homeDirectory: home,
      environment: { PATH: process.env.PATH, SHELL: '/bin/sh', HOME: home, npm_config_x: '1', KEPT: 'kept' },
    })

  beforeAll(async () => {
    home = realpathSync(mkdtempSync(join(tmpdir(), 'muster-local-')))
    connection = await transport().connect(endpoint, watchedContext())
  })
  afterAll(() => {
    connection.close()
    rmSync(home, { recursive: true, force: true })
  })

  it('opens a login shell in the home directory with the given size and TERM, and follows a resize', async () => {
    const watched = await openWatchedShell(connection, 101, 33)
    watched.type('echo "$TERM,$KEPT,$npm_config_x,$(pwd),$(stty size)"\n')
    await watched.shows(new RegExp(`xterm-256color,kept,,${home},33 101`))
    watched.shell.resize({ columns: 77, rows: 22 })
    watched.type('stty size\n')
    await watched.shows(/22 77/)
    watched.type('exit 7\n')
    expect(await watched.ended).toEqual({ kind: 'exit', code: 7 })
  })

  it('gives later shells and commands the changed environment', async () => {
    const environment: Record<string, string> = { PATH: process.env.PATH ?? '', SHELL: '/bin/sh', DISPLAY: ':1' }
    const options = { spawnPty: spawnLocalPty, homeDirectory: home, environment }
    const other = await createLocalTransport(options).connect(endpoint, watchedContext())
    environment.DISPLAY = ':2'
    expect((await run(other, 'echo $DISPLAY')).stdout).toBe(':2\n')
    const watched = await openWatchedShell(other)
    watched.type('echo "display $DISPLAY"\n')
    await watched.shows(/display :2/)
    other.close()
  })

  it('gives commands the home directory where HOME is empty or missing', async () => {
    for (const empty of [{ HOME: '' }, {}]) {
      const environment = { PATH: process.env.PATH, SHELL: '/bin/sh', ...empty }
      const options = { spawnPty: spawnLocalPty, homeDirectory: home, environment }
      const other = await createLocalTransport(options).connect(endpoint, watchedContext())
      expect((await run(other, 'echo $HOME')).stdout).toBe(`${home}\n`)
      other.close()
    }
  })

  it('runs the shell of the inventory in place of the login shell', async () => {
    const other = await transport().connect({ ...endpoint, shell: 'echo instead; exit 4' }, watchedContext())
    const watched = await openWatchedShell(other)
    expect(await watched.ended).toEqual({ kind: 'exit', code: 4 })
    expect(watched.text()).toContain('instead')
  })

  it('runs a command with separate streams, and reports its exit code or signal', async () => {
    expect(await run(connection, 'pwd; echo err >&2; exit 3')).toEqual({
      stdout: `${home}\n`,
      stderr: 'err\n',
      end: { kind: 'exit', code: 3 },
    })
    expect((await run(connection, 'kill -TERM $$')).end).toEqual({ kind: 'signal', signal: 'SIGTERM' })
  })

  it('feeds a command and sends it signals', async () => {
    let text = ''
    const { promise, resolve } = Promise.withResolvers<unknown>()
    const remote = await connection.exec('cat; exec sleep 1000', {
      onStdout: (bytes) => {
        text += Buffer.from(bytes).toString()
      },
      onStderr: () => {},
      onEnd: resolve,
    })
    remote.write(Buffer.from('fed'))
    remote.endInput()
    await waitUntil(() => text === 'fed', 'the echo')
    remote.signal('INT')
    expect(await promise).toEqual({ kind: 'signal', signal: 'SIGINT' })
  })

  it('ends a command and its children when it is closed', async () => {
    let pid = 0
    const remote = await connection.exec('sleep 1000 & echo $!; wait', {
      onStdout: (bytes) => {
        pid = Number(Buffer.from(bytes).toString())
      },
      onStderr: () => {},
      onEnd: () => expect.unreachable('nothing is told after close'),
    })
    await waitUntil(() => pid > 0, 'the process id')
    remote.close()
    await waitUntil(() => !isRunning(pid), 'the end of the child')
  })

  it('says what cannot be run', async () => {
    const broken = createLocalTransport({
      spawnPty: () => {
        throw new Error('no such file')
      },
      environment: { SHELL: '/no/such/shell' },
    })
    const other = await broken.connect(endpoint, watchedContext())
    await expect(openWatchedShell(other)).rejects.toThrow('/no/such/shell: no such file')
  })

  it('starts in the root directory if there is no home directory, as after a login over SSH', async () => {
    const homeless = createLocalTransport({ spawnPty: spawnLocalPty, homeDirectory: join(home, 'missing') })
    const other = await homeless.connect(endpoint, watchedContext())
    expect((await run(other, 'pwd')).stdout).toBe('/\n')
  })

  it('reports a program that cannot be started once, without an end', async () => {
    const onEnd = vi.fn<() => void>()
    const handlers = { onStdout: () => {}, onStderr: () => {}, onEnd }
    const options = { file: '/no/such/program', args: [], environment: {}, clock: systemClock }
    await expect(spawnProcess(options, handlers)).rejects.toThrow('ENOENT')
    await setImmediate()
    expect(onEnd).not.toHaveBeenCalled()
  })
})

/** Zombies do not count. */
function isRunning(pid: number): boolean {
  const { stdout } = spawnSync('ps', ['-o', 'stat=', '-p', String(pid)], { encoding: 'utf8' })
  return stdout.trim() !== '' && !stdout.startsWith('Z')
}
