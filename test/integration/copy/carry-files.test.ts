/** Files of one host for others, on the embedded hosts (real SSH): fetched once, and sent to those that come together in one copy. */
import { randomBytes } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { FileCarrier } from '../../../src/cli/connect/carry-files.ts'
import type { Endpoint } from '../../../src/inventory/host.ts'
import { copyToHosts } from '../../../src/ssh/copy/copy-to-hosts.ts'
import {
  type EmbeddedHosts,
  embeddedEndpoints,
  startEmbeddedHosts,
} from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { nobody } from '../../support/ssh-context.ts'

const BIG_BYTES = 5 * 1024 * 1024

let embedded: EmbeddedHosts
let hosts: readonly Endpoint[]
let homes: readonly string[]
beforeAll(async () => {
  embedded = await startEmbeddedHosts({ count: 4, spawnPty: spawnLocalPty })
  hosts = embeddedEndpoints(embedded)
  homes = embedded.hosts.map(({ name }) => join(embedded.directory, name))
  mkdirSync(join(homes[0]!, 'parcel'))
  writeFileSync(join(homes[0]!, 'parcel', 'big'), randomBytes(BIG_BYTES))
  writeFileSync(join(homes[0]!, 'parcel', 'list'), 'small')
})
afterAll(async () => await embedded.close())

const carrier = (copies: string[][] = []) =>
  new FileCarrier(
    {
      transports: { ssh2: createSsh2Transport() },
      hostKeys: createHostKeyVerifier(),
      credentials: nobody,
      fanOut: 8,
    },
    (endpoints, request, wires) => {
      copies.push(endpoints.map(({ host }) => host))
      return copyToHosts(endpoints, request, wires)
    },
  )
const expectParcel = (home: string, name: string) => {
  for (const file of ['big', 'list']) {
    expect(readFileSync(join(home, name, file)).equals(readFileSync(join(homes[0]!, 'parcel', file)))).toBe(true)
  }
}
const leftHere = () => readdirSync(tmpdir()).filter((name) => name.startsWith(`muster-files-${process.pid}-`))

it('is copied once to all hosts that want it together', async () => {
  const copies: string[][] = []
  const files = carrier(copies)
  const { signal } = new AbortController()
  const ends = await Promise.all(
    hosts
      .slice(1)
      .map((host) =>
        files.carry(host, { from: hosts[0], path: '~/parcel', to: '~/together' }, { signal, together: 3 }),
      ),
  )
  expect(ends.map(({ outcome }) => outcome)).toEqual(Array(3).fill({ kind: 'exit', code: 0 }))
  for (const home of homes.slice(1)) expectParcel(home, 'together')
  expect(copies).toEqual([hosts.slice(1).map(({ host }) => host)])
})

it('is copied to one host if the others do not come, and to a host that comes late', async () => {
  const files = carrier()
  const { signal } = new AbortController()
  const delivery = { from: hosts[0], path: '~/parcel', to: '~/alone' }
  const first = await files.carry(hosts[1]!, delivery, { signal, together: 3 })
  const late = await files.carry(hosts[2]!, delivery, { signal, together: 3 })
  expect([first.outcome, late.outcome]).toEqual(Array(2).fill({ kind: 'exit', code: 0 }))
  for (const home of homes.slice(1, 3)) expectParcel(home, 'alone')
})

it('tells each host why nothing came, and tries again the next time', async () => {
  const files = carrier()
  const { signal } = new AbortController()
  const bring = () =>
    Promise.all(
      hosts
        .slice(1)
        .map((host) => files.carry(host, { from: hosts[0], path: '~/later', to: '~/later' }, { signal, together: 3 })),
    )
  for (const { outcome, stderr } of await bring()) {
    expect(outcome).toEqual({ kind: 'exit', code: 1 })
    expect(Buffer.from(stderr).toString()).toMatch(/later/)
  }
  mkdirSync(join(homes[0]!, 'later'))
  writeFileSync(join(homes[0]!, 'later', 'file'), 'it is there now')
  for (const { outcome } of await bring()) expect(outcome).toEqual({ kind: 'exit', code: 0 })
  for (const home of homes.slice(1)) expect(readFileSync(join(home, 'later', 'file'), 'utf8')).toBe('it is there now')
  expect(leftHere()).toEqual([])
})

it('also carries a file of this machine', async () => {
  const { signal } = new AbortController()
  const delivery = { from: undefined, path: join(homes[0]!, 'parcel', 'list'), to: '~/one' }
  const { outcome } = await carrier().carry(hosts[1]!, delivery, { signal, together: 1 })
  expect(outcome).toEqual({ kind: 'exit', code: 0 })
  expect(readFileSync(join(homes[1]!, 'one', 'list'), 'utf8')).toBe('small')
})

it('stops when its signal aborts', async () => {
  const stop = new AbortController()
  const delivery = { from: hosts[0], path: '~/parcel', to: '~/cancelled' }
  const carried = carrier().carry(hosts[1]!, delivery, { signal: stop.signal, together: 3 })
  stop.abort()
  expect((await carried).outcome).toEqual({ kind: 'cancelled' })
  expect(leftHere()).toEqual([])
})
