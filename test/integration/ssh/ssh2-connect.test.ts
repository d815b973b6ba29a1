import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { openWatchedShell, run, watchedContext } from '../../support/ssh-context.ts'

describe.skipIf(!requirement('sshd', 'ssh-keygen'))('the ssh2 transport on a real sshd', () => {
  let server: OpenSshServer
  const transport = createSsh2Transport()

  beforeAll(async () => {
    server = await startOpenSshServer()
  })
  afterAll(() => server.stop())

  it('connects with a key file, and reports the phases in order', async () => {
    const context = watchedContext()
    const connection = await transport.connect(server.endpoint(), context)
    expect(context.phases).toEqual(['name', 'tcp', 'banner', 'host-key', 'authentication'])
    connection.close()
  })

  it('runs a command and reports both streams and the exit code', async () => {
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const output = await run(connection, 'echo out; echo err >&2; exit 3')
    expect(output).toEqual({ stdout: 'out\n', stderr: 'err\n', end: { kind: 'exit', code: 3 } })
    connection.close()
  })

  it('reports the signal that ended a command', async () => {
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const output = await run(connection, 'kill -TERM $$')
    expect(output.end).toEqual({ kind: 'signal', signal: 'SIGTERM' })
    connection.close()
  })

  it('opens a shell with the given size and TERM, and accepts a resize', async () => {
    const connection = await transport.connect(server.endpoint(), watchedContext())
    const watched = await openWatchedShell(connection, 101, 33)
    watched.type('stty size; echo $TERM\n')
    await watched.shows(/33 101\r\nxterm-256color/)
    watched.shell.resize({ columns: 77, rows: 22 })
    watched.type('stty size\n')
    await watched.shows(/22 77/)
    watched.type('exit 7\n')
    expect(await watched.ended).toEqual({ kind: 'exit', code: 7 })
    connection.close()
  })
})
