/** Bandwidth tests in the Network tab, on real hosts with links of known speed, a slow one, and a host that lies. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import { hide, PACKAGES } from './hidden-iperf.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc', 'iperf3', 'ping')

const MEGABIT = 1e6
const FAST = { bitsPerSecond: 100 * MEGABIT, burstBytes: 125_000 }
const SLOW = { bitsPerSecond: 10 * MEGABIT, burstBytes: 15_000 }

/** A cell of the matrix, which is larger on a larger screen. */
const FAST_CELL = '(?:[█▓▒] +)?\\d[\\d.]*M *[█▓▒]'
const SLOW_CELL = '(?:░ +)?\\d[\\d.]*M *░'
const rowOf = (...parts: readonly string[]) => new RegExp(parts.join(' +'))

/** m5: an iperf3 that claims a rate that no link has, and to m1 fails with bytes that act on a terminal. */
const liar = (address: string, farther: string) => `cp /usr/bin/iperf3 /run/iperf3 && cat > /run/liar << 'END'
#!/bin/sh
case " $* " in
*' -s '*|*--version*) exec /run/iperf3 "$@" ;;
*' -c ${address} '*) printf '\\033]0;owned\\007{"error":"\\\\u001b]0;owned\\\\u0007\\\\u001b[2Jgone"}' ;;
*' -c ${farther} '*) printf '{"end":{"sum_received":{"bits_per_second":9e11}}}' ;;
*) printf '\\033[2J{"end":{"sum_sent":{"bytes":1e12,"retransmits":1e300},"sum_received":{"bits_per_second":9e18}}}' ;;
esac
END
chmod 755 /run/liar && mount --bind /run/liar /usr/bin/iperf3`

describe.skipIf(!canRun)('bandwidth tests in the Network tab', { timeout: 120_000 }, () => {
  let lab: Lab
  let console: ConsoleDriver

  const measures = () =>
    lab.hosts.flatMap((host) => host.processes().filter(({ command }) => /\biperf3 |\bping /.test(command)))
  const open = async (size: readonly [number, number]) => {
    console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], size })
    await console.expectReady()
    await console.leader('3')
    await console.expectScreen(/HOST.*CPU/)
  }
  const begin = async (order: string) => {
    await console.key('m')
    await console.expectScreen(/Measure every link between hosts/)
    await console.key('Ctrl-u')
    await console.type(order)
    await console.key('Enter')
    await console.expectScreen(/plan ready, Enter starts it/)
  }

  beforeAll(async () => {
    lab = await startLab({ count: 5 })
    for (const host of lab.hosts) {
      await host.shape(host.name === 'm4' ? SLOW : FAST)
      await host.exec('echo reno > /proc/sys/net/ipv4/tcp_congestion_control')
    }
    const lies = await lab.host('m5').exec(liar(lab.host('m1').address, lab.host('m3').address))
    expect(lies).toMatchObject({ code: 0, stderr: '' })
  })
  afterEach(async () => {
    await console?.close()
    await waitUntil(() => measures().length === 0, 'every measurement to be gone')
  })
  afterAll(async () => await lab?.stop())

  it('measure a mesh that names the slow host at every size, keep it, compare it, and write it', async () => {
    await open([120, 40])
    await begin('m[1-4] --time 1')
    await console.expectScreen(/m\[1-4\]: 12 links in 6 steps of 1 s/)
    await console.expectScreen(/12 links with iperf3, between m\[1-4\]/)
    await console.key('Enter')
    await console.expectScreen(/step \d of 6, about .* left/)
    await console.expectScreen(/all 12 links measured/)
    for (const [columns, rows] of [
      [80, 24],
      [240, 67],
      [120, 40],
    ] as const) {
      await console.resize(columns, rows)
      await console.expectScreen(rowOf('m1', '·', FAST_CELL, FAST_CELL, SLOW_CELL))
      await console.expectScreen(rowOf('m4', SLOW_CELL, SLOW_CELL, SLOW_CELL, '·'))
      await console.expectScreen(/risk: m4 is slow to and from all hosts/)
    }
    await console.key('n', 'Enter')
    await console.expectScreen(
      /m4[\s\S]*bandwidth +\d[\d.]* Mbit\/s[\s\S]*retransmits +\d+[\s\S]*round trip +[\d.]+ ms idle/,
    )
    await console.key('Escape', 'r')
    await console.expectScreen(/plan ready, Enter starts it/)
    await console.key('Enter')
    await console.expectScreen(/step [2-5] of 6/)
    await console.key('Ctrl-c')
    await console.expectScreen(/ \d+ of 12 links measured/)
    await console.expectScreen(/compared with \d\d:\d\d/)
    await console.key('v')
    await console.expectScreen(/m\[1-4\] +\d+\/12 [\s\S]*m\[1-4\] +12\/12 .*m4 is slow/)
    await console.key('Down', 'Enter')
    await console.expectScreen(/m4 is slow to and from all hosts/)
    await console.key('w')
    const file = join(lab.directory, 'net.csv')
    await console.type(file)
    await console.key('Enter')
    await console.expectScreen(/written to /)
    expect(
      readFileSync(file, 'utf8')
        .split('\n')
        .filter((line) => line.includes(',measured,')),
    ).toHaveLength(12)
    await console.key('Escape', 'Escape', 'Escape')
    await console.expectScreen(/HOST.*CPU/)
  })

  it('measure two marked hosts as a pair, stop, and compare the result with the next', async () => {
    await open([120, 40])
    await console.key('Space', 'Down', 'Down', 'Space')
    await console.expectScreen(/●m1[\s\S]*●m4/)
    await console.key('p')
    await console.expectScreen(/m1 → m4 \d[\d.]*Mbit\/s +m4 → m1 \d[\d.]*Mbit\/s/)
    await console.key('Escape')
    await console.expectScreen(/m1 → m4: median \d[\d.]* Mbit\/s[\s\S]*m4 → m1: median \d[\d.]* Mbit\/s/)
    await console.expectScreen(/round trip: median [\d.]+ ms/)
    await console.key('r')
    await console.expectScreen(/m1 → m4 \d[\d.]*Mbit\/s +m4 → m1 \d[\d.]*Mbit\/s/)
    await console.key('Escape')
    await console.expectScreen(/(slower|faster|as fast) (than|as) at \d\d:\d\d/)
    await console.key('v')
    await console.expectScreen(/pair +m\[1,4\] +2\/2 [\s\S]*pair +m\[1,4\] +2\/2 /)
    await console.key('Down', 'Enter')
    await console.expectScreen(/m1 → m4: median \d[\d.]* Mbit\/s/)
    await console.key('w')
    const file = join(lab.directory, 'pair.svg')
    await console.type(file)
    await console.key('Enter')
    await console.expectScreen(/written to /)
    expect(readFileSync(file, 'utf8')).toMatch(/^<svg [\s\S]*m4 → m1: median /)
  })

  it('install iperf3 where it is missing, after showing a plan', async () => {
    const m2 = lab.host('m2')
    expect(await m2.exec(`${hide('iperf3')}; test ! -x /usr/bin/iperf || ${hide('iperf')}; ${PACKAGES}`)).toMatchObject(
      {
        stderr: '',
      },
    )
    await open([80, 24])
    await begin('m[1-2] --time 1')
    await console.expectScreen(/iperf3 is not installed on m2/)
    await console.expectScreen(/Press i to install it first/)
    await console.key('i')
    await console.expectScreen(/install iperf3 with apt/)
    await console.expectScreen(/y applies it, Esc discards it/)
    expect((await m2.exec('cat /var/lib/archive')).stdout).toBe('')
    await console.key('Escape')
    await console.expectScreen(/plan ready, Enter starts it/)
    await console.key('i')
    await console.expectScreen(/y applies it/)
    await console.key('y')
    await console.expectScreen(/installed iperf3 on m2; to remove it: muster net uninstall m2/)
    await console.expectScreen(/2 links with iperf3, between m\[1-2\]/)
    await console.key('Enter')
    await console.expectScreen(/all 2 links measured/)
    expect((await m2.exec('cat /var/lib/archive')).stdout).toBe('install iperf3\n')
    const { code } = await lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--yes', 'net', 'uninstall', 'm2'])
    expect(code).toBe(0)
    const left = await m2.exec('cat /var/lib/archive; ls -A /var/lib/muster')
    expect(left.stdout).toBe('install iperf3\npurge iperf3\n')
    await m2.exec('umount /usr/bin/iperf3; umount /usr/bin/apt-get; umount /usr/bin/dpkg-query')
  })

  it('confine a host that lies and prints escape bytes to its own cells', async () => {
    await open([80, 24])
    await begin('m[1-3],m5 --time 1')
    await console.key('Enter')
    await console.expectScreen(/9 of 12 links measured/)
    await console.expectScreen(rowOf('m1', '·', FAST_CELL, FAST_CELL, FAST_CELL))
    await console.expectScreen(rowOf('m5', '×[ ×]*?', '×[ ×]*?', '×[ ×]*?', '·'))
    await console.resize(240, 67)
    await console.expectScreen(/m5's iperf3 said: “\\x1b\]0;owned\\x07\\x1b\[2Jgone”/)
    await console.expectScreen(/m5 → m2: the receiver reports that nothing arrived/)
    await console.expectNowhere(/m[12] (is slow|sends slowly|receives slowly)/)
    expect(console.output().includes('\x1b]0;owned')).toBe(false)
  })
})
