/** An endpoint for tests, with no host behind it. */
import type { Endpoint } from '../../src/inventory/host.ts'

export function endpointOf(host: string, changes: Partial<Endpoint> = {}): Endpoint {
  return {
    host,
    number: 1,
    transport: 'ssh2',
    address: `${host}.test`,
    port: 22,
    user: 'root',
    identityFiles: [],
    identitiesOnly: false,
    forwardAgent: false,
    jump: [],
    knownHostsFiles: [],
    globalKnownHostsFiles: [],
    strictHostKeyChecking: 'ask',
    hashKnownHosts: false,
    connectTimeoutMs: 60_000,
    keepAliveIntervalMs: 0,
    keepAliveMaxMissed: 3,
    authentications: ['publickey', 'keyboard-interactive', 'password'],
    ...changes,
  }
}
