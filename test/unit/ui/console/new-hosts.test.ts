import { describe, expect, it } from 'vitest'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import { endpointOf } from '../../../support/endpoint.ts'
import { createConsoleHarness } from './console-harness.ts'

/** A console in which the name h3 is taken by root at port 2201, after these hosts were added. */
function afterAdding(...endpoints: readonly Endpoint[]) {
  const { console } = createConsoleHarness({ hosts: [] })
  console.addHosts([endpointOf('h3', { address: '127.0.0.1', port: 2201 })])
  console.addHosts(endpoints)
  return [[...console.state.hosts.keys()], console.state.notice?.text]
}

const h3 = (host: string, changes: Partial<Endpoint>) =>
  endpointOf(host, { alias: 'h3', address: '127.0.0.1', port: 2201, ...changes })

describe('adding a host whose name is taken', () => {
  it('opens another port or user of it under its full name', () => {
    expect(afterAdding(h3('h3:2202', { port: 2202 }), h3('ann@h3', { user: 'ann' }))).toEqual([
      ['h3', 'h3:2202', 'ann@h3'],
      'added 2 hosts',
    ])
  })

  it('opens the same machine with the same user only once, whatever its name', () => {
    expect(afterAdding(h3('root@h3:2201', {}))).toEqual([['h3'], 'h3 is already open'])
    const other = h3('ann@h3', { user: 'ann' })
    const { console } = createConsoleHarness({ hosts: [] })
    console.addHosts([other])
    console.addHosts([{ ...other, host: 'h3' }])
    expect(console.state.notice?.text).toBe('ann@h3 is already open')
  })

  it('says what has the name', () => {
    expect(afterAdding(h3('h3', { port: 2202 }), endpointOf('h4'))).toEqual([
      ['h3', 'h4'],
      'added h4; h3 is open as root@127.0.0.1:2201: close it first (Ctrl-] x)',
    ])
  })

  it('opens two hosts of hosts.yaml with the same address', () => {
    const { console } = createConsoleHarness({ hosts: [], prompts: { declaredHosts: () => ['h3', 'h4'] } })
    for (const host of ['h3', 'h4']) console.addHosts([endpointOf(host, { address: '127.0.0.1', port: 2201 })])
    expect([[...console.state.receivers], console.state.notice?.text]).toEqual([['h3', 'h4'], 'added h4'])
  })

  it('opens a second shell of the same login by hand, but not as a receiver: the machine would get everything twice', () => {
    const { console } = createConsoleHarness({ hosts: [], prompts: { declaredHosts: () => ['h3'] } })
    for (const host of ['h3', 'root@h3.lab']) console.addHosts([endpointOf(host, { address: '127.0.0.1' })])
    expect([[...console.state.receivers], console.state.notice?.text]).toEqual([
      ['h3'],
      'added root@h3.lab; root@h3.lab is the same login as h3, and therefore no receiver',
    ])
  })
})

it('asks for names in full where an open host has the name', async () => {
  const asked: boolean[] = []
  const { type } = createConsoleHarness({
    hosts: ['h3'],
    prompts: {
      resolveNewHosts: async (_, isTaken) => {
        asked.push(isTaken('h3'), isTaken('h4'))
        return []
      },
    },
  })
  type('\x1d+ann@h3\r')
  expect(asked).toEqual([true, false])
})
