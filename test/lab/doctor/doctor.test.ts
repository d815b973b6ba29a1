/** `muster doctor` on real hosts, each with a trouble of its own: every one has its clear line, and none delays the others. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'
import type { RunResult } from '../cluster/run.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'tc', 'perl')

const NAMES = ['well', 'silent', 'nokey', 'banner', 'prints', 'hangs', 'full', 'one', 'clock', 'lossy', 'other']

/** Says that it is an SSH server and then nothing more. */
const HALF_A_SERVER = `perl -MIO::Socket::INET -e '
  $listener = IO::Socket::INET->new(LocalPort => 22, Listen => 9, ReuseAddr => 1) or die;
  while ($peer = $listener->accept) { push @peers, $peer; syswrite $peer, "SSH-2.0-OpenSSH_9.2\\r\\n" }
' > /dev/null 2>&1 < /dev/null &`

/** A clock cannot be shifted for one host alone, so its \`date\` lies by an hour. */
const LYING_DATE = `cp /usr/bin/date /run/date
printf '#!/bin/sh\\nexec /run/date -d "1 hour" "$@"\\n' > /run/lying-date
chmod 755 /run/lying-date
mount --bind /run/lying-date /usr/bin/date`

type Event = Readonly<Record<string, unknown>> & { readonly type: string; readonly host: string }

describe.skipIf(!canRun)('muster doctor', () => {
  let lab: Lab
  let before: ReadonlyMap<string, readonly number[]>
  let text: RunResult
  let json: RunResult

  const doctor = (...args: readonly string[]) =>
    lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--connect-timeout', '15', 'doctor', ...args])
  const pidsOf = (name: string) =>
    lab
      .host(name)
      .processes()
      .map(({ pid }) => pid)
  const eventsOf = (type: string): Event[] =>
    json.stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Event)
      .filter((event) => event.type === type)
  const findingsOf = (name: string) => eventsOf('finding').filter(({ host }) => host === name)
  const mustExec = async (name: string, command: string) => {
    const { code, stderr } = await lab.host(name).exec(command)
    if (code !== 0) throw new Error(`${name}: ${stderr}`)
  }

  beforeAll(async () => {
    lab = await startLab({
      names: NAMES,
      perHost: (name) => {
        if (name === 'prints') return { bashrc: 'printf "hello \\033[31mred\\n"\n' }
        if (name === 'hangs') return { bashrc: 'read -r answer\n' }
        return name === 'one' ? { sshdOptions: { MaxSessions: '1' } } : {}
      },
    })
    await lab.host('silent').linkDown()
    await mustExec('nokey', 'rm .ssh/authorized_keys')
    await lab.host('banner').killSshd()
    await mustExec('banner', HALF_A_SERVER)
    await mustExec('full', 'mount -t tmpfs -o size=1m tmpfs /tmp; dd if=/dev/zero of=/tmp/file bs=64k 2> /dev/null; :')
    await mustExec('clock', LYING_DATE)
    // A bucket that holds no packet of full size drops each of them.
    await mustExec('lossy', 'tc qdisc replace dev eth0 root tbf rate 1gbit burst 1300b latency 50ms')
    before = new Map(NAMES.map((name) => [name, pidsOf(name)]))
    text = await doctor()
    json = await doctor('--json')
  })
  afterAll(async () => await lab?.stop())

  it.each([
    // The kernel may give up looking for the neighbour before the time is over.
    ['silent', /^blocker {2}silent: unreachable \(tcp\): .*: (no answer within 15 s|no route to the host)$/m],
    ['nokey', /^blocker {2}nokey: refused \(authentication\): cannot log in .*$/m],
    ['banner', /^blocker {2}banner: unreachable \(banner\): .* did not finish the key exchange within 15 s$/m],
    ['prints', /^risk {5}prints: ~\/\.bashrc prints something before every command.* \[hello \\x1b\[31mred\]$/m],
    ['hangs', /^blocker {2}hangs: the login shell did not run a command within [\d.]+ s: .*$/m],
    ['full', /^blocker {2}full: \/tmp is full \[0 B of 1.0 MiB left\]$/m],
    ['one', /^risk {5}one: sshd allows few sessions per connection.* \[MaxSessions 1\]$/m],
    ['clock', /^blocker {2}clock: the clock is ahead of this machine's \[60 min \(± \d+ ms\)\]$/m],
    ['lossy', /^blocker {2}lossy: small answers arrive, large ones do not.*MTU.*$/m],
  ])('has a line for the host %s', (_, line) => {
    expect(text.stdout).toMatch(line)
  })

  it('shows the fix below the finding, and where to run it', () => {
    expect(text.stdout).toMatch(/\n +on full: du -xh \/tmp .*\n/)
    expect(text.stdout).toMatch(/\n +on prints: sed -i .* ~\/\.bashrc\n/)
    expect(text.stdout).toMatch(/\n +on one: echo 'MaxSessions 10' .*\n/)
    // On a busy machine its device and account may not have been told before large packets were lost.
    expect(text.stdout).toMatch(/\n +on lossy: (sudo )?ip link set dev (eth0|"\$\(ip -o route get .*\)") mtu 1280\n/)
  })

  it('has no blocker for healthy hosts, and folds what they have in common', () => {
    const own = findingsOf('well').filter(({ gravity }) => gravity === 'blocker')
    expect(own).toEqual([])
    expect(text.stdout).toMatch(/^risk .*full,.*one,.*: the root file system is read-only/m)
  })

  it('ends with a count, and with the exit code of hosts that were not reached', () => {
    expect(text.stdout).toMatch(/^11 hosts: .*, 4 blocked, 3 not reached$/m)
    expect([text.code, json.code]).toEqual([4, 4])
  })

  it('reports each host as soon as it is examined, without waiting for a slow one', () => {
    const order = eventsOf('finding').map(({ host }) => host)
    const lastOf = (name: string) => order.lastIndexOf(name)
    const firstOf = (name: string) => order.indexOf(name)
    for (const quick of ['prints', 'full', 'one', 'clock', 'other'])
      expect(lastOf(quick)).toBeLessThan(firstOf('banner'))
  })

  it('prints one object per host, with clock and facts', () => {
    expect(
      eventsOf('host')
        .map(({ host }) => host)
        .toSorted(),
    ).toEqual(NAMES.toSorted())
    const well = eventsOf('host').find(({ host }) => host === 'well')
    expect(well).toMatchObject({ outcome: 'ok', status: 'risk', blockers: 0, facts: { sudo: 'root', hanging: [] } })
    expect(Math.abs(Number(well?.clockOffsetMs))).toBeLessThanOrEqual(Number(well?.clockUncertaintyMs))
    expect(eventsOf('host').find(({ host }) => host === 'silent')).toMatchObject({
      outcome: 'unreachable',
      phase: 'tcp',
    })
  })

  it('exits with 1 for a blocker, and with 0 if there is none', async () => {
    expect((await doctor('well,full')).code).toBe(1)
    expect((await doctor('well,one,prints')).code).toBe(0)
  })

  it('leaves no process on any host', async () => {
    // Where packets are lost the server does not learn that its connection was closed.
    const told = NAMES.filter((name) => name !== 'lossy')
    const strangers = () =>
      told.flatMap((name) => {
        const known = new Set(before.get(name))
        return lab
          .host(name)
          .processes()
          .filter(({ pid, state }) => !known.has(pid) && state !== 'Z')
      })
    await waitUntil(() => strangers().length === 0, 'the processes of the doctor to end')
  })
})
