/** Hosts of every kind of trouble in one run: none of them delays the others, and each has its own clear line. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

type Result = { host: string; outcome: string; code?: number; reason?: string; stdout?: string; durationMs: number }

/** Says the first line of a server, and no other. */
const GREETER =
  '$s = IO::Socket::INET->new(LocalPort => 22, Listen => 9) or die; while ($c = $s->accept) { $c->autoflush; print $c "SSH-2.0-x\\r\\n"; push @all, $c }'

describe.skipIf(!canRun)('muster run, where not every host is well', () => {
  let lab: Lab
  const run = (...args: readonly string[]) =>
    lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--connect-timeout', '2', 'run', ...args])
  const results = (stdout: string): Record<string, Result> =>
    Object.fromEntries(
      stdout
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line))
        .filter(({ type }) => type === 'result')
        .map((result: Result) => [result.host, result]),
    )

  beforeAll(async () => {
    lab = await startLab({
      names: ['well', 'dead', 'refuses', 'hangs', 'slow-shell', 'one-session', 'full', 'chatty', 'greets'],
      perHost: (name) =>
        name === 'one-session'
          ? { sshdOptions: { MaxSessions: '1' } }
          : name === 'slow-shell'
            ? { bashrc: 'sleep 4321\n' }
            : name === 'chatty'
              ? { bashrc: 'echo Welcome to this machine\n' }
              : {},
    })
    await lab.host('dead').killSshd()
    await lab.host('refuses').exec('rm .ssh/authorized_keys')
    await lab.host('hangs').freeze()
    await lab.host('greets').killSshd()
    await lab.host('greets').exec(`setsid perl -MIO::Socket::INET -e '${GREETER}' >/dev/null 2>&1 </dev/null &`)
    await waitUntil(async () => (await lab.host('greets').exec('ss -ltn')).stdout.includes(':22 '), 'the greeter')
    await lab.host('full').exec('mount -t tmpfs -o size=16k none /tmp')
  })

  afterAll(async () => {
    await lab?.host('hangs').thaw()
    await lab?.stop()
  })

  it('says of each host how it went, and the exit code is 4', async () => {
    const { code, stdout } = await run('all', '--json', '--', 'echo hi')
    const of = results(stdout)
    for (const host of ['well', 'one-session', 'full', 'chatty']) {
      expect(of[host]).toMatchObject({ outcome: 'exit', code: 0, stdout: 'hi\n' })
    }
    expect(of.dead).toMatchObject({ outcome: 'unreachable', reason: expect.stringContaining('connection refused') })
    expect(of.refuses).toMatchObject({ outcome: 'refused', reason: expect.stringContaining('root@') })
    expect(of.hangs).toMatchObject({ outcome: 'unreachable', reason: expect.stringContaining('no') })
    expect(of.greets).toMatchObject({ outcome: 'unreachable', reason: expect.stringContaining('no') })
    expect(of['slow-shell']).toMatchObject({ outcome: 'unreachable', reason: expect.stringContaining('login shell') })
    expect(code).toBe(4)
  })

  it('shows what the others print before the bad ones are given up', async () => {
    const { stdout, stderr } = await run('all', '--', 'echo hi')
    expect(stdout.trim().split('\n').sort()).toEqual(['chatty: hi', 'full: hi', 'one-session: hi', 'well: hi'])
    for (const host of ['dead', 'refuses', 'hangs', 'greets', 'slow-shell']) {
      expect(stderr).toMatch(new RegExp(`^muster: ${host}: (unreachable|refused): `, 'm'))
    }
    expect(stderr).toMatch(/^muster: 9 hosts: 4 ok, 5 unreachable$/m)
  })

  it('brings no half of a file to a host with a full disk', async () => {
    const { code, stdout } = await lab.run(
      [...PROGRAM, '--hosts', lab.hostsFile, 'run', 'full,well', '--json', '--stdin', '-', '--', 'wc -c'],
      { stdin: 'x'.repeat(100_000) },
    )
    const of = results(stdout)
    expect(of.well).toMatchObject({ outcome: 'exit', code: 0, stdout: '100000\n' })
    expect(of.full).toMatchObject({ outcome: 'exit', code: 1, stdout: '' })
    expect(code).toBe(1)
    expect((await lab.host('full').exec('ls /tmp')).stdout).toBe('')
  })
})
