/** `--sudo` against the real sudo, for a user who has to give a password. */
import { spawnSync } from 'node:child_process'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { startOnTerminal } from '../../support/terminal-program.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'sudo', 'openssl')
const PASSWORD = 'correct horse'

describe.skipIf(!canRun)('muster run --sudo', () => {
  let lab: Lab

  /** On a terminal, where the password is asked. */
  const start = (args: readonly string[]) => {
    const program = startOnTerminal(
      lab.command([...PROGRAM, '--hosts', 'none', 'run', 'ann@m[1-2]', '--sudo', ...args]),
      lab.environment,
    )
    onTestFinished(program.close)
    return program
  }

  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    const hash = spawnSync('openssl', ['passwd', '-6', PASSWORD], { encoding: 'utf8' }).stdout.trim()
    for (const host of lab.hosts) {
      const { code, stderr } = await host.exec(`set -e
        mkdir -p files && mount -t tmpfs none /home && mkdir -p /home/ann/.ssh
        { cat /etc/passwd; echo 'ann:x:1555:1555::/home/ann:/bin/bash'; } >files/passwd
        { cat /etc/shadow; echo 'ann:${hash}:19000:0:99999:7:::'; } >files/shadow
        printf 'Defaults use_pty\\nroot ALL=(ALL:ALL) ALL\\nann ALL=(ALL:ALL) ALL\\n' >files/sudoers
        chmod 644 files/passwd; chmod 640 files/shadow; chmod 440 files/sudoers
        for name in passwd shadow sudoers; do mount --bind files/$name /etc/$name; done
        cp .ssh/authorized_keys /home/ann/.ssh/ && chown -R 1555:1555 /home/ann && chmod 700 /home/ann/.ssh`)
      if (code !== 0) throw new Error(stderr)
    }
  })

  afterAll(async () => {
    await lab?.stop()
  })

  it('asks once, passes the password to every sudo, and shows it nowhere', async () => {
    const run = start(['--', 'id -u; tr "\\0" " " </proc/$PPID/cmdline; env'])
    await run.shows(/Password:/)
    run.type(`${PASSWORD}\r`)
    await run.ended()
    expect(run.code()).toBe(0)
    expect(run.text()).toMatch(/^0\r$/m)
    expect(run.text().match(/Password:/g)).toHaveLength(1)
    expect(run.text()).not.toContain(PASSWORD)
  })

  it('refuses a wrong password', async () => {
    const run = start(['--', 'id -u'])
    await run.shows(/Password:/)
    run.type('wrong\r')
    await run.ended()
    expect(run.code()).toBe(4)
    expect(run.text()).toMatch(/m\[1-2\] \(2\): refused: sudo did not accept the password/)
  })

  it('stops what runs as root', async () => {
    const run = start(['--', 'sleep 4321 & sleep 4321'])
    await run.shows(/Password:/)
    run.type(`${PASSWORD}\r`)
    const sleeping = () =>
      lab.hosts.flatMap((host) => host.processes().filter(({ command }) => command === 'sleep 4321'))
    await waitUntil(() => sleeping().length === 4, 'the command')
    run.type('\x03')
    await run.ended()
    expect(run.code()).toBe(130)
    await waitUntil(() => sleeping().length === 0, 'the end of the command')
  })
})
