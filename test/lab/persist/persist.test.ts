/** `persist:` of hosts.yaml on real OpenSSH hosts: which verbs log in, and which find the connection warm. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

describe.skipIf(!canRun)('connections that hosts.yaml keeps warm', () => {
  let lab: Lab
  let hostsFile: string
  const muster = (...args: readonly string[]) => lab.run([...PROGRAM, '--hosts', hostsFile, ...args])
  const logins = (name: string): number => lab.host(name).log().split('Accepted publickey').length - 1
  beforeAll(async () => {
    lab = await startLab({ count: 2 })
    hostsFile = join(lab.directory, 'home', 'hosts.yaml')
    const hosts = lab.hosts.map(({ name, address }) => `  ${name}: { address: ${address} }\n`).join('')
    const plain = hosts.replace('m2: { ', 'm2: { persist: 0, ')
    writeFileSync(hostsFile, `defaults: { user: root, persist: 60 }\nhosts:\n${plain}`)
  })
  afterAll(async () => {
    await lab?.stop()
  })

  it('are shared by run, copy, fetch and the console, but not by verbs that check the login', async () => {
    const home = join(lab.directory, 'home')
    writeFileSync(join(home, 'file'), 'contents')
    const verbs = [
      ['run', 'all', '--', 'true'],
      ['copy', 'all', join(home, 'file'), 'file'],
      ['fetch', 'all', 'file', join(home, 'out')],
    ]
    for (const [index, verb] of verbs.entries()) {
      expect(await muster(...verb)).toMatchObject({ code: 0 })
      expect([logins('m1'), logins('m2')]).toEqual([1, index + 1])
    }
    expect(readFileSync(join(home, 'out', 'm1', 'file'), 'utf8')).toBe('contents')
    await using console = await openConsole({ in: lab, args: ['--hosts', hostsFile] })
    await console.expectAllOpen()
    await console.type('echo from-$(hostname)\r')
    await console.expectOnAll(lab.names, (host) => new RegExp(`^from-${host}$`, 'm'))
    expect([logins('m1'), logins('m2')]).toEqual([1, 4])
    await console.quit()
    for (const verb of [['hosts', '--check'], ['run', '--persist', '0', 'all', '--', 'true'], ['doctor']]) {
      const before = logins('m1')
      await muster(...verb)
      expect(logins('m1')).toBe(before + 1)
    }
    expect((await muster('hosts', '--persisted')).stdout).toMatch(/^m1\t/m)
    expect((await muster('hosts', '--stop')).stdout).toMatch(/^m1\t.*stopped/m)
    await waitUntil(
      () =>
        lab
          .host('m1')
          .processes()
          .filter(({ name }) => name === 'sshd').length === 1,
      'the connection to end',
    )
  })
})
