/** An SSH server of the test's own in this process, on a free port of loopback: for what sshd cannot be made to do. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import ssh2, { type AuthContext, type Connection, type ServerConfig } from 'ssh2'
import { onTestFinished } from 'vitest'
import type { Endpoint } from '../../src/inventory/host.ts'
import { generateEd25519KeyPair } from '../../src/ssh/embedded/ed25519-key-pair.ts'
import { endpointOf } from './endpoint.ts'

const hostKey = generateEd25519KeyPair().privateKeyText

export type InProcessServer = {
  readonly endpoint: (changes?: Partial<Endpoint>) => Endpoint
  readonly peers: Connection[]
}

/** `authenticate` decides about each attempt; logged-in clients go to `serve`. Gone when the test is over. */
export async function startInProcessServer(
  authenticate: (attempt: AuthContext) => void,
  serve: (client: Connection) => void = () => {},
  config: Partial<ServerConfig> = {},
): Promise<InProcessServer> {
  const peers: Connection[] = []
  const server = new ssh2.Server({ hostKeys: [hostKey], ...config }, (client) => {
    peers.push(client)
    client.on('error', () => {})
    client.on('authentication', authenticate)
    client.on('ready', () => serve(client))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const peer of peers) peer.end()
    server.close()
  })
  const { port } = server.address() as AddressInfo
  return {
    peers,
    endpoint: (changes = {}) =>
      endpointOf('m1', {
        address: '127.0.0.1',
        port,
        strictHostKeyChecking: 'no',
        // Without any file no new key is accepted, as by ssh.
        knownHostsFiles: ['/dev/null'],
        ...changes,
      }),
  }
}
