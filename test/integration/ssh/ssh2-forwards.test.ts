/** What a host may open by itself: connections to the port on which it was asked to listen, and nothing else. */
import { once } from 'node:events'
import type { Duplex } from 'node:stream'
import type { ServerChannel, Connection as ServerConnection } from 'ssh2'
import { expect, it } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { watchedContext } from '../../support/ssh-context.ts'
import { startInProcessServer } from '../../support/ssh2-server.ts'

const open = (peer: ServerConnection | undefined, address: string, port: number): Promise<Duplex> =>
  new Promise((resolve, reject) => {
    peer?.forwardOut(address, port, '10.0.0.9', 5555, (error, channel) => (error ? reject(error) : resolve(channel)))
  })

/** It listens where it is asked to, and calls back with each channel that it is asked for. */
const startListeningServer = (onChannel: (channel: ServerChannel) => void = () => {}) =>
  startInProcessServer(
    (attempt) => attempt.accept(),
    (client) =>
      client
        .on('request', (accept, _reject, name, info) => {
          if (name === 'tcpip-forward') (accept as (port?: number) => void)?.(info.bindPort === 0 ? 4321 : undefined)
          else accept?.()
        })
        .on('tcpip', (accept) => onChannel(accept())),
  )

it('refuses forwarded connections that were not asked for', async () => {
  const { endpoint, peers } = await startListeningServer()
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

it('leaves a host that sends more than the window of a forward allows', async () => {
  const { endpoint } = await startListeningServer((channel) => {
    channel.on('error', () => {})
    Object.assign((channel as unknown as { outgoing: object }).outgoing, { window: Number.MAX_SAFE_INTEGER })
    // ssh2 itself refuses only what comes when exactly nothing is left of the window.
    for (let sent = 0; sent < 500; sent += 1) channel.write(Buffer.alloc(30_001))
  })
  const context = watchedContext()
  const connection = await createSsh2Transport().connect(endpoint(), context)
  try {
    const unread = await connection.connectTcp('localhost', 80)
    expect(await context.lost).toBe('it sent more than it was allowed to')
    expect(unread.readableLength).toBeLessThan(5 * 1024 * 1024)
  } finally {
    connection.close()
  }
})

it('refuses more forwarded connections of a host that closes none', async () => {
  const { endpoint, peers } = await startListeningServer()
  const connection = await createSsh2Transport().connect(endpoint(), watchedContext())
  try {
    let arrived = 0
    const listener = await connection.listenTcp('localhost', 0, (stream) => {
      arrived += 1
      stream.destroy()
    })
    const [peer] = peers
    // A server that hears no end of a channel.
    Object.assign((peer as unknown as { _protocol: { _handlers: object } })._protocol._handlers, {
      CHANNEL_CLOSE: () => {},
      CHANNEL_EOF: () => {},
    })
    const opened = Array.from({ length: 400 }, () => open(peer, 'localhost', listener.port))
    const refused = (await Promise.allSettled(opened)).filter(({ status }) => status === 'rejected')
    expect([arrived, refused.length]).toEqual([256, 144])
  } finally {
    connection.close()
  }
})
