import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { afterEach, expect, it } from 'vitest'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { endpointOf } from '../../support/endpoint.ts'
import { watchedContext } from '../../support/ssh-context.ts'
import { waitUntil } from '../../support/wait-until.ts'

const sockets = new Set<Socket>()
const server = createServer((socket) => {
  sockets.add(socket)
  socket.on('error', () => {}).once('data', () => greeted.add(socket))
})
const greeted = new Set<Socket>()

afterEach(() => {
  for (const socket of sockets) socket.destroy()
  server.close()
})

it('connects hundreds of hosts at once, but begins a handshake only when an earlier one is over', async () => {
  await once(server.listen(0, '0.0.0.0'), 'listening')
  const { port } = server.address() as AddressInfo
  const transport = createSsh2Transport()
  const abort = new AbortController()
  const attempts = Array.from({ length: 200 }, (_, index) => {
    const endpoint = endpointOf(`m${index}`, { address: `127.0.1.${index + 1}`, port })
    return transport.connect(endpoint, watchedContext({ signal: abort.signal })).catch(() => {})
  })
  await waitUntil(() => sockets.size === 200 && greeted.size >= 128, 'the first handshakes')
  expect(greeted.size).toBe(128)
  const [first] = greeted
  first?.destroy()
  await waitUntil(() => greeted.size === 129, 'one more handshake')
  abort.abort()
  await Promise.all(attempts)
})
