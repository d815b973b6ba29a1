/** Habits from clusterssh, on real hosts: several names, -l, panes that close, and small panes without greetings. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'tc', 'nsenter')

const GREETING = "seq -f 'welcome to this host, line %g' 23; echo '*** System restart required ***'\n"
const MENU = "echo '1) train'; echo '2) test'; read -p 'Select: ' choice; echo you chose $choice\n"

describe.skipIf(!canRun)('a console opened as with cssh', () => {
  let lab: Lab
  beforeAll(async () => {
    lab = await startLab({
      count: 4,
      perHost: (name) => ({ bashrc: { m3: MENU, m4: `${GREETING}exec dash -i\n` }[name] ?? GREETING }),
    })
  })
  afterAll(async () => {
    await lab?.stop()
  })

  it('begins with a prompt in each pane, shows a menu whole, and closes panes whose shells have ended', async () => {
    const args = ['--hosts', lab.hostsFile, '-l', 'root', '--fillscreen', '--autoclose', '1', 'm1', 'm2', 'm3', 'm4']
    await using console = await openConsole({ in: lab, args, size: [80, 24] })
    const text = (host: string) => console.on(host).filter((line) => line !== '')
    await console.expectAllOpen()
    await console.expectOn('m3', /1\) train\n2\) test\nSelect:/)
    await console.expectPrompts('m1', 'm2', 'm4')
    await console.until(() => ['m1', 'm2', 'm4'].every((host) => text(host).length === 1), 'prompts alone')
    expect(console.on('m1')[0]).toMatch(/[#$]$/)

    await console.leader('L')
    await console.expectScreen(/m\[1-2,4\]: 24 lines/)
    await console.expectScreen(/welcome to this host, line 1\b/)
    await console.key('Escape')
    await console.expectMode('shells')
    await console.leader('6')
    // Hosts that came up together share a line.
    const warned = () =>
      console
        .screen()
        .filter((line) => line.includes('reboot required'))
        .join()
    await console.until(() => /m\[?1\b/.test(warned()) && /m4|4\]/.test(warned()), 'the warnings of m1 and m4')
    await console.key('1')

    await console.receivers('m3')
    await console.type('2\r')
    await console.expectOn('m3', /Select: 2\nyou chose 2/)

    await console.resize(120, 40)
    await console.receivers('m1,m4')
    await console.type('exit\r')
    await console.until(({ hosts }) => hosts.map(({ host }) => host).join() === 'm2,m3', 'm1 and m4 to close')
    await console.leader('6')
    await console.expectScreen(/m1.*closed 1 s after its shell ended/)
  })
})
