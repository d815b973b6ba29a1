/** Commands and copies from the console on real OpenSSH hosts: over the shells' own connections, and nothing of them is left. */
import { createHash, randomBytes } from 'node:crypto'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

/** Children that ignore TERM, and one in a group of its own. */
const STUBBORN = `sleep 4321 & (trap '' TERM; sleep 4322; sleep 4323) & bash -mc 'sleep 4324'`

describe.skipIf(!canRun)('from the console on real hosts', () => {
  let lab: Lab
  let console: ConsoleDriver

  beforeAll(async () => {
    lab = await startLab({
      count: 5,
      sshConfig: ['Host *', '  ServerAliveInterval 1', '  ServerAliveCountMax 15'],
      perHost: (name) => (name === 'm5' ? { sshdOptions: { MaxSessions: '1' } } : {}),
    })
  })

  beforeEach(async () => {
    console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile] })
    await console.expectAllOpen()
  })

  afterEach(async () => {
    await console?.close()
  })

  afterAll(async () => {
    await lab?.stop()
  })

  const command = async (line: string): Promise<void> => {
    await console.leader(':')
    await console.type(line)
    await console.key('Enter')
  }
  const sleepers = () =>
    lab.hosts.flatMap((host) =>
      host.processes().filter(({ command: line, state }) => state !== 'Z' && /432[0-9]|kill -0|timeout/.test(line)),
    )
  const logins = (name: string): number =>
    lab
      .host(name)
      .log()
      .match(/Accepted publickey/g)?.length ?? 0

  it('runs without a new login, and shows a line for each failed host', async () => {
    const before = lab.names.map(logins)
    await lab.host('m3').killSshd()
    await console.expectOn('m3', /(?:lost|no\s+connection): /)
    await command("run test %n -ne 2 || { echo 'no such disk' >&2; exit 5; }; echo on $(uname -s)")
    await console.expectScreen(/5 hosts: 2 ok, 1 failed, 1 unreachable, 1 refused/)
    await console.key('z')
    await console.expectScreen(/✗ m2 +exit 5 .*\n.* ! no such disk/)
    await console.expectScreen(/✗ m3 +unreachable .*\n.* no connection: /)
    await console.expectScreen(/✗ m5 +refused .*\n.* no more than 1 session/)
    await console.expectScreen(/✓ m\[1,4\] \(2\) +ok .*\n.* on Linux/)
    expect(lab.names.map(logins)).toEqual(before)

    await lab.host('m3').startSshd()
    await console.leader('R')
    await console.expectSession('m3', 'ready', { timeoutMs: 60_000 })
    await console.key('r', 'y')
    await console.expectScreen(/✓ m\[1,3-4\] \(3\) +ok/)
  })

  it('leaves nothing of a cancelled run, whatever its children do', async () => {
    await command(`run on m[1-4]: ${STUBBORN}`)
    await waitUntil(
      () => sleepers().filter(({ command: line }) => line.startsWith('sleep')).length >= 12,
      'the command',
    )
    await console.key('Ctrl-c')
    await console.expectScreen(/4 hosts: 4 cancelled/)
    await waitUntil(() => sleepers().length === 0, 'the end of the commands')
  })

  it('leaves nothing of a run when the console is killed', async () => {
    await command(`run on m[1-4]: ${STUBBORN}`)
    await waitUntil(
      () => sleepers().filter(({ command: line }) => line.startsWith('sleep')).length >= 12,
      'the command',
    )
    console.signal('SIGKILL')
    await waitUntil(() => sleepers().length === 0, 'the end of the commands')
  })

  it('reports a host that is lost in the middle of a run, and continues with the others', async () => {
    await command('run on m[1-3]: until test -e /root/go; do sleep 0.1; done; echo went')
    await console.expectScreen(/running \d+/, { whileBusy: true })
    await lab.host('m2').linkDown()
    try {
      await console.expectScreen(/✗ m2 +unreachable/)
    } finally {
      await lab.host('m2').linkUp()
    }
    for (const name of ['m1', 'm3']) await lab.host(name).exec('touch /root/go')
    await console.expectScreen(/✓ m\[1,3\] \(2\) +ok/)
  })

  it('copies over the same connections, and resumes a cancelled copy', async () => {
    const file = join(lab.directory, 'home', 'big')
    const bytes = randomBytes(8_000_000)
    writeFileSync(file, bytes)
    const before = lab.names.map(logins)
    await lab.host('m1').shape({ bitsPerSecond: 2_000_000 })
    await command(`copy on m[1-2]: ${file} /root/`)
    await console.expectScreen(/… m1 +\[#+-+\]/, { whileBusy: true })
    await console.key('Ctrl-c')
    await console.expectScreen(/✗ m1 +cancelled/)
    await lab.host('m1').unshape()
    await console.key('r', 'y')
    await console.expectScreen(/2 hosts: 2 ok/)
    const digest = createHash('sha256').update(bytes).digest('hex')
    for (const name of ['m1', 'm2']) {
      expect((await lab.host(name).exec('sha256sum < /root/big')).stdout.slice(0, 64)).toBe(digest)
      expect((await lab.host(name).exec('ls -A /root | grep big')).stdout).toBe('big\n')
    }
    expect(lab.names.map(logins)).toEqual(before)
  })
})
