import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { parseFacts } from '../../../../src/ops/doctor/fact-script.ts'
import { parseDisk } from '../../../../src/ops/doctor/facts/disk.ts'
import { anyCharacter } from '../../../support/any-character.ts'
import { captured, factsOf } from './capture.ts'

describe('facts', () => {
  test('of Debian are read completely', () => {
    expect(factsOf('debian-12-dash')).toMatchObject({
      system: {
        kernelName: 'Linux',
        architecture: 'x86_64',
        hostName: 'm1',
        user: 'root',
        isRoot: true,
        timeZone: 'Etc/UTC',
      },
      distribution: { id: 'debian', version: '12', name: 'Debian GNU/Linux 12 (bookworm)' },
      python: { path: '/usr/bin/python3', version: '3.11.2' },
      load: { cores: 2 },
      memory: { totalBytes: 24_684_092 * 1024, swapTotalBytes: 0, swapFreeBytes: 0 },
      openFiles: { soft: 20_000, hard: 20_000 },
      sudo: 'root',
      sshd: { maxSessions: 10, maxStartups: { start: 10, full: 100 } },
      route: { device: 'eth0', mtuBytes: 1500 },
      timeService: 'timedatectl',
      hanging: [],
    })
  })

  test('of a disk have its space and its inodes', () => {
    expect(factsOf('debian-12-full-tmp').disks.find(({ path }) => path === '/tmp')).toEqual({
      path: '/tmp',
      isThere: true,
      device: 'tmpfs',
      mountPoint: '/tmp',
      totalBytes: 2 ** 20,
      availableBytes: 0,
      inodes: 20,
      freeInodes: 18,
    })
  })

  test('of mounts are those of the topmost mount', () => {
    const tmp = factsOf('debian-12-full-tmp').mounts?.filter(({ mountPoint }) => mountPoint === '/tmp')
    expect(tmp).toEqual([
      { mountPoint: '/tmp', type: 'tmpfs', options: ['rw', 'noexec', 'relatime', 'size=1024k', 'nr_inodes=20'] },
    ])
  })

  test('of busybox are read too, after any output of start-up files', () => {
    const facts = factsOf('alpine-busybox')
    expect(facts).toMatchObject({
      system: { hostName: 'edge1.example.org', isRoot: false, timeZone: 'Europe/Berlin', utcOffset: '+0100' },
      python: 'missing',
      openFiles: { soft: 128, hard: 512 },
      sshd: { maxStartups: { start: 2, full: 10 } },
      timeService: 'ntpd',
    })
    expect(facts.system).not.toHaveProperty('charmap')
    expect(facts.disks.map(({ path, inodes, freeInodes }) => [path, inodes, freeInodes])).toEqual([
      ['/', 262_144, 0],
      ['/tmp', 127_029, 127_017],
      ['/dev/shm', undefined, undefined],
    ])
    expect(facts.mounts?.at(-1)?.mountPoint).toBe('/home/my files')
  })

  test('of macOS are read as far as it reports them', () => {
    const facts = factsOf('macos')
    expect(facts).toMatchObject({
      system: { kernelName: 'Darwin', timeZone: 'America/Los_Angeles' },
      distribution: { id: 'macos', name: 'macos 14.5' },
      load: { cores: 10, one: 2.31, five: 2.05, fifteen: 1.98 },
      memory: { totalBytes: 2 ** 35 },
      openFiles: { soft: 256, hard: 'unlimited' },
    })
    expect(facts.memory).not.toHaveProperty('availableBytes')
    expect(facts.mounts).toBeUndefined()
    expect(facts.disks[0]).toMatchObject({ mountPoint: '/', freeInodes: 4_294_000_000, inodes: 4_294_404_167 })
    expect(facts.disks[0]?.availableBytes).toBe(512_345_678 * 1024)
  })

  test('of partial files of copies are their number, size and one path', () => {
    const facts = (said: string) => parseFacts(`\nmark partials 0\n${said}\nmark end 0\n`, 'mark').partials
    expect(facts('')).toBeUndefined()
    expect(facts('du: cannot read\n')).toBeUndefined()
    expect(facts('4\t/home/ada/.muster-0123456789abcdef.m1.7\n1024\t/tmp/.muster-fedcba9876543210.m1.8\n')).toEqual({
      count: 2,
      bytes: 1028 * 1024,
      example: '/home/ada/.muster-0123456789abcdef.m1.7',
    })
  })

  test('that are missing are unknown, and their probes are named', () => {
    const facts = factsOf('alpine-busybox')
    expect(facts.route).toBeUndefined()
    expect(facts.hanging).toEqual(['disk-home', 'disk-var'])
  })

  test('are unknown and never zero when nothing is printed', () => {
    const { hanging, disks, ...facts } = parseFacts('', 'mark')
    expect(new Set(Object.values(facts))).toEqual(new Set([undefined]))
    expect(disks).toEqual([])
    expect(hanging).toContain('memory')
  })

  test('are read from hostile bytes without an exception', () => {
    const names = ['system', 'memory', 'load', 'mounts', 'disk-root', 'sshd', 'open-files', 'python', 'distribution']
    const section = fc
      .tuple(fc.constantFrom(...names), fc.string({ unit: anyCharacter }))
      .map(([name, text]) => `\nmark ${name} 0\n${text}`)
    fc.assert(
      fc.property(fc.array(section), (sections) => {
        expect(parseFacts(sections.join(''), 'mark').hanging).toBeInstanceOf(Array)
      }),
    )
  })

  test('of an answer cut anywhere are those of the whole answer, or unknown', () => {
    const whole = captured('debian-12-dash')
    const full = parseFacts(whole, 'mark')
    fc.assert(
      fc.property(fc.nat(whole.length), (length) => {
        const { openFiles, route } = parseFacts(whole.slice(0, whole.lastIndexOf('\nmark ', length)), 'mark')
        expect([undefined, JSON.stringify(full.openFiles)]).toContain(openFiles && JSON.stringify(openFiles))
        expect([undefined, JSON.stringify(full.route)]).toContain(route && JSON.stringify(route))
      }),
    )
  })
})

describe('df', () => {
  const SPACE = 'Filesystem 1024-blocks Used Available Capacity Mounted on'

  test('may name a device and a directory with spaces', () => {
    expect(parseDisk(`/my home\n${SPACE}\n//server/a share 100 40 60 40% /my home`)).toMatchObject({
      device: '//server/a share',
      mountPoint: '/my home',
      availableBytes: 60 * 1024,
    })
  })

  test('may show more used than available', () => {
    expect(parseDisk(`/\n${SPACE}\n/dev/sda1 100 120 -20 120% /`)?.availableBytes).toBe(0)
  })

  test('that counts no inodes has none', () => {
    const text = `/\n${SPACE}\nrpool 100 40 60 40% /\nFilesystem Inodes IUsed IFree IUse% Mounted on\nrpool - - - - /`
    expect(parseDisk(text)).toMatchObject({ inodes: 0, freeInodes: 0 })
  })

  test('of a hostile host takes bounded time', () => {
    const row = '1 '.repeat(500_000)
    expect(parseDisk(`/\n${SPACE}\n${row}`)).toBeUndefined()
  })

  test('that failed says nothing', () => {
    expect(parseDisk('/home')).toBeUndefined()
  })
})
