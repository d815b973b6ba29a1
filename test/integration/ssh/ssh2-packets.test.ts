import { Socket } from 'node:net'
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { type OpenSshServer, startOpenSshServer } from '../../support/openssh-server.ts'
import { requirement } from '../../support/requirements.ts'
import { run, watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

const CIPHERS = ['aes128-gcm@openssh.com', 'chacha20-poly1305@openssh.com', 'aes128-ctr']

describe.skipIf(!requirement('sshd', 'ssh-keygen'))('packets', () => {
  const servers: OpenSshServer[] = []
  beforeAll(async () => {
    for (const cipher of CIPHERS)
      servers.push(await startOpenSshServer({ config: [`Ciphers ${cipher}`, 'RekeyLimit 1M'] }))
    servers.push(await startOpenSshServer({}))
  })
  afterAll(async () => {
    for (const server of servers) await server.stop()
  })

  for (const [index, cipher] of CIPHERS.entries()) {
    it(`carry a typed key to the host in one write, also after a later key exchange (${cipher})`, async () => {
      const connection = await createSsh2Transport().connect(servers[index]!.endpoint(), watchedContext())
      let output = ''
      const shell = await connection.openShell(
        { size: { columns: 80, rows: 24 }, term: 'dumb' },
        {
          onData: (bytes) => {
            output += Buffer.from(bytes).toString('latin1')
          },
          onDrain: () => {},
          onEnd: () => {},
        },
      )
      const type = (text: string) => {
        const write = vi.spyOn(Socket.prototype, 'write')
        shell.write(Buffer.from(text))
        const count = write.mock.calls.length
        write.mockRestore()
        return count
      }
      expect(type('cat\n')).toBe(1)
      // Several times the limit, after which the server exchanges keys again.
      const { stdout } = await run(connection, 'head -c 4000000 /dev/zero')
      expect(stdout.length).toBe(4_000_000)
      output = ''
      expect(type('after\n')).toBe(1)
      await waitUntil(() => output.includes('after'), 'the echo')
      connection.close()
    })
  }

  it('may be as long as the noise that OpenSSH sends for a paste without echo', async () => {
    const connection = await createSsh2Transport().connect(servers.at(-1)!.endpoint(), watchedContext())
    let output = ''
    let end: unknown
    const shell = await connection.openShell(
      { size: { columns: 80, rows: 24 }, term: 'dumb' },
      {
        onData: (bytes) => {
          output += Buffer.from(bytes).toString('latin1')
        },
        onDrain: () => {},
        onEnd: (why) => {
          end = why
        },
      },
    )
    shell.write(Buffer.from('stty -echo; echo no""echo; wc -c; echo co""unted\n'))
    await waitUntil(() => output.includes('noecho'), 'the terminal without echo')
    const line = `${'x'.repeat(79)}\n`
    shell.write(Buffer.from(line.repeat(25_000)))
    shell.write(Buffer.from('\x04'))
    await waitUntil(() => output.includes('counted') || end !== undefined, 'the count')
    expect(end).toBeUndefined()
    expect(output).toContain('2000000')
    connection.close()
  })
})
