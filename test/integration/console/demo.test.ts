import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'

const HOSTS = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']
const others = (...names: readonly string[]) => HOSTS.filter((host) => !names.includes(host))

describe('the demo', () => {
  let console: ConsoleDriver

  beforeEach(async () => {
    console = await openConsole({ args: ['demo'] })
    await console.expectReady()
  })

  afterEach(async () => {
    await console.close()
  })

  it('opens six shells, and each answers with its own name', async () => {
    await console.expectHeader(/6\/6 up .*TYPING INTO ALL 6: m\[1-6\]/)
    await console.type('hostname\r')
    await console.expectOnAll(HOSTS, (host) => new RegExp(`^${host}$`, 'm'))
  })

  it('types into the receivers and no other host', async () => {
    await console.receivers('m[1-3]!m2')
    await console.expectReceivers('m1', 'm3')
    await console.type('echo 6*7=$((6*7))\r')
    await console.expectOnAll(['m1', 'm3'], () => /^6\*7=42$/m)
    for (const host of others('m1', 'm3')) expect(console.on(host).join('\n')).not.toMatch(/42|echo/)
  })

  it('types into one host only, and then into the earlier receivers again', async () => {
    await console.receivers('m[2-4]')
    // Receivers that are named have the focus.
    await console.leader('s')
    await console.expectReceivers('m2')
    await console.expectHeader(/TYPING INTO m2 alone/)
    await console.leader('s')
    await console.expectReceivers('m2', 'm3', 'm4')
  })

  it('toggles the hosts that the arrow keys reach', async () => {
    await console.leader('Space')
    await console.key('Right', 'Space')
    await console.expectReceivers(...others('m1', 'm2'))
    await console.type('echo $((40+2))\r')
    await console.expectOnAll(others('m1', 'm2'), () => /^42$/m)
    await console.expectMode('shells')
  })

  it('says that no host receives keys, and drops typed keys', async () => {
    await console.leader('n')
    await console.expectHeader(/TYPING INTO NO HOST/)
    await console.type('echo $((40+2))\r')
    await console.leader('a')
    await console.type('echo $((40+3))\r')
    await console.expectOnAll(HOSTS, () => /^43$/m)
    await console.expectNowhere(/^\W*42/m)
  })

  it('sends the leader itself when it is typed twice', async () => {
    await console.type('echo rea""dy; cat -v\r')
    // The shells have put their terminals back: a program reads what comes now.
    await console.expectOnAll(HOSTS, () => /^ready$/m)
    await console.key('Ctrl-]', 'Ctrl-]', 'Enter')
    await console.expectOnAll(HOSTS, () => /^\^\]$/m)
  })

  it('zooms into one host and back', async () => {
    await console.leader('z')
    await console.until(
      ({ panes }) => panes.length === 1 && (panes[0]?.width ?? 0) > 100,
      'one pane of the whole width',
    )
    await console.type('tput cols\r')
    await console.expectOn('m1', new RegExp(`^${console.pane('m1').width}$`, 'm'))
    await console.leader('z')
    await console.until(({ panes }) => panes.length === 6, 'all panes')
  })

  it('fits the remote terminals to a smaller window', async () => {
    await console.resize(80, 24)
    await console.receivers('m1')
    await console.type('stty size\r')
    const { width, height } = console.pane('m1')
    await console.expectOn('m1', new RegExp(`^${height} ${width}$`, 'm'))
  })

  it('shows a paste of several lines for review, and sends it after confirmation', async () => {
    await console.paste('echo $((40+2))\necho $((40+3))\n')
    await console.expectMode('dialog:paste-review')
    await console.expectScreen(/1 . echo \$\(\(40\+2\)\)[\s\S]*2 . echo \$\(\(40\+3\)\)/)
    await console.key('Ctrl-s')
    // The shells asked for bracketed paste: they hold the lines until Enter.
    await console.key('Enter')
    await console.expectOnAll(HOSTS, () => /^42$[\s\S]*^43$/m)
  })

  it('sends nothing of a paste that the user dismissed', async () => {
    await console.paste('echo $((40+2))\necho $((40+3))\n')
    await console.expectMode('dialog:paste-review')
    await console.key('Escape')
    await console.expectMode('shells')
    for (const host of HOSTS) expect(console.on(host).join('\n')).not.toContain('echo')
  })

  it('folds hosts with equal screens into one pane', async () => {
    await console.type("PS1='> '; clear\r")
    await console.expectOnAll(HOSTS, () => /^>$/m)
    await console.leader('=')
    await console.until(({ panes }) => panes.length === 1 && panes[0]?.hosts?.length === 6, 'one pane of six hosts')
    await console.receivers('m4')
    await console.type('echo different\r')
    await console.until(({ panes }) => panes.length === 2, 'a pane of its own for the host that differs')
    await console.expectOn('m4', /^different$/m)
  })

  it('lists its keys, and goes back', async () => {
    await console.leader('?')
    await console.expectMode('dialog:help')
    await console.expectScreen(/Add the focused host to the receivers/)
    await console.key('Escape')
    await console.expectMode('shells')
  })

  it('disconnects and exits with 0', async () => {
    expect(await console.quit()).toEqual({ code: 0 })
  })
})

it.skipIf(!requirement('iperf3'))(
  'keeps what the demo measures with the demo, and not with results of real hosts',
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'muster-state-'))
    try {
      const environment = { XDG_STATE_HOME: directory }
      await using console = await openConsole({ args: ['demo', '--count', '2'], environment })
      await console.expectReady()
      await console.leader('3')
      await console.key('m')
      await console.type(' --time 1')
      await console.key('Enter')
      await console.expectScreen(/plan ready, Enter starts it/)
      await console.key('Enter')
      await console.expectScreen(/all 2 links measured/)
      await console.key('v')
      await console.expectScreen(/m\[1-2\] +2\/2/)
      expect(existsSync(join(directory, 'muster', 'net'))).toBe(false)
    } finally {
      rmSync(directory, { recursive: true })
    }
  },
)
