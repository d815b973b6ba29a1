/**
 * Fifty hosts, some of them in trouble of every kind, and every verb that goes to all of them. That none delays the others is
 * seen in the order of what is told: the bad ones may take ten minutes, and all the others are there before.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'perl')

const WELL = Array.from({ length: 40 }, (_, index) => `m${index + 1}`)
/** These are in trouble, and do what they are asked for all the same. */
const ABLE = ['one-session', 'prints']
/** These are known at once to be of no use. */
const HOPELESS = ['dead', 'refuses', 'changed-key']
/** These hang: each in another phase. */
const HANGING = ['cut-off', 'frozen', 'greets', 'sleeps']
const FULL = 'full'
const ALL = [...WELL, ...ABLE, ...HOPELESS, ...HANGING, FULL]

/** Says the first line of a server, and no other. */
const GREETER =
  '$s = IO::Socket::INET->new(LocalPort => 22, Listen => 9) or die; while ($c = $s->accept) { $c->autoflush; print $c "SSH-2.0-x\\r\\n"; push @all, $c }'
const REASONS: Readonly<Record<string, RegExp>> = {
  dead: /: connection refused/,
  refuses: /cannot log in as root|root@/,
  'changed-key': /host key/i,
  'cut-off': /no answer within|no route to the host/,
  frozen: /no SSH banner within/,
  greets: /key exchange/,
  sleeps: /shell|start-up/,
}

type Event = Readonly<Record<string, unknown>> & { readonly type: string; readonly host?: string }

/** How each verb says that it did what it was asked. */
const DONE: Readonly<Record<string, object>> = {
  run: { outcome: 'exit', code: 0, stdout: 'hi\n' },
  copy: { outcome: 'ok', copied: 1, failed: 0 },
  fetch: { outcome: 'ok', copied: 1, failed: 0 },
  check: { outcome: 'ok' },
  doctor: { outcome: 'ok', blockers: 0 },
}

describe.skipIf(!canRun)('fifty hosts, some of them broken', () => {
  let lab: Lab
  let files: string
  /** What each verb does, and the type of its last word on a host. */
  const verbs: Record<string, { type: string; args(target: string): readonly string[] }> = {
    run: { type: 'result', args: (target) => ['run', target, '--', 'echo hi'] },
    copy: { type: 'result', args: (target) => ['copy', target, join(files, 'file'), 'target/'] },
    fetch: { type: 'result', args: (target) => ['fetch', target, '.bash_profile', mkdtempSync(join(files, 'out-'))] },
    check: { type: 'host', args: (target) => ['hosts', target, '--check'] },
    doctor: { type: 'host', args: (target) => ['doctor', target] },
  }
  const programOf = (verb: string, target: string, ...options: readonly string[]) => [
    ...[...PROGRAM, '--hosts', lab.hostsFile, '--json', ...options],
    ...(verbs[verb]?.args(target) ?? []),
  ]
  const finder =
    (events: readonly Event[]) =>
    (host: string, type: string): Event | undefined =>
      events.find((event) => event.host === host && event.type === type)

  beforeAll(async () => {
    files = mkdtempSync(join(tmpdir(), 'fifty-hosts-'))
    writeFileSync(join(files, 'file'), Buffer.alloc(100_000, 'a line\n'))
    lab = await startLab({
      names: ALL,
      // Nobody else is given up, however busy this machine is.
      sshConfig: [`Host ${HANGING.join(' ')}`, '  ConnectTimeout 4', 'Host *', '  ConnectTimeout 100'],
      perHost: (name) =>
        name === 'one-session'
          ? { sshdOptions: { MaxSessions: '1' } }
          : name === 'sleeps'
            ? { bashrc: 'sleep 4321\n' }
            : name === 'prints'
              ? { bashrc: 'echo Welcome to this machine\n' }
              : {},
    })
    await lab.host('dead').killSshd()
    await lab.host('refuses').exec('rm .ssh/authorized_keys')
    await lab.host('changed-key').killSshd()
    await lab
      .host('changed-key')
      .exec('rm /run/lab/ssh_host_ed25519_key*; ssh-keygen -q -t ed25519 -N "" -f /run/lab/ssh_host_ed25519_key')
    await lab.host('changed-key').startSshd()
    await lab.host('cut-off').linkDown()
    await lab.host('frozen').freeze()
    await lab.host('greets').killSshd()
    await lab.host('greets').exec(`setsid perl -MIO::Socket::INET -e '${GREETER}' >/dev/null 2>&1 </dev/null &`)
    await waitUntil(async () => (await lab.host('greets').exec('ss -ltn')).stdout.includes(':22 '), 'the greeter')
    await lab
      .host(FULL)
      .exec('mount -t tmpfs -o size=64k none /tmp; cat /dev/zero >/tmp/zeros; mkdir -p /tmp/target; ln -s /tmp target')
  })

  afterAll(async () => {
    await lab?.host('frozen').thaw()
    await lab?.stop()
    if (files !== undefined) rmSync(files, { recursive: true })
  })

  describe('the broken hosts', () => {
    const target = [...HOPELESS, ...HANGING, FULL]
    const told = new Map<string, { code: number; events: readonly Event[] }>()
    beforeAll(async () => {
      const runs = Object.keys(verbs).map(async (verb) => {
        const { code, stdout } = await lab.run(programOf(verb, target.join()), { timeoutMs: 170_000 })
        const lines = stdout.trimEnd().split('\n')
        told.set(verb, { code, events: lines.map((line) => JSON.parse(line) as Event) })
      })
      await Promise.all(runs)
    })
    const of = (verb: string, host: string, type: string) => finder(told.get(verb)?.events ?? [])(host, type)

    it.each(Object.entries(verbs))('%s reports each, and exits with 4', (verb, { type }) => {
      const { code, events } = told.get(verb) ?? { code: 0, events: [] }
      expect(code).toBe(4)
      expect(events.flatMap((event) => (event.type === type ? [event.host] : [])).toSorted()).toEqual(target.toSorted())
    })

    it.each([...HOPELESS, ...HANGING])('%s has its reason, with every verb', (host) => {
      const reason = expect.stringMatching(REASONS[host] ?? /^$/)
      const outcome = ['refuses', 'changed-key'].includes(host) ? 'refused' : 'unreachable'
      for (const verb of ['run', 'copy', 'fetch']) expect(of(verb, host, 'result')).toMatchObject({ outcome, reason })
      // Logging in to a host whose shell hangs is no trouble yet.
      expect(of('check', host, 'host')).toMatchObject(host === 'sleeps' ? { outcome: 'ok' } : { outcome, reason })
      expect(of('doctor', host, 'finding')).toMatchObject({ gravity: 'blocker', cause: reason })
    })

    it('with a full disk run commands and send files, but accept none', () => {
      expect(of('run', FULL, 'result')).toMatchObject({ outcome: 'exit', code: 0, stdout: 'hi\n' })
      expect(of('copy', FULL, 'file')).toMatchObject({ action: 'failed', reason: 'No space left on device' })
      expect(of('fetch', FULL, 'result')).toMatchObject({ outcome: 'ok', copied: 1 })
      expect(of('doctor', FULL, 'finding')).toMatchObject({ id: 'disk-full', cause: '/tmp is full' })
    })

    it('with a full disk start no command with half of its stdin', async () => {
      const argv = [...PROGRAM, '--hosts', lab.hostsFile, '--json', 'run', FULL, '--stdin', '-', '--', 'wc -c']
      const { code, stdout } = await lab.run(argv, { stdin: 'x'.repeat(100_000) })
      expect(JSON.parse(stdout.split('\n')[0] ?? '')).toMatchObject({ outcome: 'exit', code: 1, stdout: '' })
      expect(code).toBe(1)
      expect((await lab.host(FULL).exec('ls /tmp')).stdout).toBe('target\nzeros\n')
    })

    it('have one line each on stderr without --json, and stdout has only the output of the others', async () => {
      const argv = [...PROGRAM, '--hosts', lab.hostsFile, 'run', [...target, ...ABLE].join(), '--', 'echo hi']
      const { stdout, stderr } = await lab.run(argv, { timeoutMs: 170_000 })
      expect(stdout.trim().split('\n').toSorted()).toEqual(['full: hi', 'one-session: hi', 'prints: hi'])
      const lines = stderr.trim().split('\n')
      const named = lines.map((line) => /^muster: ([\w-]+): (?:unreachable|refused): ./.exec(line)?.[1])
      expect(named.toSorted()).toEqual([...HOPELESS, ...HANGING, undefined].toSorted())
      expect(lines.at(-1)).toBe('muster: 10 hosts: 3 ok, 5 unreachable, 2 refused')
    })
  })

  it.each(Object.entries(verbs))(
    '%s finishes with all other hosts while the broken ones hang',
    { timeout: 600_000 },
    async (verb, { type }) => {
      const [file = '', ...argv] = lab.command(programOf(verb, 'all', '--connect-timeout', '600'))
      const child = spawn(file, argv, { env: lab.environment, stdio: ['ignore', 'pipe', 'ignore'] })
      onTestFinished(() => void child.kill('SIGKILL'))
      const ended = once(child, 'close')
      const events: Event[] = []
      const hosts = new Set<string | undefined>()
      createInterface({ input: child.stdout }).on('line', (line) => {
        const event = JSON.parse(line) as Event
        events.push(event)
        hosts.add(event.host)
      })
      await waitUntil(() => ALL.every((host) => HANGING.includes(host) || hosts.has(host)), 'all others', 150_000)
      // The kernel notices by itself that a cable is cut, and a login to a host whose shell hangs goes well.
      for (const host of ['frozen', 'greets']) expect(hosts).not.toContain(host)
      child.kill('SIGINT')
      expect(await ended).toEqual([130, null])
      const of = finder(events)
      for (const host of [...WELL, ...ABLE]) expect(of(host, type)).toMatchObject({ host, ...DONE[verb] })
    },
  )
})
