import { execFileSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'
import type { Examination } from '../../../../src/ops/doctor/examine-host.ts'
import type { MachineFacts } from '../../../../src/ops/doctor/fact-script.ts'
import type { DoctorEnd } from '../../../../src/ops/doctor/host-port.ts'
import { type DoctorReport, fleetFindings, hostFindings } from '../../../../src/ops/doctor/report.ts'
import { factsOf, NO_FACTS } from './capture.ts'

const EXIT: DoctorEnd = { kind: 'exit', code: 0 }
const WELL: Examination = {
  startup: { end: EXIT, durationMs: 20, stdout: '', stderr: '' },
  clock: { offsetMs: 3, uncertaintyMs: 2 },
  facts: NO_FACTS,
  largeAnswer: { wantedBytes: 262_144, arrivedBytes: 262_144, end: EXIT, durationMs: 50 },
}

function examined(host: string, changes: Partial<Examination>, inventoryName = host): DoctorReport {
  return { host, inventoryName, connectMs: 30, examination: { ...WELL, ...changes } }
}

function found(changes: Partial<Examination>, inventoryName?: string): string[] {
  return hostFindings(examined('m1', changes, inventoryName)).map(({ gravity, id }) => `${gravity} ${id}`)
}

const withFacts = (facts: Partial<MachineFacts>): Partial<Examination> => ({ facts: { ...NO_FACTS, ...facts } })

describe('a host', () => {
  test('that is healthy, or reports nothing, has no findings', () => {
    expect(found({})).toEqual([])
  })

  test('with a small full noexec /tmp has two findings, the gravest first', () => {
    const facts = { ...factsOf('debian-12-full-tmp'), load: { cores: 2, one: 0.1, five: 0.1, fifteen: 0.1 } }
    expect(found({ facts }, 'm2')).toEqual([
      'blocker disk-full',
      'risk root-read-only',
      'risk tmp-noexec',
      'note shm-small',
      'note locale',
    ])
    const [full] = hostFindings(examined('m2', { facts }))
    expect(full).toMatchObject({ cause: '/tmp is full', detail: '0 B of 1.0 MiB left' })
    expect(full?.fix?.command).toContain('du -xh /tmp')
  })

  test('that is short of everything has a finding for each', () => {
    expect(found({ facts: factsOf('alpine-busybox') }, 'edge1')).toEqual([
      'blocker inodes-full',
      'risk max-startups',
      'risk disk-hangs',
      'risk disk-hangs',
      'risk disk-scarce',
      'risk tmp-noexec',
      'risk memory-scarce',
      'risk load',
      'risk open-files',
      'note sudo-password',
      'note python-missing',
    ])
  })

  test('with partial files that nobody resumed has a note with the command that removes them', () => {
    const partials = { count: 2, bytes: 3 * 2 ** 20, example: '/home/ada/.muster-0123456789abcdef.m1.7' }
    expect(hostFindings(examined('m1', withFacts({ partials })))).toEqual([
      {
        host: 'm1',
        gravity: 'note',
        id: 'unfinished-copies',
        cause: 'unfinished copies that are older than a week',
        detail: '2 files, 3.0 MiB, such as /home/ada/.muster-0123456789abcdef.m1.7',
        fix: { where: 'here', command: 'muster left --area copy --remove' },
      },
    ])
  })

  test('with a name that differs from the inventory by more than the domain has a note', () => {
    const facts = withFacts({ system: { hostName: 'Node7.example.org' } })
    expect(found(facts, 'node7')).toEqual([])
    expect(found(facts, 'm7')).toEqual(['note host-name'])
    expect(found(facts, '10.0.0.7')).toEqual([])
  })

  test('is blocked if its root became read-only after an error, and at risk if it always is', () => {
    const mounted = (options: string[]) => withFacts({ mounts: [{ mountPoint: '/', type: 'ext4', options }] })
    expect(found(mounted(['ro', 'errors=remount-ro']))).toEqual(['blocker root-read-only'])
    expect(found(mounted(['ro']))).toEqual(['risk root-read-only'])
    expect(found(mounted(['rw', 'errors=remount-ro']))).toEqual([])
  })

  test('with a full read-only image is not full', () => {
    const disk = { path: '/', isThere: true, device: 'a', mountPoint: '/', totalBytes: 1e9, availableBytes: 0 }
    const mounts = [{ mountPoint: '/', type: 'squashfs', options: ['ro'] }]
    expect(found(withFacts({ disks: [disk], mounts }))).toEqual(['risk root-read-only'])
    expect(found(withFacts({ disks: [disk] }))).toEqual(['blocker disk-full'])
  })

  test('with one file system under two directories has one finding', () => {
    const disk = { isThere: true, device: '/dev/sda1', mountPoint: '/', totalBytes: 1e9, availableBytes: 0 }
    const disks = ['/', '/tmp', '/var'].map((path) => ({ ...disk, path }))
    const [finding, ...others] = hostFindings(examined('m1', withFacts({ disks })))
    expect(finding?.cause).toBe('/ (with /tmp, /var) is full')
    expect(others).toEqual([])
  })

  test('has its words quoted in commands', () => {
    const disk = {
      path: '/x',
      isThere: true,
      device: 'a',
      mountPoint: "/x'; reboot; '",
      totalBytes: 1e9,
      availableBytes: 0,
    }
    const [finding] = hostFindings(examined('m1', withFacts({ disks: [disk] })))
    expect(finding?.fix?.command).toContain(`'/x'\\''; reboot; '\\'''`)
  })
})

describe('start-up files', () => {
  const startup = (changes: Partial<Examination['startup']>) => ({ startup: { ...WELL.startup, ...changes } })

  test('that print are a risk, errors a note, and slow ones a risk', () => {
    expect(found(startup({ stdout: 'hello' }))).toEqual(['risk startup-prints'])
    expect(found(startup({ stderr: 'no such file' }))).toEqual(['note startup-complains'])
    expect(found(startup({ durationMs: 3_000 }))).toEqual(['risk startup-slow'])
  })

  test('that hang, or a shell that runs nothing, block', () => {
    const { clock, facts, largeAnswer, ...bare } = WELL
    const report = (end: DoctorEnd): DoctorReport => ({
      host: 'm1',
      connectMs: 1,
      examination: { ...bare, startup: { ...WELL.startup, durationMs: 5_000, end } },
    })
    expect(hostFindings(report({ kind: 'timeout' }))).toMatchObject([{ gravity: 'blocker', id: 'startup-hangs' }])
    expect(hostFindings(report({ kind: 'exit', code: 1 })).at(0)).toMatchObject({
      gravity: 'blocker',
      id: 'no-command',
    })
    expect(hostFindings(report({ kind: 'flood', moreThanBytes: 2 ** 20 }))).toMatchObject([
      { cause: 'cannot run commands: the login shell printed more than 1.0 MiB and was cut off', gravity: 'blocker' },
    ])
    expect(hostFindings(report({ kind: 'lost', reason: 'gone' }))).toMatchObject([
      { cause: 'cannot run commands: gone' },
    ])
  })
})

describe('a large answer', () => {
  const large = (arrivedBytes: number, end: DoctorEnd) => ({
    largeAnswer: { wantedBytes: 262_144, arrivedBytes, end, durationMs: 10_000 },
  })

  test('of which nothing arrives is an MTU black hole, with the device to fix', () => {
    const report = examined('m1', {
      ...large(0, { kind: 'timeout' }),
      facts: { ...NO_FACTS, route: { device: 'eth0', mtuBytes: 9000 }, system: { isRoot: true }, hanging: ['sudo'] },
    })
    expect(hostFindings(report)).toMatchObject([
      { gravity: 'blocker', id: 'mtu', fix: { where: 'host', command: 'ip link set dev eth0 mtu 1280' } },
    ])
    const facts = { ...NO_FACTS, route: { device: 'e;reboot' }, system: { isRoot: true } }
    expect(hostFindings(examined('m1', { ...large(0, { kind: 'timeout' }), facts }))).toMatchObject([
      { fix: { command: "ip link set dev 'e;reboot' mtu 1280" } },
    ])
    // The facts are lost, too.
    const [{ fix } = {}] = hostFindings(examined('m1', large(0, { kind: 'timeout' })))
    const ip = `ip() { [ "$1" = link ] && echo "$@" || echo "10.0.0.9 from 10.0.0.2 dev eth7 uid 0 cache"; }`
    const script = `SSH_CONNECTION='10.0.0.9 5 10.0.0.2 22'; sudo() { "$@"; }; ${ip}\n${fix?.command}`
    expect(execFileSync('sh', ['-c', script], { encoding: 'utf8' })).toBe('link set dev eth7 mtu 1280\n')
  })

  test('of which much arrives is only slow', () => {
    expect(found(large(100_000, { kind: 'timeout' }))).toEqual(['risk link-slow'])
  })

  test('that cannot be sent without dd says so', () => {
    expect(found(large(0, EXIT))).toEqual(['note large-unknown'])
  })
})

describe('a clock', () => {
  const clock = (offsetMs: number, uncertaintyMs = 5) => found({ clock: { offsetMs, uncertaintyMs } })

  test('is graver the further it is off', () => {
    expect(clock(99)).toEqual([])
    expect(clock(-150)).toEqual(['note clock-off'])
    expect(clock(2_000)).toEqual(['risk clock-off'])
    expect(clock(-400_000)).toEqual(['blocker clock-off'])
  })

  test('is not off if the offset is within the uncertainty', () => {
    expect(clock(150, 60)).toEqual([])
  })

  test('says how far it is off, how sure that is, and what sets it', () => {
    const changes = { ...withFacts({ timeService: 'chrony' }), clock: { offsetMs: -3_210, uncertaintyMs: 11.2 } }
    expect(hostFindings(examined('m1', changes))).toMatchObject([
      {
        cause: "the clock is behind this machine's",
        detail: '3.2 s (± 12 ms)',
        fix: { where: 'host', command: 'sudo chronyc makestep' },
      },
    ])
  })

  test('on which all hosts agree is a problem of this machine', () => {
    const offsets = (...all: number[]) =>
      all.map((offsetMs, index) => examined(`m${index + 1}`, { clock: { offsetMs, uncertaintyMs: 5 } }))
    expect(fleetFindings(offsets(5_000, 5_020, 4_990)).map(({ host, id }) => `${host} ${id}`)).toEqual([
      'm1 own-clock',
      'm2 own-clock',
      'm3 own-clock',
    ])
    expect(fleetFindings(offsets(5_000, 0, 0))).toEqual([])
    expect(fleetFindings(offsets(5_000))).toEqual([])
  })
})

describe('several hosts', () => {
  const kernels = (...releases: (string | undefined)[]) =>
    fleetFindings(
      releases.map((kernelRelease, index) =>
        examined(
          `m${index + 1}`,
          withFacts({ system: { kernelName: 'Linux', ...(kernelRelease === undefined ? {} : { kernelRelease }) } }),
        ),
      ),
    ).map(({ host, cause }) => `${host}: ${cause}`)

  test('have a finding for the one that differs', () => {
    expect(kernels('6.1', '6.1', '5.10')).toEqual(['m3: the kernel differs from 2 others: Linux 5.10, there Linux 6.1'])
  })

  test('have one finding for all if there is no majority', () => {
    const cause = 'the kernel is not the same: Linux 6.1 on m1, Linux 5.10 on m2'
    expect(kernels('6.1', '5.10')).toEqual([`m1: ${cause}`, `m2: ${cause}`])
  })

  test('do not differ in unknown facts', () => {
    expect(kernels('6.1', undefined, '6.1')).toEqual([])
  })

  test('differ in Python only by its minor version, and that is a risk', () => {
    const python = (...versions: string[]) =>
      fleetFindings(
        versions.map((version, index) => examined(`m${index + 1}`, withFacts({ python: { path: '/p', version } }))),
      )
    expect(python('3.11.2', '3.11.9', '3.11.2')).toEqual([])
    expect(python('3.11.2', '3.12.0', '3.11.2')).toMatchObject([{ host: 'm2', gravity: 'risk', id: 'differs-python' }])
  })
})

describe('a host that was not reached', () => {
  const trouble = { outcome: 'refused', kind: 'host-key', phase: 'host-key', reason: 'the key has changed' } as const

  test('is blocked, by the phase and the reason', () => {
    expect(hostFindings({ host: 'm1', connectMs: 1, trouble })).toMatchObject([
      { gravity: 'blocker', id: 'host-key', cause: 'refused (host-key): the key has changed' },
    ])
  })

  test('has the command at the end of its hint as fix', () => {
    const hint = 'If the machine was reinstalled, remove the old key with: ssh-keygen -f /h -R m1'
    expect(hostFindings({ host: 'm1', connectMs: 1, trouble: { ...trouble, hint } })).toMatchObject([
      { fix: { where: 'here', command: 'ssh-keygen -f /h -R m1' } },
    ])
  })

  test('is left out of differences', () => {
    expect(fleetFindings([{ host: 'm1', connectMs: 1, trouble }, examined('m2', {})])).toEqual([])
  })
})
