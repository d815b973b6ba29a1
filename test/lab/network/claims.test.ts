/** A host that gives another one's address as its own: nothing is sent there that was not asked for, and nothing false is said of the other one. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'iperf3', 'iperf')

/** Its servers only say that they listen. */
const LIAR = `export PATH="$HOME/bin:$PATH"
[ -r ~/claim ] && export SSH_CONNECTION="10.81.255.254 1 $(cat ~/claim) 22"
`
const liarsTool = (tool: string, listening: string) => `cat > bin/${tool} << 'END'
#!/bin/sh
case " $* " in
*' -s '*) echo '${listening}'; exec sleep 60 ;;
*' -B 10.81.0.'[15]' '*) exec sleep 1 ;;
esac
exec /usr/bin/${tool} "$@"
END
chmod 755 bin/${tool}`

type Event = { readonly type: string; readonly [key: string]: unknown }

describe.skipIf(!canRun)('a host that gives a false address', () => {
  let lab: Lab
  /** Without m5. */
  let fewer = ''
  /** Names in place of addresses. */
  let named = ''
  beforeAll(async () => {
    lab = await startLab({ count: 5, perHost: (name) => (name === 'm3' ? { bashrc: LIAR } : {}) })
    const lines = readFileSync(lab.hostsFile, 'utf8').split('\n')
    fewer = join(lab.directory, 'fewer.yaml')
    writeFileSync(fewer, lines.filter((line) => !line.includes('m5:')).join('\n'))
    named = join(lab.directory, 'named.yaml')
    writeFileSync(named, lines.join('\n').replaceAll(/(\w+): \{ address: [\d.]+ \}/g, '$1: { address: $1 }'))
    const tools = [
      liarsTool('iperf', 'Server listening on UDP port 5301'),
      liarsTool('iperf3', 'Server listening on 5301 (test #1)'),
    ]
    const made = await lab.host('m3').exec(`mkdir bin && ${tools.join('\n')}`)
    expect(made.stderr).toBe('')
  })
  afterAll(async () => await lab?.stop())

  const claim = async (address: string) => {
    expect((await lab.host('m3').exec(`echo ${address} > claim`)).code).toBe(0)
  }
  const measure = async (file: string, ...args: readonly string[]) => {
    const { stdout } = await lab.run([...PROGRAM, '--hosts', file, 'net', ...args, '--json'])
    return stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Event)
  }
  const linksOf = (events: readonly Event[]) =>
    Object.fromEntries(events.flatMap((event) => (event.type === 'link' ? [[`${event.from} ${event.to}`, event]] : [])))
  /** Datagrams to ports of m5 on which nothing listens. */
  const arrivedAtM5 = async () => {
    const { stdout } = await lab.host('m5').exec('cat /proc/net/snmp')
    const [names = [], values = []] = stdout
      .split('\n')
      .filter((line) => line.startsWith('Udp: '))
      .map((line) => line.split(' '))
    return Number(values[names.indexOf('NoPorts')])
  }
  const UDP = ['--tool', 'iperf2', '--udp', '80M', '--time', '1']

  it('is not measured at the address of a host of hosts.yaml, also outside of the target', async () => {
    await claim('10.81.0.5')
    const before = await arrivedAtM5()
    const events = await measure(lab.hostsFile, 'mesh', 'm[1-3]', ...UDP)
    expect(await arrivedAtM5()).toBe(before)
    const reason = 'it gives 10.81.0.5 as its address, which is declared for m5'
    expect(events).toContainEqual(expect.objectContaining({ type: 'host', host: 'm3', outcome: 'no-address', reason }))
    const links = linksOf(events)
    for (const pair of ['m1 m2', 'm2 m1']) expect(links[pair]).toMatchObject({ outcome: 'measured', tool: 'iperf2' })
    expect(links['m1 m3']).toMatchObject({ outcome: 'no-address', reason: `m3: ${reason}` })
  })

  it('gets no UDP sent to a host that does not answer, in a mesh and in a pair', async () => {
    await claim('10.81.0.5')
    const before = await arrivedAtM5()
    const links = linksOf(await measure(fewer, 'mesh', 'm[1-3]', ...UDP))
    expect(links['m1 m3']).toMatchObject({
      outcome: 'refused',
      reason: expect.stringMatching(
        /^m3, which gives 10\.81\.0\.5 as its address, says that it listens on port 530\d, but 10\.81\.0\.5 refuses m1 \(m1's iperf said/,
      ),
    })
    for (const pair of ['m1 m2', 'm2 m1']) expect(links[pair]).toMatchObject({ outcome: 'measured', tool: 'iperf2' })
    const pair = await measure(fewer, 'pair', 'm1', 'm3', '--one-way', ...UDP)
    const failure = pair.find(({ type }) => type === 'failed')
    expect(failure?.reason).toMatch(/^m3, which gives 10\.81\.0\.5 as its address, .* 10\.81\.0\.5 refuses m1 \(/)
    // Three probes, whose end a client repeats when it is refused; each measurement would have 7,000 packets.
    expect((await arrivedAtM5()) - before).toBeLessThan(1_000)
  })

  it('says nothing false about the host whose address it gives', async () => {
    await claim('10.81.0.1')
    const links = linksOf(await measure(lab.hostsFile, 'mesh', 'm[1-4]', '--time', '1'))
    const reason = 'm3: it gives 10.81.0.1 as its address, which is declared for m1'
    for (const [pair, link] of Object.entries(links))
      expect(link).toMatchObject(pair.includes('m3') ? { outcome: 'no-address', reason } : { outcome: 'measured' })
    expect(Object.keys(links)).toHaveLength(12)
  })

  it('is measured over UDP where it is honest and declared by name, in a mesh and in a pair', async () => {
    const links = linksOf(await measure(named, 'mesh', 'm[1,2,4]', ...UDP))
    expect(Object.values(links)).toHaveLength(6)
    for (const link of Object.values(links)) expect(link).toMatchObject({ outcome: 'measured', tool: 'iperf2' })
    const events = await measure(named, 'pair', 'm1', 'm2', '--tool', 'iperf2', '--udp', '20M', '--time', '3')
    expect(events.filter(({ type }) => type === 'failed')).toEqual([])
    for (const from of ['m1', 'm2'])
      expect(events.filter((event) => event.type === 'interval' && event.from === from).length).toBeGreaterThan(1)
  })
})
