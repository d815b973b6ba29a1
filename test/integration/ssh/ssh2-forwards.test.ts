/** What a host may open by itself: connections to the port on which it was asked to listen, and nothing else. */
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { Connection as ServerConnection } from 'ssh2'
import { expect, it } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { watchedContext } from '../../support/ssh-context.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'

const open = (peer: ServerConnection | undefined, address: string, port: number): Promise<Duplex> =>
  new Promise((resolve, reject) => {
    peer?.forwardOut(address, port, '10.0.0.9', 5555, (error, channel) => (error ? reject(error) : resolve(channel)))
  })

it('refuses forwarded connections that were not asked for', async () => {
  const { endpoint, peers } = await startInProcessServer(
    (attempt) => attempt.accept(),
    (client) =>
      client.on('request', (accept, _reject, name, info) => {
        if (name === 'tcpip-forward') (accept as (port?: number) => void)?.(info.bindPort === 0 ? 4321 : undefined)
        else accept?.()
      }),
  )
  const connection = await createSsh2Transport().connect(endpoint(), watchedContext())
  try {
    const arrived: Duplex[] = []
    await expect(open(peers[0], 'localhost', 4321)).rejects.toThrow()
    const listener = await connection.listenTcp('localhost', 0, (stream) => arrived.push(stream))
    expect(listener.port).toBe(4321)
    const channel = await open(peers[0], 'localhost', 4321)
    arrived[0]?.write('hello')
    expect(String((await once(channel, 'data'))[0])).toBe('hello')
    for (const [address, port] of [
      ['localhost', 22],
      ['127.0.0.1', 4321],
      ['', 4321],
    ] as const)
      await expect(open(peers[0], address, port)).rejects.toThrow()
    listener.close()
    await expect(open(peers[0], 'localhost', 4321)).rejects.toThrow()
    expect(arrived).toHaveLength(1)
  } finally {
    connection.close()
  }
})
