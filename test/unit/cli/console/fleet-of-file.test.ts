import { expect, it } from 'vitest'
import { Emitter } from '../../../../src/base/emitter.ts'
import { type Connections, fleetOfFile } from '../../../../src/cli/console/fleet-of-file.ts'
import type { Endpoint } from '../../../../src/inventory/host.ts'
import type { FleetEvent } from '../../../../src/ssh/create-fleet.ts'

const SCOPES = new Map([
  ['a/m1', 'a'],
  ['b/m1', 'b'],
  ['m2', 'a'],
])

const events = new Emitter<FleetEvent>()
const asked: string[] = []
const FLEET: Connections = {
  endpoint: (host) =>
    SCOPES.has(host) ? ({ host, address: `of ${host}`, passwordScope: SCOPES.get(host) } as Endpoint) : undefined,
  connection: (host) => void asked.push(host),
  session: (host) => ({ kind: 'ready', sinceMs: asked.push(host), attempt: 1 }),
  connect: (hosts) => void asked.push(...hosts),
  on: (listener) => events.on(listener),
}

const B = fleetOfFile(FLEET, {
  title: 'b',
  names: new Map([
    ['m1', 'b/m1'],
    ['m2', 'm2'],
    ['m3', 'm3'],
  ]),
})

it('reaches the hosts of a file by the names that the file gives them', () => {
  expect(B.endpoint('m1')).toMatchObject({ host: 'm1', address: 'of b/m1' })
  B.connection('m1')
  expect(B.session('m1').kind).toBe('ready')
  B.connect(['m1', 'm2'])
  expect(asked.splice(0)).toEqual(['b/m1', 'b/m1', 'b/m1'])
  expect(B.endpoint('m3')).toBeUndefined()
})

it('never reaches a host that was opened from another file, whatever its name is now', () => {
  for (const host of ['m2', 'a/m1', 'b/m1', 'm4']) {
    expect(B.endpoint(host)).toBeUndefined()
    expect(B.connection(host)).toBeUndefined()
    expect(B.session(host)).toEqual({ kind: 'closed' })
  }
  expect(asked).toEqual([])
})

it('tells of its own hosts only', () => {
  const heard: FleetEvent[] = []
  using _listening = B.on((event) => heard.push(event))
  for (const host of ['a/m1', 'b/m1', 'm2', 'm1']) events.emit({ type: 'shell', host, state: { kind: 'open' } })
  expect(heard).toEqual([{ type: 'shell', host: 'm1', state: { kind: 'open' } }])
})
