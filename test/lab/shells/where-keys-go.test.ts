/** On real hosts: the header says where keys go and which hosts differ, tabs type nothing, and quitting asks once. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

describe.skipIf(!canRun)('keys on real hosts', () => {
  let lab: Lab
  let console: ConsoleDriver

  beforeAll(async () => {
    lab = await startLab({ count: 3 })
  })

  afterAll(async () => {
    await lab?.stop()
  })

  describe.each([
    [80, 24],
    [120, 40],
    [240, 67],
  ] as const)('at %i×%i', (columns, rows) => {
    beforeAll(async () => {
      console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], size: [columns, rows] })
      await console.expectReady()
    })

    afterAll(async () => {
      await console?.close()
    })

    /** Types a command into one host alone, and selects all again. */
    const only = async (host: string, command: string, shown: RegExp) => {
      await console.receivers(host)
      await console.type(`${command}\r`)
      await console.expectOn(host, shown)
      await console.leader('a')
    }

    it('are said to differ when one host asks or shows something else', async () => {
      await only('m2', 'read -s -p "Password: " x', /Password:/)
      await console.expectHeader(/TYPING INTO ALL 3: m\[1-3\] +1 of 3 differs: m2 /)
      await console.leader('f')
      await console.expectReceivers('m2')
      await console.type('secret\r')
      await console.expectPrompts('m2')
      await console.leader('f')
      await console.expectReceivers('m1', 'm2', 'm3')
      await console.until(() => !/differ/.test(console.screen()[0] ?? ''), 'nobody to differ')

      await only('m3', 'less /etc/services', /^#/m)
      await console.expectHeader(/1 of 3 differs: m3 /)
      await console.type('q')
      await console.expectOn('m3', /[#$]\s*$/)
      await console.expectOn('m1', /[#$] q$/m)
      await console.expectHeader(/1 of 3 differs: m3 /)
      await console.key('Ctrl-c')
      await console.until(() => !/differ/.test(console.screen()[0] ?? ''), 'nobody to differ')
    })

    it('go nowhere on tabs and in dialogs, and the header says so', async () => {
      await console.type('unfinished')
      await console.expectOnAll(lab.names, () => /unfinished$/m)
      await console.leader('3')
      await console.leader('Ctrl-]')
      await console.expectScreen(/Ctrl-\] twice types Ctrl-\] only in the shells/)
      await console.key('Escape', 'q', 'x', 'Enter')
      await console.type('rm -rf /srv\r')
      await console.key('Escape', 'Escape')
      await console.paste('one\ntwo\n')
      await console.expectHeader(/NETWORK · hosts get no keys/)
      await console.key('?')
      await console.expectHeader(/HELP · hosts get no keys/)
      await console.key('Escape', ':')
      await console.expectHeader(/PALETTE · hosts get no keys/)
      await console.key('Escape', '1')
      await console.leader('[')
      await console.expectHeader(/SCROLL m3 · hosts get no keys/)
      await console.key('Escape')
      await console.paste('one\ntwo\n')
      await console.expectHeader(/PASTE REVIEW · hosts get no keys/)
      await console.key('Escape')
      await console.key('Ctrl-]')
      await console.expectHeader(/COMMAND · hosts get no keys/)
      await console.key('Escape')
      await console.expectHeader(/TYPING INTO ALL 3/)
      await console.expectOnAll(lab.names, () => /[#$] unfinished$/m)
      await console.key('Ctrl-c')
      await console.expectPrompts()
    })

    it('do not go to a host whose shell has ended', async () => {
      await only('m1', 'exit 0', /shell ended \(exit 0\)/)
      await console.expectHeader(/2\/3 up .*TYPING INTO 2 of 3: m\[2-3\] +shell ended: m1 /)
      await console.leader('f')
      await console.expectHeader(/TYPING INTO NO HOST: m1 is not up/)
      await console.leader('r')
      await console.expectAllOpen()
      await console.expectHeader(/3\/3 up .*TYPING INTO m1 alone/)
    })
  })

  describe('when the console is left', () => {
    beforeEach(async () => {
      console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile] })
      await console.expectReady()
    })

    afterEach(async () => {
      await console?.close()
    })

    it('asks once and names what runs, and does not ask if nothing runs', async () => {
      const sleepers = () =>
        lab.hosts.flatMap((host) => host.processes()).filter(({ command }) => /^sleep [56]00/.test(command))
      await console.receivers('m[1-2]')
      await console.type('sleep 500\r')
      await console.receivers('m3')
      await console.type('sleep 600 &\r')
      await console.expectOn('m3', /^\[1\] \d+/m)
      await waitUntil(() => sleepers().length === 3, 'what runs')
      await console.leader('q')
      await console.expectScreen(/Quit and end what runs on m\[1-3\]\?/)
      await console.expectScreen(/sleep 500 +m\[1-2\]/)
      await console.expectScreen(/sleep 600 & +m3/)
      await console.key('Escape')
      expect(sleepers()).toHaveLength(3)
      await console.type('kill %1\r')
      await console.receivers('m[1-2]')
      await console.key('Ctrl-c')
      await waitUntil(() => sleepers().length === 0, 'nothing to run')
      await console.expectPrompts('m1', 'm2')
      console.send('\x1dq')
      expect(await console.ended()).toEqual({ code: 0 })
    })

    it('bring a closed host back in its place', async () => {
      await console.leader('Right')
      await console.key('Escape')
      await console.leader('x')
      await console.key('y')
      await console.until(({ hosts }) => hosts.length === 2, 'two hosts')
      await console.leader('+')
      await console.expectScreen(/Enter alone opens m2 again/)
      await console.key('Enter')
      await console.until(({ hosts }) => hosts.map(({ host }) => host).join() === 'm1,m2,m3', 'three hosts')
      await console.expectAllOpen()
    })
  })
})
