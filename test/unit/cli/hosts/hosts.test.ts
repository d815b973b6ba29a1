import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { Verb } from '../../../../src/cli/command-line/verb.ts'
import type { CheckHosts } from '../../../../src/cli/hosts/connections.ts'
import { hostsVerb } from '../../../../src/cli/hosts/hosts.ts'
import { VERBS } from '../../../../src/cli/verbs.ts'
import { runMuster } from '../../../support/run-muster.ts'

const LAB = `
hosts:
  m10: { address: 192.168.1.10, user: root, port: 22 }
  m8:  { address: 192.168.1.80, user: root, port: 1822, jump: m10 }
  here: { transport: local }
groups: { workers: m8, all-but-me: "m*" }
`

const HOSTS = VERBS.hosts as Verb

let directory = ''
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-hosts-'))
  writeFileSync(join(directory, 'hosts.yaml'), LAB)
})
afterEach(() => rmSync(directory, { recursive: true }))

const hosts = (
  args: readonly string[],
  { stdin, check, isTerminal = true }: { stdin?: string; check?: CheckHosts; isTerminal?: boolean } = {},
) =>
  runMuster(['hosts', ...args], {
    directory,
    isTerminal,
    stdin: stdin === undefined ? [] : [stdin],
    // No PATH: the library reads ssh_config, and no ssh is started.
    environment: { HOME: directory },
    now: () => Date.UTC(2026, 0, 2, 3, 4, 5),
    ...(check === undefined ? {} : { verbs: { hosts: { ...HOSTS, load: async () => hostsVerb(check) } } }),
  })

const sometimes: CheckHosts = async function* (endpoints) {
  for (const { host } of endpoints) {
    yield host === 'm8'
      ? { host, outcome: 'unreachable', durationMs: 5, reason: 'connection refused' }
      : { host, outcome: 'ok', durationMs: 12.4 }
  }
}

describe('muster hosts', () => {
  test('is a table with aligned columns', async () => {
    const { output, exitCode } = await hosts(['m10,m8'])
    expect(output).toBe(
      [
        'NAME  ADDRESS       PORT  USER  TRANSPORT  VIA  GROUPS',
        'm10   192.168.1.10  22    root  ssh2            all-but-me',
        'm8    192.168.1.80  1822  root  ssh2       m10  workers all-but-me',
        '',
      ].join('\n'),
    )
    expect(exitCode).toBe(0)
  })

  test('says how several hosts are written', async () => {
    const { exitCode, messages } = await hosts(['m8', 'm10'])
    expect(messages).toMatch(/too many arguments.* Several hosts are one word: h1,h2\nRun: muster hosts --help\n$/)
    expect(exitCode).toBe(2)
  })

  test('is separated by tabs without a terminal, and has all columns', async () => {
    expect((await hosts(['m10,here'], { isTerminal: false })).output).toMatch(
      /^NAME\tADDRESS\tPORT\tUSER\tTRANSPORT\tVIA\tGROUPS\nm10\t192\.168\.1\.10\t22\troot\tssh2\t\tall-but-me\nhere\tthis machine\t\t\S+\tlocal\t\t\n$/,
    )
  })

  test('leaves out a column that says nothing', async () => {
    expect((await hosts(['m10'])).output.split('\n')[0]).toBe('NAME  ADDRESS       PORT  USER  TRANSPORT  GROUPS')
  })

  test('shows a host without SSH as this machine', async () => {
    expect((await hosts(['here'])).output).toMatch(/^here {2}this machine {2}\S+ +local$/m)
  })

  test('reads names from stdin, and leaves out excluded hosts', async () => {
    const { output } = await hosts(['--exclude', 'm10', '-'], { stdin: 'm10\nm8 here\n' })
    expect(output.split('\n').map((line) => line.split(' ')[0])).toEqual(['NAME', 'm8', 'here', ''])
  })

  test('prints one object per line, with the time, with --json', async () => {
    const { output } = await hosts(['--json', 'm8,here'])
    const [m8, here] = output
      .trimEnd()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    expect(m8).toEqual({
      version: 1,
      type: 'host',
      host: 'm8',
      time: '2026-01-02T03:04:05.000Z',
      number: 2,
      address: '192.168.1.80',
      port: 1822,
      user: 'root',
      transport: 'ssh2',
      jump: ['m10'],
      groups: ['workers', 'all-but-me'],
    })
    expect(here).toMatchObject({ host: 'here', transport: 'local', jump: [], groups: [] })
  })

  test('shows with --check which hosts answer, and fails if one does not', async () => {
    const { output, exitCode } = await hosts(['--check', 'm10,m8'], { check: sometimes })
    expect(output).toMatch(/^m10 .* yes, 12 ms$/m)
    expect(output).toMatch(/^m8 .* unreachable: connection refused$/m)
    expect(exitCode).toBe(4)
    expect((await hosts(['--check', 'm10'], { check: sometimes })).exitCode).toBe(0)
  })

  test('names what failed after a table that is longer than the screen, equal reasons once', async () => {
    const check: CheckHosts = async function* (endpoints) {
      for (const { host } of endpoints)
        yield host.endsWith('0')
          ? {
              host,
              outcome: 'unreachable',
              durationMs: 5,
              reason: `cannot connect to root@${host}:22: connection refused.`,
            }
          : host === 'n5'
            ? { host, outcome: 'refused', durationMs: 5, reason: 'cannot log in to root@n5:22' }
            : { host, outcome: 'ok', durationMs: 12.4 }
    }
    const { messages, exitCode } = await hosts(['--hosts', 'none', '--check', 'n[1-40]'], { check })
    expect(messages.split('\n').slice(-4)).toEqual([
      'muster: n5: refused: cannot log in to root@n5:22',
      'muster: n[10,20,30,40] (4): unreachable: cannot connect to root@HOST:22: connection refused.',
      'muster: 35 of 40 hosts answered',
      '',
    ])
    expect(exitCode).toBe(4)
    const short = await hosts(['--hosts', 'none', '--check', 'n[1-10]'], { check })
    expect(short.messages).not.toContain('answered')
  })

  test('reports each host at once with --check --json', async () => {
    const { output } = await hosts(['--check', '--json', 'm8'], { check: sometimes })
    expect(JSON.parse(output)).toMatchObject({
      type: 'host',
      host: 'm8',
      outcome: 'unreachable',
      reason: 'connection refused',
    })
  })

  test.each([
    [['--expand', 'm8,m10'], 'm8\nm10\n'],
    [['--fold', 'm10,m8,here'], 'here,m[8,10]\n'],
    [['--fold', '@*'], 'here,m[8,10]\n'],
    [['--count', '@*'], '3\n'],
    [['--split', '2', 'all'], 'm[8,10]\nhere\n'],
    [['--split', '9', 'all'], 'm10\nm8\nhere\n'],
    // A login that is not the file's own is part of the target.
    [['--fold', 'root@m8,bob@m10,m8:22'], 'bob@m10,m8,m8:22\n'],
    [['--fold', '--hosts', 'none', 'root@n[1-3]:2222,[::1]:22'], '[::1]:22,root@n[1-3]:2222\n'],
  ])('%j prints %j', async (args, output) => {
    expect(await hosts(args)).toEqual({ exitCode: 0, output, messages: '' })
  })

  test('splits into parts that differ by at most one host', async () => {
    const { output } = await hosts(['--hosts', 'none', '--split', '3', 'n[1-11]'])
    expect(output).toBe('n[1-4]\nn[5-8]\nn[9-11]\n')
  })

  test('folds names from stdin', async () => {
    for (const file of [[], ['--hosts', 'none']])
      expect(await hosts([...file, '--fold', '-'], { stdin: 'node33\nnode31 node[34-35]\n' })).toEqual({
        exitCode: 0,
        output: 'node[31,33-35]\n',
        messages: '',
      })
  })

  test('folds names beside those of hosts.yaml, also similar ones, but no group without its @', async () => {
    expect(await hosts(['--fold', '@workers,-'], { stdin: 'm7 m10 n8\n' })).toEqual({
      exitCode: 0,
      output: 'm[7-8,10],n8\n',
      messages: '',
    })
    expect((await hosts(['--count', 'm7,workers'])).messages).toContain('the group is @workers')
  })

  test('prints one object for each set with --json', async () => {
    const { output } = await hosts(['--split', '2', '--json'])
    expect(
      output
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as unknown),
    ).toMatchObject([
      { type: 'host-set', set: 'm[8,10]', count: 2, hosts: ['m10', 'm8'] },
      { type: 'host-set', set: 'here', count: 1, hosts: ['here'] },
    ])
  })

  test('refuses two ways to print at once', async () => {
    for (const pair of [
      ['--fold', '--count'],
      ['--check', '--expand'],
    ]) {
      const { exitCode, messages } = await hosts(pair)
      expect([exitCode, messages]).toEqual([2, expect.stringMatching(/--\w+ and --\w+ cannot be used together/)])
    }
  })

  test('refuses an unknown host before it prints anything', async () => {
    expect(await hosts(['m9'])).toMatchObject({ exitCode: 2, output: '' })
  })
})
