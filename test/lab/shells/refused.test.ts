/** Hosts that cannot be reached, are not who they were, or do not let us in: each says why, and what to do next. */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

describe.skipIf(!canRun)('hosts that cannot be used', () => {
  let lab: Lab
  const ssh = (name: string): string => join(lab.directory, 'home', '.ssh', name)
  const check = (...args: readonly string[]) =>
    lab.run([...PROGRAM, '--hosts', lab.hostsFile, '--connect-timeout', '10', 'hosts', '--check', ...args])

  beforeEach(async () => {
    lab = await startLab({ count: 3 })
  })

  afterEach(async () => {
    await lab?.stop()
  })

  it('do not exist: the exit code is 0', async () => {
    const { code, stdout } = await check()
    expect(stdout.match(/\tyes, \d+ ms/g)).toHaveLength(3)
    expect(code).toBe(0)
  })

  it('do not answer, or refuse the connection: the exit code is 4, and the others are still checked', async () => {
    await lab.host('m2').linkDown()
    await lab.host('m3').killSshd()
    const { code, stdout } = await check()
    expect(stdout).toMatch(/^m1\t.*\tyes/m)
    expect(stdout).toMatch(/^m2\t.*unreachable: .*root@10\.81\.0\.2:22.*(no answer within 10 s|no route to the host)/m)
    expect(stdout).toMatch(/^m3\t.*unreachable: .*root@10\.81\.0\.3:22.*connection refused.*Check the port/m)
    expect(code).toBe(4)
  })

  it('show a changed host key: refused, with the command that removes the old key', async () => {
    const [first = '', ...rest] = readFileSync(ssh('known_hosts'), 'utf8').trim().split('\n')
    const foreign = first.split(' ').slice(1).join(' ')
    writeFileSync(ssh('known_hosts'), [first, `m2,10.81.0.2 ${foreign}`, rest[1], ''].join('\n'))
    const { code, stdout } = await check()
    expect(stdout).toMatch(/^m2\t.*refused: .*host key has changed.*ssh-keygen.* -R /m)
    expect(stdout).toMatch(/^m3\t.*\tyes/m)
    expect(code).toBe(4)
  })

  it('do not accept our key: refused', async () => {
    await lab.host('m2').exec('rm .ssh/authorized_keys')
    const { code, stdout } = await check()
    expect(stdout).toMatch(/^m2\t.*refused: /m)
    expect(code).toBe(4)
  })

  it('are not trusted when known_hosts cannot be read', async () => {
    rmSync(ssh('known_hosts'))
    mkdirSync(ssh('known_hosts'))
    const { code, stdout } = await check()
    expect(stdout).not.toMatch(/\tyes/)
    expect(stdout).toContain('known_hosts')
    expect(code).not.toBe(0)
  })

  it('are not offered a key file that others can read', async () => {
    chmodSync(ssh('id_ed25519'), 0o644)
    const { code, stdout } = await check()
    expect(stdout).not.toMatch(/\tyes/)
    expect(stdout).toMatch(/chmod 600/)
    expect(code).not.toBe(0)
  })

  it('are new: their keys are shown, and stored if the user trusts them', async () => {
    rmSync(ssh('known_hosts'))
    await using console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], until: 'dialog:host-keys' })
    for (let asked = 0; asked < 3 && console.state?.mode === 'dialog:host-keys'; asked += 1) await console.key('y')
    await console.expectAllOpen()
    await console.type('hostname\r')
    await console.expectOnAll(lab.names, (host) => new RegExp(`^${host}$`, 'm'))
    expect(readFileSync(ssh('known_hosts'), 'utf8').trim().split('\n')).toHaveLength(3)
  })

  it('are new and not trusted: no key is stored, and the console stays open', async () => {
    rmSync(ssh('known_hosts'))
    await using console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], until: 'dialog:host-keys' })
    for (let asked = 0; asked < 3 && console.state?.mode === 'dialog:host-keys'; asked += 1) await console.key('Escape')
    await console.until(({ hosts }) => hosts.every(({ session }) => session === 'failed'), 'all hosts to be refused')
    await console.expectHeader(/0\/3 up/)
    expect(() => readFileSync(ssh('known_hosts'))).toThrow('ENOENT')
  })
})
