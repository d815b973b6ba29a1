import { existsSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import type { ChannelEnd, Connection, RemoteProcess } from '../../../src/ssh/transport.ts'
import { untilHeldBack } from '../../support/flood.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

const WINDOW = 128 * 1024
/** In place of the shell, so that the shell ends with it. */
const FLOOD = 'echo pid=$$; exec yes\n'

describe.skipIf(!requirement('sshd', 'ssh-keygen'))('the flow of bytes', () => {
  let server: OpenSshServer
  let connection: Connection
  beforeAll(async () => {
    server = await startOpenSshServer()
    connection = await createSsh2Transport().connect(server.endpoint(), watchedContext())
  })
  afterAll(async () => {
    connection.close()
    await server.stop()
  })

  const counted = async (command: string) => {
    let received = 0
    let text = ''
    const { promise: ended, resolve } = Promise.withResolvers<ChannelEnd>()
    const shell = await connection.openShell(
      { size: { columns: 80, rows: 24 }, term: 'dumb' },
      {
        onData: (bytes) => {
          received += bytes.length
          if (text.length < 1000) text += Buffer.from(bytes).toString('latin1')
        },
        onDrain: () => {},
        onEnd: resolve,
      },
    )
    shell.write(Buffer.from(command))
    return { shell, ended, received: () => received, pid: () => Number(/pid=(\d+)/.exec(text)?.[1]) }
  }

  it('limits a paused flooding shell to one window', async () => {
    const { shell, received, pid } = await counted(FLOOD)
    await waitUntil(() => received() > 10 * WINDOW, 'the flood')
    shell.pause()
    const atPause = received()
    await untilHeldBack(pid())
    // The other channel's answer comes after everything that was on its way.
    await run(connection, 'true')
    expect(received()).toBe(atPause)
    shell.resume()
    await waitUntil(() => received() > atPause + 10 * WINDOW, 'the flood to go on')
    shell.close()
  })

  it('delivers at most one window of stale output after an interrupt', async () => {
    const { shell, ended, received, pid } = await counted(FLOOD)
    await waitUntil(() => received() > 10 * WINDOW, 'the flood')
    shell.pause()
    await untilHeldBack(pid())
    const atInterrupt = received()
    shell.write(Buffer.from([3]))
    await waitUntil(() => !existsSync(`/proc/${pid()}`), 'the end of the flood')
    shell.resume()
    await ended
    // What was in the window, and what the terminal of the other side held.
    expect(received() - atInterrupt).toBeLessThan(2 * WINDOW)
  })

  it('neither loses nor reorders large output that is paused and resumed', async () => {
    let text = ''
    const { promise: ended, resolve } = Promise.withResolvers<ChannelEnd>()
    // The first bytes may come before the promise is kept.
    let remote: RemoteProcess | undefined
    remote = await connection.exec('seq 1 400000', {
      onStdout: (bytes) => {
        text += Buffer.from(bytes).toString()
        if (text.length % 7 === 0) {
          remote?.pause()
          setImmediate(() => remote?.resume())
        }
      },
      onStderr: () => {},
      onEnd: resolve,
    })
    expect(await ended).toEqual({ kind: 'exit', code: 0 })
    const lines = text.trimEnd().split('\n')
    expect(lines).toHaveLength(400_000)
    expect(lines.every((line, index) => line === String(index + 1))).toBe(true)
  })

  it('reports a full channel, keeps the bytes, and reports when it accepts more', async () => {
    let drains = 0
    let received = 0
    const shell = await connection.openShell(
      { size: { columns: 80, rows: 24 }, term: 'dumb' },
      {
        onData: (bytes) => {
          received += bytes.length
        },
        onDrain: () => {
          drains += 1
        },
        onEnd: () => {},
      },
    )
    shell.write(Buffer.from('stty raw -echo; echo ready; head -c 6000000 | wc -c\n'))
    await waitUntil(() => received > 0, 'the shell')
    let isFull = false
    for (let sent = 0; sent < 6_000_000; sent += 100_000) isFull = !shell.write(Buffer.alloc(100_000, 'x')) || isFull
    expect(isFull).toBe(true)
    await waitUntil(() => drains > 0, 'the channel to drain', 30_000)
    shell.close()
  })

  it('sends a key after the text that waits for the window', async () => {
    const ended = Promise.withResolvers<ChannelEnd>()
    let text = ''
    const reader = await connection.exec('tail -c 3', {
      onStdout: (bytes) => {
        text += Buffer.from(bytes).toString()
      },
      onStderr: () => {},
      onDrain: () => {},
      onEnd: ended.resolve,
    })
    // More than the server's window of 2 MB, which it cannot open before all of this is written.
    reader.write(Buffer.alloc(4_000_000, 'x'))
    for (const key of 'abc') reader.write(Buffer.from(key))
    reader.endInput()
    expect(await ended.promise).toEqual({ kind: 'exit', code: 0 })
    expect(text).toBe('abc')
  })

  it('ends the standard input of a command', async () => {
    expect((await run(connection, 'cat; echo end')).stdout).toBe('end\n')
  })

  it('sends only the requested environment variables', async () => {
    const other = await startOpenSshServer({ config: ['AcceptEnv *'] })
    const plain = await createSsh2Transport().connect(other.endpoint({ shell: 'env' }), watchedContext())
    const watched = await openWatchedShell(plain)
    await watched.ended
    expect(watched.text()).not.toMatch(/^(LANG|LC_|npm_)/m)
    plain.close()
    await other.stop()
  })

  it('passes output of many windows whole', async () => {
    const { shell, received, ended } = await counted('head -c 30000000 /dev/zero; exit\n')
    await ended
    expect(received()).toBeGreaterThan(30_000_000)
    shell.close()
  })
})
