/**
 * The numbers of `muster net watch` beside those of sar, nfsstat, vmstat -D and free on the same hosts under a load that the test
 * makes: a namespace host, one with nothing but busybox, and one with a kernel of its own. Windows are those of the hosts' own
 * clocks, and loads lie within them, so that it does not matter how busy the machine is.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement(
  'root',
  'namespaces',
  'sshd',
  'ip',
  'nsenter',
  'kernel hosts',
  'tc',
  'iperf3',
  'sar',
  'busybox',
)

const MIB = 2 ** 20

type Line = {
  readonly type: string
  readonly host: string
  readonly upSeconds: number
  readonly cores: number
  readonly memoryBytes: number
  readonly memoryUsedBytes: number
  readonly writtenBytes: number
  readonly cards: readonly { readonly name: string; readonly receivedBytes: number }[]
  readonly nfs?: { readonly readBytes: number; readonly writtenBytes: number; readonly operations: number }
}

/** Only busybox: its directory stands where the programs of the machine are, and sshd alone beside it. */
const ONLY_BUSYBOX = `set -e
mkdir /run/bb /run/sbin
cp /usr/bin/busybox /run/bb/box
for applet in $(/usr/bin/busybox --list); do ln -s box /run/bb/$applet; done
cp /usr/sbin/sshd /run/sbin/
sed 's|/bin/bash|/bin/sh|' /etc/passwd > /run/passwd
mount --bind /run/passwd /etc/passwd
mount --bind /run/sbin /usr/sbin
mount --bind /run/bb /usr/bin`

describe.skipIf(!canRun)('muster net watch', () => {
  let lab: Lab
  let stdout = ''
  let end = async () => {}

  beforeAll(async () => {
    lab = await startLab({ names: ['m1', 'm2', 'bb'], kernelHosts: { k1: 'service' } })
    await lab.host('m1').shape({ bitsPerSecond: 100e6 })
    const made = await lab.host('bb').exec(ONLY_BUSYBOX)
    expect(made.stderr).toBe('')
    await lab.kernelHost('k1').mustExec(
      `mkdir -p /srv/share /mnt/share && echo '/srv/share *(rw,no_root_squash,no_subtree_check)' > /etc/exports && \\
      service nfs-kernel-server start && mount -t nfs -o vers=3,nolock,tcp 127.0.0.1:/srv/share /mnt/share`,
    )
    const [file = '', ...args] = lab.command([...PROGRAM, '--hosts', lab.hostsFile, 'net', 'watch', '--json'])
    const child = spawn(file, args, { env: lab.environment, stdio: ['ignore', 'pipe', 'inherit'] })
    const closed = once(child, 'close')
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text
    })
    end = async () => {
      child.kill('SIGINT')
      await closed
    }
    await waitUntil(
      () => ['m1', 'bb', 'k1'].every((host) => samplesOf(host).length > 0),
      'a sample of each host',
      120_000,
    )
  })
  afterAll(async () => {
    await end()
    await lab?.stop()
  })

  const samplesOf = (host: string): Line[] =>
    stdout
      .split('\n')
      .slice(0, -1)
      .map((line) => JSON.parse(line) as Line)
      .filter((line) => line.type === 'sample' && line.host === host)

  /** The samples whose rates are those of a time that holds all from `since` to `until`, by the host's clock. */
  const covering = async (host: string, since: number, until: number): Promise<Line[]> => {
    await waitUntil(() => samplesOf(host).some(({ upSeconds }) => upSeconds >= until), 'a sample after the load')
    const all = samplesOf(host)
    const first = all.findLastIndex(({ upSeconds }) => upSeconds <= since)
    expect(first).toBeGreaterThanOrEqual(0)
    return all.slice(first, all.findIndex(({ upSeconds }) => upSeconds >= until) + 1)
  }
  /** What rates come to; the first sample only says when the second's rates begin. */
  const sum = (samples: readonly Line[], rate: (sample: Line) => number): number =>
    samples.reduce((total, sample, index) => {
      const before = samples[index - 1]
      return before === undefined ? 0 : total + rate(sample) * (sample.upSeconds - before.upSeconds)
    }, 0)
  const numbers = (text: string, pattern: RegExp): number[] =>
    [...text.matchAll(pattern)].map(([, value]) => Number(value))
  const uptimes = (text: string) => numbers(text, /^(\d+\.\d+) \d+\.\d+$/gm)

  it('agrees with sar about a network card', async () => {
    const m1 = lab.host('m1')
    const begin = `LC_ALL=C stdbuf -oL sar -n DEV 1 > /run/sar 2> /dev/null & echo $! > /run/sar.pid
      until grep -q ' eth0 ' /run/sar; do sleep 0.1; done; iperf3 -s -D -p 5301 > /dev/null; cat /proc/uptime`
    const [since = 0] = uptimes((await m1.exec(begin)).stdout)
    const load = await lab.host('m2').exec(`until iperf3 -c ${m1.address} -p 5301 -n 24M; do sleep 0.1; done`)
    expect(load.code).toBe(0)
    const after = `cat /proc/uptime; n=$(grep -c ' eth0 ' /run/sar); until [ $(grep -c ' eth0 ' /run/sar) -ge $((n+2)) ]; do sleep 0.1; done`
    const { stdout: said } = await m1.exec(`${after}; kill $(cat /run/sar.pid); cat /run/sar; cat /proc/uptime`)
    const [until = 0, last = 0] = uptimes(said)
    // Its intervals are a second, or a little longer on a busy machine.
    const rates = numbers(said, /^\d\S+ +eth0 +\S+ +\S+ +(\S+)/gm).map((kib) => kib * 1024)
    const least = rates.reduce((total, rate) => total + rate, 0)
    // Its first interval had begun up to a second before the test saw its line.
    const most = least + Math.max(...rates) * Math.max(0, last - since + 2 - rates.length)
    const received = ({ cards }: Line) => cards.find(({ name }) => name === 'eth0')?.receivedBytes ?? 0
    const seen = sum(await covering('m1', since, until), received)
    expect(seen).toBeGreaterThan(16 * MIB)
    // The login of the watching itself goes on before and after.
    expect(seen).toBeGreaterThan(0.99 * least - 200_000)
    expect(seen).toBeLessThan(1.01 * most + 200_000)
  })

  it('agrees with nfsstat and vmstat -D about NFS and disks', async () => {
    const look = 'cat /proc/uptime; nfsstat -c -l; vmstat -D'
    const load = `dd if=/dev/zero of=/mnt/share/x bs=64k count=64 conv=fsync 2> /dev/null; echo 3 > /proc/sys/vm/drop_caches; cat /mnt/share/x > /dev/null; sync; echo LOADED`
    const said = await lab.kernelHost('k1').mustExec(`${look}; ${load}; ${look}; cat /proc/uptime`)
    const [since = 0] = uptimes(said)
    const samples = await covering('k1', since, uptimes(said).at(-1) ?? 0)
    // What was never asked for has no line.
    const asked = (text = '') =>
      numbers(text, /^nfs v3 client +(?:read|write|getattr): +(\d+)/gm).reduce((all, count) => all + count, 0)
    const [before, after] = said.split('LOADED\n')
    const operations = asked(after) - asked(before)
    expect(operations).toBeGreaterThan(8)
    expect(sum(samples, ({ nfs }) => nfs?.operations ?? 0)).toBeCloseTo(operations, 3)
    expect(sum(samples, ({ nfs }) => nfs?.writtenBytes ?? 0)).toBeCloseTo(4 * MIB, 0)
    expect(sum(samples, ({ nfs }) => nfs?.readBytes ?? 0)).toBeCloseTo(4 * MIB, 0)
    const [writtenBefore = 0, writtenAfter = 0] = numbers(said, /(\d+) written sectors/g)
    const written = (writtenAfter - writtenBefore) * 512
    expect(written).toBeGreaterThan(4 * MIB)
    const seen = sum(samples, ({ writtenBytes }) => writtenBytes)
    // The window of the samples is up to a second wider at both ends; the file system writes a little of its own.
    expect(seen).toBeGreaterThanOrEqual(written - 512)
    expect(seen).toBeLessThan(written + MIB)
  })

  it('agrees with free about memory', async () => {
    const hold = 'dd if=/dev/zero of=/tmp/held bs=1M count=48 2> /dev/null; cat /proc/uptime'
    const said = await lab.kernelHost('k1').mustExec(`free -b; ${hold}; free -b; nproc`)
    const [total = 0] = numbers(said, /^Mem: +(\d+)/gm)
    const [before = 0, held = 0] = numbers(said, /^Mem: +\d+ +(\d+)/gm)
    expect(held - before).toBeGreaterThan(40 * MIB)
    const [since = 0] = uptimes(said)
    const [, sample] = await covering('k1', since, since + 1)
    expect(sample?.memoryBytes).toBe(total)
    expect(Math.abs((sample?.memoryUsedBytes ?? 0) - held)).toBeLessThan(8 * MIB)
    expect(String(sample?.cores)).toBe(said.trim().split('\n').at(-1))
  })

  it('watches a host that has only busybox, and a mesh says what is missing there', async () => {
    const { stdout: said, stderr } = await lab.host('bb').exec('readlink /bin/sed; free | sed -n 2p')
    expect(`${said}${stderr}`).toMatch(/^box\n/)
    const sample = samplesOf('bb').at(-1)
    expect(sample?.memoryBytes).toBe((numbers(said, /^Mem: +(\d+)/gm)[0] ?? 0) * 1024)
    expect(sample?.cards.map(({ name }) => name)).toContain('eth0')
    const mesh = await lab.run([...PROGRAM, '--hosts', lab.hostsFile, 'net', 'mesh', 'm1,bb', '--time', '1'])
    expect(mesh.code).toBe(1)
    expect(mesh.stdout).toContain('m1 cannot log in to bb')
    expect(mesh.stdout).toContain('bb cannot log in to m1')
  })
})
