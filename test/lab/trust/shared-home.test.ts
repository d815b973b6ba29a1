/** Trust where hosts share a home directory: one key, each file written once, and logins along every pair. */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { requirement } from '../../support/requirements.ts'
import { type Mesh, startMesh } from './mesh.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'ssh-keygen', 'flock')

describe.skipIf(!canRun)('trust on hosts that share a home', { timeout: 400_000 }, () => {
  let mesh: Mesh
  let before: string

  beforeAll(async () => {
    // m1 to m3 have one home, m4 has its own, and alias is m4 under another name.
    mesh = await startMesh({ count: 4, perHost: (name) => (/m[23]/.test(name) ? { homeOf: 'm1' } : {}) })
    const { directory, hostsFile } = mesh.lab
    const line = '  alias: { address: 10.81.0.4 }\ntrust:'
    writeFileSync(hostsFile, readFileSync(hostsFile, 'utf8').replace('trust:', line))
    const known = readFileSync(`${directory}/home/.ssh/known_hosts`, 'utf8')
    writeFileSync(`${directory}/home/.ssh/known_hosts`, known.replace('m4,', 'alias,m4,'))
    before = await mesh.filesOf('m1')
  })
  afterAll(async () => await mesh?.lab.stop())

  it('shows the hosts that share a home, and changes no file', async () => {
    const { stdout, code } = await mesh.muster('status', 'trust')
    expect(stdout).toMatch(/^m\[1-3\] share \/root$/m)
    expect(stdout).toMatch(/^m4,alias share \/root$|^alias,m4 share \/root$/m)
    expect(stdout).not.toMatch(/^(failed|blocker)/m)
    expect(stdout).toMatch(
      /^missing +trust · m\[2-3\]: .*SSH key: missing; it shares \/root with m1, which makes the changes there/m,
    )
    expect(code).toBe(1)
    expect(await mesh.filesOf('m1')).toBe(before)
  })

  it('creates one key and one block for all hosts that share it, and every pair can log in', async () => {
    const up = await mesh.muster('up', 'trust', '--yes')
    expect(up.stderr).toBe('')
    expect(up.stdout).not.toMatch(/FAILED|blocker/)
    expect(up.code).toBe(0)
    const authorized = await mesh.exec('m2', 'grep muster-trust .ssh/authorized_keys | sed "s/.* //"')
    expect(authorized).toBe('muster-trust@m1\nmuster-trust@m4\n')
    expect(await mesh.exec('m4', 'ls -A | grep muster-proof; ls .ssh | sort')).toBe(
      'authorized_keys\nauthorized_keys.muster-before\nconfig\nid_muster\nid_muster.pub\nknown_hosts\n',
    )
    const login = (name: string) => mesh.exec('m3', `ssh -o BatchMode=yes ${name} hostname`)
    expect(await Promise.all(['m1', 'm2', 'm4'].map(login))).toEqual(['m1\n', 'm2\n', 'm4\n'])
    const again = await mesh.muster('up', 'trust')
    expect(again.stdout).toContain('no change')
    expect(again.code).toBe(0)
  })

  it('removes nothing from hosts that are not selected, and leaves no trace when it is undone on all', async () => {
    const part = await mesh.muster('down', 'trust', '--on', 'm[1-2]', '--dry-run')
    expect(part.stdout).toContain('it shares /root with m3, which makes the changes there')
    expect(part.stdout).toContain('0 steps would be done')
    const down = await mesh.muster('down', 'trust', '--yes')
    expect([down.code, down.stderr]).toEqual([0, ''])
    expect(await mesh.filesOf('m1')).toBe(before)
  })
})
