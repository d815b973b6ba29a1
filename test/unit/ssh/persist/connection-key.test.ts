import { describe, expect, it } from 'vitest'
import { connectionKey } from '../../../../src/ssh/persist/warm-connections.ts'
import { endpointOf } from '../../../support/endpoint.ts'

const base = endpointOf('m1')

describe('the key of a connection', () => {
  it('is the same under another name, number, waiting time and environment', () => {
    const other = { ...base, host: 'x', number: 9, connectTimeoutMs: 1, persistMs: 1, environment: { A: 'b' } }
    expect(connectionKey(other)).toBe(connectionKey(base))
  })

  it.each([
    ['user', { user: 'other' }],
    ['address', { address: '10.0.0.1' }],
    ['port', { port: 2222 }],
    ['key files', { identityFiles: ['/k'] }],
    ['agent', { agentSocket: '/a' }],
    ['agent forwarding', { forwardAgent: true }],
    ['known_hosts', { knownHostsFiles: ['/h'] }],
    ['strictness', { strictHostKeyChecking: 'no' as const }],
    ['proxy command', { proxyCommand: 'nc' }],
    ['methods', { authentications: ['password'] }],
    ['jump host', { jump: [endpointOf('j')] }],
    ['shell', { shell: 'tmux' }],
  ])('differs with the %s', (_what, change) => {
    expect(connectionKey({ ...base, ...change })).not.toBe(connectionKey(base))
  })

  it('differs with the user on a jump host', () => {
    const one = { ...base, jump: [endpointOf('j')] }
    const other = { ...base, jump: [endpointOf('j', { user: 'other' })] }
    expect(connectionKey(one)).not.toBe(connectionKey(other))
  })
})
