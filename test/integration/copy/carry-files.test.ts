/** Files of one host for others, on the embedded hosts (real SSH): fetched once, and sent to those that come together in one copy. */
import { randomBytes } from 'node:crypto'
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
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
import { writeProgram } from '../../support/program.ts'
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
        files.carry(
          host,
          { from: hosts[0], path: '~/parcel', kind: 'directory', to: '~/together' },
          { signal, together: 3 },
        ),
      ),
  )
  expect(ends.map(({ outcome }) => outcome)).toEqual(Array(3).fill({ kind: 'exit', code: 0 }))
  for (const home of homes.slice(1)) expectParcel(home, 'together')
  expect(copies).toEqual([hosts.slice(1).map(({ host }) => host)])
})

it('is copied to one host if the others do not come, and to a host that comes late', async () => {
  const files = carrier()
  const { signal } = new AbortController()
  const delivery = { from: hosts[0], path: '~/parcel', kind: 'directory', to: '~/alone' } as const
  const first = await files.carry(hosts[1]!, delivery, { signal, together: 3 })
  const late = await files.carry(hosts[2]!, delivery, { signal, together: 3 })
  expect([first.outcome, late.outcome]).toEqual(Array(2).fill({ kind: 'exit', code: 0 }))
  for (const home of homes.slice(1, 3)) expectParcel(home, 'alone')
})

it('tells each host why nothing came, and tries again the next time', async () => {
  const files = carrier()
  const { signal } = new AbortController()
  const delivery = { from: hosts[0], path: '~/later', kind: 'directory', to: '~/later' } as const
  const bring = () => Promise.all(hosts.slice(1).map((host) => files.carry(host, delivery, { signal, together: 3 })))
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
  const delivery = { from: undefined, path: join(homes[0]!, 'parcel', 'list'), kind: 'file', to: '~/one' } as const
  const { outcome } = await carrier().carry(hosts[1]!, delivery, { signal, together: 1 })
  expect(outcome).toEqual({ kind: 'exit', code: 0 })
  expect(readFileSync(join(homes[1]!, 'one', 'list'), 'utf8')).toBe('small')
})

describe('from a host that lies', () => {
  let own: string
  let programs: string
  beforeAll(() => {
    // The user's, on this machine.
    own = mkdtempSync(join(tmpdir(), 'muster-own-'))
    writeFileSync(join(own, 'id_ed25519'), 'private')
    programs = join(embedded.directory, 'bin', embedded.hosts[0]!.name)
    // A link that it is asked for is listed as a link, and not as what it leads to.
    writeProgram(join(programs, 'readlink'), '[ "$1" != -f ] || { echo "$2"; exit; }\nexec /usr/bin/readlink "$@"')
    symlinkSync(own, join(homes[0]!, 'to-directory'))
    symlinkSync(join(own, 'id_ed25519'), join(homes[0]!, 'to-file'))
    mkdirSync(join(homes[0]!, 'links'))
    symlinkSync(own, join(homes[0]!, 'links', 'directory'))
    symlinkSync(join(own, 'id_ed25519'), join(homes[0]!, 'links', 'file'))
  })
  afterAll(() => {
    rmSync(own, { recursive: true, force: true })
    rmSync(join(programs, 'readlink'), { force: true })
  })
  const COPIED = { outcome: { kind: 'exit', code: 0 }, said: '' }
  const bring = async (path: string, kind: 'directory' | 'file', to: string, keepsLinks = false) => {
    const { signal } = new AbortController()
    const delivery = { from: hosts[0], path: `~/${path}`, kind, keepsLinks, to: `~/${to}` }
    const { outcome, stderr } = await carrier().carry(hosts[1]!, delivery, { signal, together: 1 })
    return { outcome, said: Buffer.from(stderr).toString() }
  }

  it.each([
    ['to-directory', 'directory', 'link'],
    ['to-file', 'directory', 'link'],
    ['to-directory', 'file', 'link'],
    ['to-file', 'file', 'link'],
    ['parcel', 'file', 'directory'],
    ['parcel/list', 'directory', 'file'],
  ] as const)('refuses %s instead of a %s: it is a %s', async (path, kind, sent) => {
    const { outcome, said } = await bring(path, kind, 'refused')
    expect(outcome).toEqual({ kind: 'exit', code: 1 })
    expect(said).toBe(`${hosts[0]!.host} sent a ${sent} instead of the ${kind} ~/${path}: nothing was copied`)
    expect(readdirSync(homes[1]!)).not.toContain('refused')
    expect(leftHere()).toEqual([])
  })

  it('refuses links inside of it, unless they are wanted: then they stay links', async () => {
    expect(await bring('links', 'directory', 'linked')).toEqual({
      outcome: { kind: 'exit', code: 1 },
      said: `${hosts[0]!.host} sent a link, ~/links/directory, among files: nothing was copied`,
    })
    expect(readdirSync(homes[1]!)).not.toContain('linked')
    expect(await bring('links', 'directory', 'linked', true)).toEqual(COPIED)
    expect(readlinkSync(join(homes[1]!, 'linked', 'directory'))).toBe(own)
    expect(readlinkSync(join(homes[1]!, 'linked', 'file'))).toBe(join(own, 'id_ed25519'))
  })

  // A small number of files goes through the shell, a large one through the helper.
  it.each([1, 20])('never writes through a link that it sent before (%s files)', async (count) => {
    const sent = join(homes[0]!, `checkpoint-${count}`)
    const victim = join(embedded.directory, `victim-${count}`)
    mkdirSync(victim)
    mkdirSync(join(sent, 'a'), { recursive: true })
    for (const name of ['deep', 'sub']) symlinkSync(victim, join(sent, name === 'deep' ? 'a/deep' : name))
    symlinkSync(join(victim, 'no-file'), join(sent, 'file'))
    const again = () => bring(`checkpoint-${count}`, 'directory', `checkpoint-${count}`, true)
    expect(await again()).toEqual(COPIED)
    const received = join(homes[1]!, `checkpoint-${count}`)
    expect(readlinkSync(join(received, 'a', 'deep'))).toBe(victim)
    for (const name of ['a/deep', 'sub', 'file']) rmSync(join(sent, name))
    writeFileSync(join(sent, 'file'), 'new')
    for (const name of ['a/deep/er', 'sub']) {
      mkdirSync(join(sent, name), { recursive: true })
      for (let index = 0; index < count; index += 1) writeFileSync(join(sent, name, `${index}`), 'new')
    }
    expect(await again()).toEqual(COPIED)
    expect(readdirSync(victim)).toEqual([])
    for (const name of ['a/deep/er/0', 'sub/0', 'file']) expect(readFileSync(join(received, name), 'utf8')).toBe('new')
  })

  it('follows a link in the path of the destination itself', async () => {
    mkdirSync(join(homes[1]!, 'disk'))
    symlinkSync('disk', join(homes[1]!, 'to-disk'))
    expect(await bring('parcel', 'directory', 'to-disk')).toEqual(COPIED)
    expectParcel(homes[1]!, 'disk')
  })
})

it('stops when its signal aborts', async () => {
  const stop = new AbortController()
  const delivery = { from: hosts[0], path: '~/parcel', kind: 'directory', to: '~/cancelled' } as const
  const carried = carrier().carry(hosts[1]!, delivery, { signal: stop.signal, together: 3 })
  stop.abort()
  expect((await carried).outcome).toEqual({ kind: 'cancelled' })
  expect(leftHere()).toEqual([])
})
