import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { systemClock } from '../../../src/base/clock.ts'
import { checkHosts } from '../../../src/ssh/check-hosts.ts'
import { createFleet, type Fleet } from '../../../src/ssh/create-fleet.ts'
import {
  type EmbeddedHosts,
  embeddedEndpoints,
  startEmbeddedHosts,
} from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { createHostKeyVerifier } from '../../../src/ssh/known-hosts/verifier.ts'
import { createSsh2Transport } from '../../../src/ssh/ssh2/transport.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { freePort } from '../../support/openssh-server.ts'
import { nobody } from '../../support/ssh-context.ts'
import { TcpProxy, through } from '../../support/tcp-proxy.ts'
import { waitUntil } from '../../support/wait-until.ts'

describe('a fleet of embedded hosts over SSH', () => {
  let embedded: EmbeddedHosts
  let fleet: Fleet
  /** On the way to m4. */
  let frozen: TcpProxy
  const texts = new Map<string, string>()
  const text = (host: string) => texts.get(host) ?? ''
  const wires = () => ({
    transports: { ssh2: createSsh2Transport() },
    hostKeys: createHostKeyVerifier(),
    credentials: nobody,
    clock: systemClock,
  })
  const type = (line: string, hosts = fleet.hosts) => fleet.write(hosts, Buffer.from(line))
  const isOpen = (host: string) => fleet.shell(host).kind === 'open'

  beforeAll(async () => {
    embedded = await startEmbeddedHosts({ count: 6, spawnPty: spawnLocalPty })
    // The shortest waits that the back-off gives.
    fleet = createFleet({ ...wires(), random: () => 0, shell: { term: 'xterm-256color' } })
    fleet.on((event) => {
      if (event.type === 'data') texts.set(event.host, text(event.host) + Buffer.from(event.bytes).toString())
    })
    frozen = await TcpProxy.to(embedded.host('m4').port)
    for (const endpoint of embeddedEndpoints(embedded))
      fleet.add(endpoint.host === 'm4' ? through(frozen, endpoint) : endpoint)
    fleet.connect(fleet.hosts)
    await waitUntil(() => fleet.hosts.every(isOpen), 'six shells')
  })
  afterAll(async () => {
    fleet[Symbol.dispose]()
    await frozen[Symbol.asyncDispose]()
    await embedded.close()
  })

  it('types into all hosts, and each answers with its own name', async () => {
    expect(type('echo "I am $(hostname)"\n').sent).toEqual(['m1', 'm2', 'm3', 'm4', 'm5', 'm6'])
    await waitUntil(() => fleet.hosts.every((host) => text(host).includes(`I am ${host}\r\n`)), 'six names')
  })

  it('types into the named hosts and no other', async () => {
    type('echo on""ly\n', ['m2', 'm5'])
    await waitUntil(() => text('m2').includes('only\r\n') && text('m5').includes('only\r\n'), 'the two')
    type('echo al""l\n')
    await waitUntil(() => fleet.hosts.every((host) => text(host).includes('all\r\n')), 'all')
    expect(fleet.hosts.filter((host) => text(host).includes('only\r\n'))).toEqual(['m2', 'm5'])
  })

  it('continues with the others while one is down, and gets it back with a new shell of the same size', async () => {
    fleet.resize('m3', { columns: 66, rows: 22 })
    const host = embedded.host('m3')
    await host.stop()
    await waitUntil(() => fleet.session('m3').kind === 'waiting', 'the loss of m3')
    expect(type('echo five\n')).toEqual({
      sent: ['m1', 'm2', 'm4', 'm5', 'm6'],
      skipped: [{ host: 'm3', reason: 'reconnecting' }],
    })
    await host.start()
    await waitUntil(() => isOpen('m3'), 'the new shell')
    type('stty size\n', ['m3'])
    await waitUntil(() => text('m3').includes('22 66'), 'its size')
  })

  it('does not wait for a frozen host while typing into others', async () => {
    frozen.stall()
    type('echo fro""zen\n')
    await waitUntil(
      () => fleet.hosts.every((host) => host === 'm4' || text(host).includes('frozen\r\n')),
      'the five others',
    )
    frozen.unstall()
    await waitUntil(() => text('m4').includes('frozen\r\n'), 'm4')
  })

  it('opens a new shell on the same connection when asked, after a shell has ended', async () => {
    const before = embedded.host('m6').acceptedCount
    type('exit\n', ['m6'])
    await waitUntil(() => fleet.shell('m6').kind === 'ended', 'the end of the shell')
    fleet.reconnect(fleet.hosts)
    await waitUntil(() => isOpen('m6'), 'the new shell')
    expect(embedded.host('m6').acceptedCount).toBe(before)
  })

  it('says which hosts answer, and why the others do not', async () => {
    const [first, second] = embeddedEndpoints(embedded)
    const checks = new Map<string, string>()
    const gone = { ...first!, host: 'gone', port: await freePort() }
    for await (const check of checkHosts([first!, { ...second!, identityFiles: [] }, gone], wires())) {
      checks.set(check.host, check.failure?.kind ?? check.outcome)
    }
    expect(Object.fromEntries(checks)).toEqual({ m1: 'ok', m2: 'authentication', gone: 'unreachable' })
  })

  it('hangs up everywhere when it is disposed of', async () => {
    fleet[Symbol.dispose]()
    await waitUntil(() => embedded.hosts.every(({ connectionCount }) => connectionCount === 0), 'no connection')
  })
})
