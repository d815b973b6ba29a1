/** The Bring-up tab on real hosts: over the shells' own connections, as a plan that is asked about, cut, and tried again. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Mesh, startMesh } from './mesh.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter', 'ssh', 'ssh-keygen', 'flock')

describe.skipIf(!canRun)('the Bring-up tab on three hosts', { timeout: 400_000 }, () => {
  let mesh: Mesh
  let console: ConsoleDriver

  beforeAll(async () => {
    mesh = await startMesh({ count: 3 })
    console = await openConsole({ in: mesh.lab, args: ['--hosts', mesh.lab.hostsFile] })
    await console.expectReady()
  })
  afterAll(async () => {
    await console?.close()
    await mesh?.lab.stop()
  })

  const logins = (): number[] => mesh.lab.hosts.map((host) => host.log().match(/Accepted publickey/g)?.length ?? 0)
  /** Waits until the table shows this status for every host and nothing is running. */
  const expectAll = async (words: string): Promise<void> => {
    const isShown = (host: string) => new RegExp(`${host} +${words} `).test(console.screen().join('\n'))
    await console.until(
      () => !/ (?:checking|verifying)/.test(console.screen()[2] ?? '') && ['m1', 'm2', 'm3'].every(isShown),
      `${words} on all hosts`,
    )
  }
  const bringUp = async (): Promise<void> => {
    await console.key('u')
    await console.expectScreen(/12 steps on m\[1-3\]/)
    await console.key('y')
  }

  it('checks the hosts when it is opened, without a login', async () => {
    const before = logins()
    await console.leader('2')
    await expectAll('\\+ missing')
    await console.expectHeader(/BRING-UP · hosts get no keys/)
    expect(logins()).toEqual(before)
  })

  it('changes nothing without confirmation', async () => {
    await console.key('u')
    await console.expectScreen(/12 steps on m\[1-3\]/)
    await console.expectScreen(/\+ ~\/\.ssh\/id_muster/)
    await console.key('Escape')
    await expectAll('\\+ missing')
    expect(await mesh.exec('m1', 'ls .ssh')).toBe('authorized_keys\n')
  })

  it('is cancelled in the middle of a step, and continues there', async () => {
    const held = await mesh.replace('m2', 'dd', '*of=*')
    await held.hold()
    await bringUp()
    await held.reached()
    await console.expectScreen(/m2 +… changing \d\/4/)
    await console.key('c')
    await console.expectScreen(/cancelled: \d+ of 12 steps done/)
    await held.gone()
    await held.release()
    await console.until(() => !/ (?:checking|verifying)/.test(console.screen()[2] ?? ''), 'the check to end')
    await console.key('r')
    await console.expectScreen(/Esc discards it/)
    await console.key('y')
    await expectAll('✓ good')
    await console.expectScreen(/(\d+) of \1 steps done/)
  })

  it('shows the status and the journal in the details', async () => {
    await console.key('Escape', 'Enter')
    await console.expectScreen(/~\/\.ssh\/id_muster exists/)
    await console.expectScreen(/done: create a key; the private key never leaves the host/)
    await console.key('Escape')
  })

  it('has nothing to do afterwards', async () => {
    await console.key('u')
    await console.expectScreen(/Nothing to do/)
    await console.key('Escape')
  })

  it('takes down only the marked host', async () => {
    await console.key('g', 'Space', 'd')
    await console.expectScreen(/Take down trust on m1 /)
    await console.expectScreen(/steps on m1 /)
    await console.key('y')
    await console.until(() => /m1 +\+ missing/.test(console.screen().join('\n')), 'm1 to be without it')
    await console.expectScreen(/m2 +~ differs/)
    expect(await mesh.exec('m1', 'ls .ssh')).toBe('authorized_keys\n')
  })

  it('leaves the shells unchanged', async () => {
    await console.leader('1')
    await console.expectMode('shells')
    await console.type('echo typed-$((40+2))\r')
    await console.expectOnAll(['m1', 'm2', 'm3'], () => /^typed-42$/m)
  })
})
