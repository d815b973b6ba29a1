/** At which address hosts reach each other. */
import { expect, it } from 'vitest'
import type { Host } from '../../../src/inventory/host.ts'
import { hostAddresses } from '../../../src/inventory/host-addresses.ts'

it('is that of hosts.yaml, else HostName of ssh_config unless it leads through a tunnel, else the name', () => {
  const host = (name: string, address?: string): Host => ({ name, number: 0, ...(address && { address }) })
  const endpoint = (of: string, address: string, transport: 'ssh2' | 'local' = 'ssh2') => ({
    host: of,
    address,
    transport,
  })
  const hosts = [host('a', '10.0.0.1'), host('b'), host('c'), host('d'), host('e'), host('f', '127.0.0.1')]
  const endpoints = [
    endpoint('a', '10.0.0.1'),
    endpoint('b', '10.0.0.2'),
    endpoint('c', '127.0.0.1'),
    endpoint('d', 'localhost', 'local'),
    endpoint('f', '127.0.0.1'),
  ]
  expect(Object.fromEntries(hostAddresses(hosts, endpoints))).toEqual({
    a: '10.0.0.1',
    b: '10.0.0.2',
    c: 'c',
    d: 'd',
    e: 'e',
    f: '127.0.0.1',
  })
})
