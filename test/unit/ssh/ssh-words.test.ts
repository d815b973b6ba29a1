import { expect, it } from 'vitest'
import { sshWords } from '../../../src/ssh/ssh-words.ts'
import { endpointOf } from '../../support/endpoint.ts'

const host = (name: string, changes: Parameters<typeof endpointOf>[1] = {}) =>
  endpointOf(name, { address: '10.0.0.3', port: 22, user: 'root', ...changes })

it('advice names the user and the address, which ssh may not know by the name of the host', () => {
  expect(sshWords(host('m3', { user: 'nobody' }))).toBe('nobody@10.0.0.3')
  expect(sshWords(host('m3', { port: 2222, hostKeyAlias: 'm3' }))).toBe('-o HostKeyAlias=m3 -p 2222 root@10.0.0.3')
  const jump = [host('bastion', { address: '192.0.2.1', port: 2200 }), host('inner', { user: 'me' })]
  expect(sshWords(host('m3', { jump }))).toBe('-o ProxyJump=root@192.0.2.1:2200,me@10.0.0.3:22 root@10.0.0.3')
  expect(sshWords(host('m3', { alias: 'three', proxyCommand: 'nc m3 22' }))).toBe('root@three')
  expect(sshWords(host('m3', { address: 'a b;c' }))).toBe("'root@a b;c'")
})
