/** Steps as root for logins of every kind: root itself, sudo without and with a password, and sudo that refuses. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { startOnTerminal } from '../../support/terminal-program.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'sudo', 'openssl')
const PASSWORD = 'correct horse'
const USERS = ['ann', 'pat', 'bob']

describe.skipIf(!canRun)('a script as root', () => {
  let lab: Lab

  const run = async (password: string) => {
    const target = ['root', ...USERS].map((user) => `${user}@m1`).join(',')
    const program = [process.execPath, '--import', 'tsx', join(import.meta.dirname, 'as-root-program.ts'), target]
    const { stdout, stderr } = await lab.run(program, { stdin: `${password}\n` })
    expect(stderr).toBe('')
    const answers = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line) as Record<string, unknown>)
    return Object.fromEntries(answers.map(({ user, ...answer }) => [String(user), answer]))
  }

  beforeAll(async () => {
    lab = await startLab({ count: 1 })
    const hash = spawnSync('openssl', ['passwd', '-6', PASSWORD], { encoding: 'utf8' }).stdout.trim()
    const lines = USERS.map((user, index) => `${user}:x:${1555 + index}:${1555 + index}::/home/${user}:/bin/bash`)
    const shadow = USERS.map((user) => `${user}:${hash}:19000:0:99999:7:::`)
    const homes = USERS.map(
      (user, index) =>
        `mkdir -p /home/${user}/.ssh && cp .ssh/authorized_keys /home/${user}/.ssh/ && chown -R ${1555 + index}:${1555 + index} /home/${user} && chmod 700 /home/${user}/.ssh`,
    )
    const { code, stderr } = await lab.host('m1').exec(`set -e
      mkdir -p files && mount -t tmpfs none /home
      { cat /etc/passwd; printf '%s\\n' '${lines.join("' '")}'; } >files/passwd
      { cat /etc/shadow; printf '%s\\n' '${shadow.join("' '")}'; } >files/shadow
      printf 'root ALL=(ALL:ALL) ALL\\nann ALL=(ALL:ALL) ALL\\npat ALL=(ALL:ALL) NOPASSWD: ALL\\n' >files/sudoers
      chmod 644 files/passwd; chmod 640 files/shadow; chmod 440 files/sudoers
      for name in passwd shadow sudoers; do mount --bind files/$name /etc/$name; done
      ${homes.join('\n')}`)
    if (code !== 0) throw new Error(stderr)
  })
  afterAll(async () => await lab?.stop())

  const well = { kind: 'exit', code: 0, stdout: '0\nwhat it reads\n', stderr: '' }

  it('runs if the login is root, and if sudo allows it', async () => {
    const answers = await run(PASSWORD)
    expect(answers).toMatchObject({ root: well, pat: well, ann: well })
    expect(answers.bob).toMatchObject({
      kind: 'exit',
      code: 1,
      stdout: '',
      stderr: expect.stringMatching(/bob is not (?:in the sudoers|allowed)/),
    })
  })

  it('is refused with a wrong password, and with none', async () => {
    const wrong = { kind: 'refused', reason: 'sudo did not accept the password' }
    expect(await run('wrong')).toMatchObject({ root: well, pat: well, ann: wrong, bob: wrong })
    const none = { kind: 'refused', reason: 'sudo asks for a password, and there is none' }
    expect(await run('')).toMatchObject({ root: well, pat: well, ann: none, bob: none })
  })

  describe('of bring-up', () => {
    const command = (user: string, ...args: readonly string[]) => [
      ...PROGRAM,
      '--hosts',
      join(lab.directory, `${user}.yaml`),
      ...args,
    ]
    const made = async () => (await lab.host('m1').exec('stat -c %U:%a /home/share; rmdir /home/share')).stdout

    beforeAll(async () => {
      const share = '{ server: m1, path: /home/share, clients: m1, mount: /home/mnt, mode: "1777" }'
      for (const user of ['ann', 'bob']) {
        const host = `  m1: { address: ${lab.host('m1').address}, user: ${user} }\n`
        writeFileSync(join(lab.directory, `${user}.yaml`), `hosts:\n${host}nfs:\n  - ${share}\n`)
      }
      // What is installed on the machine does not matter: the directory is made before the exports fail.
      const { code, stderr } = await lab.host('m1').exec(`printf '#!/bin/sh
shift 3; for name; do echo "installed $name 1"; done' > files/dpkg-query && chmod 755 files/dpkg-query
mount --bind files/dpkg-query "$(command -v dpkg-query)"`)
      if (code !== 0) throw new Error(stderr)
    })

    it.each([
      ['ann', PASSWORD, /m1: create \/home\/share: done/, 'root:1777\n'],
      ['ann', 'wrong', /m1: create \/home\/share: FAILED: refused: sudo did not accept the password/, ''],
      ['bob', PASSWORD, /m1: create \/home\/share: FAILED: .*bob is not (?:in the sudoers|allowed)/, ''],
    ])('asks %s once (%s)', async (user, password, said, result) => {
      const muster = startOnTerminal(lab.command(command(user, 'nfs', 'up', '--yes')), lab.environment)
      onTestFinished(muster.close)
      await muster.shows(/sudo on m1.*Password:/s)
      muster.type(`${password}\r`)
      await muster.ended()
      expect([muster.code(), muster.text()]).toEqual([5, expect.stringMatching(said)])
      expect(muster.text().match(/Password:/g)).toHaveLength(1)
      expect(muster.text()).not.toContain(password)
      expect(await made()).toBe(result)
    })

    it('asks once in the console, too', async () => {
      await using console = await openConsole({ in: lab, args: ['--hosts', join(lab.directory, 'ann.yaml')] })
      await console.expectReady()
      await console.leader('2')
      await console.expectScreen(/m1(?: +-)+ +\+ missing/)
      await console.key('u')
      await console.expectScreen(/y applies it/)
      await console.key('y')
      await console.expectScreen(/sudo on m1/)
      await console.type(`${PASSWORD}\r`)
      await console.expectScreen(/✓ create \/home\/share/)
      await console.expectScreen(/failed or not started/)
      expect(console.output().includes(PASSWORD)).toBe(false)
      expect(await made()).toBe('root:1777\n')
    })
  })
})
