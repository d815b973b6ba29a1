/** `muster net mesh` on links of known speed, with either iperf and both, and where something is wrong with a host. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hide, PACKAGES } from './hidden-iperf.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc', 'iperf3', 'iperf', 'nft', 'ping')

/** Mbit/s in both directions; m7 sends at 30. */
const RATES: Readonly<Record<string, number>> = { m1: 120, m2: 110, m3: 105, m4: 100, m5: 95, m6: 90, m7: 100, m8: 12 }
const M7_SENDS = 30
/** What an Ethernet frame of 1514 bytes carries for TCP with time stamps. */
const PAYLOAD = 1448 / 1514
/** A burst of 10 ms: on a busy machine the kernel's timer is late, and what it could not use meanwhile is lost. */
const shapeOf = (mbit: number) => ({ bitsPerSecond: mbit * 1e6, burstBytes: Math.round((mbit * 1e6) / 800) })
type Event = { readonly type: string; readonly [key: string]: unknown }
type Link = {
  readonly from: string
  readonly to: string
  readonly outcome: string
  readonly tool?: string
  readonly bitsPerSecond?: number
  readonly reason?: string
}

describe.skipIf(!canRun)('muster net mesh', () => {
  let lab: Lab
  const command = (...args: readonly string[]) => [...PROGRAM, '--hosts', lab.hostsFile, 'net', 'mesh', ...args]
  const eventsOf = (stdout: string): Event[] =>
    stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Event)
  const mesh = async (...args: readonly string[]) => {
    const { code, stdout, stderr } = await lab.run(command('--time', '1', '--json', ...args))
    const events = eventsOf(stdout)
    const links = events.filter(({ type }) => type === 'link') as unknown as Link[]
    const findings = events.flatMap(({ type, id, text }) => (type === 'finding' ? [`${id}: ${text}`] : []))
    return { code, stderr, events, links, findings: findings.join('\n') }
  }
  const programs = () =>
    lab.hosts.map((host) => (host.isUp ? host.processes().map(({ name, command }) => `${name}: ${command}`) : []))
  const expectedMbit = ({ from, to }: Link) => {
    const sends = from === 'm7' ? M7_SENDS : (RATES[from] ?? 0)
    return Math.min(sends, RATES[to] ?? 0) * PAYLOAD
  }
  const wrongOnes = (links: readonly Link[]) =>
    links.flatMap((link) => {
      const mbit = (link.bitsPerSecond ?? 0) / 1e6
      const expected = expectedMbit(link)
      return Math.abs(mbit / expected - 1) <= 0.1 ? [] : [{ ...link, mbit, expected }]
    })

  beforeAll(async () => {
    lab = await startLab({ count: 8 })
    for (const host of lab.hosts) {
      await host.shape(shapeOf(RATES[host.name] ?? 0))
      // BBR, where it is the default, looks for the speed of a link for longer than this test measures.
      await host.exec('echo reno > /proc/sys/net/ipv4/tcp_congestion_control')
    }
    const { bitsPerSecond, burstBytes } = shapeOf(M7_SENDS)
    const slow = `tbf rate ${bitsPerSecond}bit burst ${burstBytes}b latency 50ms`
    expect((await lab.host('m7').exec(`tc qdisc replace dev eth0 root ${slow}`)).code).toBe(0)
  })
  afterAll(async () => await lab?.stop())

  /** What a busy machine has slowed down once is measured again, by itself. */
  const expectRight = async (links: readonly Link[], ...args: readonly string[]) => {
    for (const { from, to } of wrongOnes(links)) {
      const again = await mesh(`${from},${to}`, ...args)
      expect(wrongOnes(again.links.filter((link) => link.from === from))).toEqual([])
    }
  }

  it('measures the capacity of links with iperf2', async () => {
    const { code, links } = await mesh('m[1-2,7]', '--tool', 'iperf2')
    expect(links.map(({ tool }) => tool)).toEqual(Array.from({ length: 6 }, () => 'iperf2'))
    await expectRight(links, '--tool', 'iperf2')
    expect(code).toBe(0)
  })

  it('shows the result and exits with 1 when a file cannot be written in the end', async () => {
    const { code, stdout, stderr } = await lab.run(command('m1,m2', '--time', '1', '--csv', '/dev/full'))
    expect([code, stdout]).toEqual([1, expect.stringContaining('bit/s')])
    expect(stderr).toContain('muster: cannot write /dev/full: no space left on the device\n')
  })

  it('reports an asymmetric link between two hosts, as a mesh and as a pair', async () => {
    const told = /asymmetric-link: m7 → m1 is \d+ % slower than m1 → m7/
    expect((await mesh('m1,m7')).findings).toMatch(told)
    const pair = [...PROGRAM, '--hosts', lab.hostsFile, 'net', 'pair', 'm1', 'm7', '--time', '4', '--json']
    const { stdout } = await lab.run(pair)
    const findings = eventsOf(stdout).flatMap(({ type, id, text }) => (type === 'finding' ? [`${id}: ${text}`] : []))
    expect(findings.join('\n')).toMatch(told)
    const measures = () =>
      programs()
        .flat()
        .filter((program) => /iperf|ping/.test(program))
    await waitUntil(() => measures().length === 0, 'every server to be gone')
  })

  it.each(['iperf3', 'mixed'])('measures the capacity of links and names the slow host, with %s', async (tool) => {
    const before = programs()
    if (tool === 'mixed') for (const name of ['m1', 'm4', 'm8']) await lab.host(name).exec(hide('iperf3'))
    const args = tool === 'mixed' ? [] : ['--tool', tool]
    const { code, links, findings, stderr } = await mesh(...args)
    expect(stderr).toBe('')
    expect(links).toHaveLength(56)
    await expectRight(links, ...args)
    expect(findings).toMatch(/^slow-host: m8 is slow to and from all hosts: it sends at most 1[01](\.\d)? Mbit/m)
    expect(findings).toMatch(/^slow-sender: m7 sends slowly to all hosts: at most 2\d\.?\d? Mbit/m)
    expect(code).toBe(0)
    const tools = links.reduce<Record<string, number>>((all, { tool: used = '' }) => {
      all[used] = (all[used] ?? 0) + 1
      return all
    }, {})
    // Five hosts have iperf3.
    expect(tools).toEqual(tool === 'mixed' ? { iperf3: 20, iperf2: 36 } : { [tool]: 56 })
    await waitUntil(() => JSON.stringify(programs()) === JSON.stringify(before), 'every server to be gone')
  })

  it('reports what is wrong with each pair, and measures the rest', async () => {
    const foreign = 'iperf3 -s -D -p 5301'
    expect((await lab.host('m2').exec(foreign)).code).toBe(0)
    const drop = 'nft add table inet f && nft "add chain inet f i { type filter hook input priority 0; }"'
    expect((await lab.host('m3').exec(`${drop} && nft add rule inet f i tcp dport 5301-5399 drop`)).code).toBe(0)
    await lab.host('m5').exec(`${hide('iperf3')} && ${hide('iperf')}`)
    await lab.host('m1').exec('umount /usr/bin/iperf3')
    const before = programs()
    const [file = '', ...args] = lab.command(command('--time', '1', '--json', 'm[1-3,5-6]'))
    const child = spawn(file, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'inherit'] })
    const closed = once(child, 'close')
    let stdout = ''
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    await waitUntil(() => /"type":"link".*"m6"/.test(stdout), 'a link of m6')
    await lab.host('m6').crash()
    const [code] = await closed
    expect(code).toBe(4)
    const events = eventsOf(stdout)
    const links = events.filter(({ type }) => type === 'link') as unknown as Link[]
    const find = (from: string, to: string) => links.find((link) => link.from === from && link.to === to)
    expect(links).toHaveLength(20)
    // The port that somebody else has is passed over.
    expect(events).toContainEqual(expect.objectContaining({ type: 'port-taken', host: 'm2', port: 5301 }))
    expect(find('m1', 'm2')).toMatchObject({ outcome: 'measured' })
    expect(find('m3', 'm1')).toMatchObject({ outcome: 'measured' })
    expect(find('m1', 'm3')).toMatchObject({
      outcome: 'no-answer',
      reason: expect.stringContaining('a firewall drops it'),
    })
    expect(find('m1', 'm5')).toMatchObject({
      outcome: 'no-tool',
      reason: expect.stringContaining('m1 cannot log in to m5'),
    })
    expect(
      links.filter(({ from, to, outcome }) => [from, to].includes('m6') && outcome === 'away').length,
    ).toBeGreaterThan(0)
    before[5] = []
    await waitUntil(() => JSON.stringify(programs()) === JSON.stringify(before), 'every server to be gone')
  })

  it('installs a missing iperf3 on request, and removes it again', async () => {
    const m4 = lab.host('m4')
    const hidden = [`iperf`, `iperf3`].map((name) => `test ! -x /usr/bin/${name} || ${hide(name)}`)
    const made = await m4.exec(`${hidden.join('; ')}; ${PACKAGES}`)
    expect(made.stderr).toBe('')
    const net = (...args: readonly string[]) =>
      lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--yes', 'net', ...args, 'm[2,4]'])
    const dry = await net('mesh', '--install', '--dry-run')
    expect(dry.stdout).toMatch(/m4.*\n.*install iperf3 with apt/)
    expect(dry.stdout).toContain('2 links in 2 steps')
    expect((await m4.exec('cat /var/lib/archive')).stdout).toBe('')
    const { code, stdout } = await net('mesh', '--install', '--time', '1', '--tool', 'iperf3')
    expect(stdout).toContain('m4: install iperf3 with apt: done')
    expect(stdout).not.toContain('were measured over ssh')
    expect(code).toBe(0)
    expect((await net('uninstall')).code).toBe(0)
    expect((await m4.exec('cat /var/lib/archive; ls -A /var/lib/muster')).stdout).toBe('install iperf3\npurge iperf3\n')
    expect((await m4.exec('test -x /usr/bin/iperf3')).code).toBe(1)
  })
})
