/** The mouse, the clipboard, and files that change, with shells of real hosts. */
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'tc', 'nsenter')

describe.skipIf(!canRun)('three shells on real hosts', () => {
  let lab: Lab
  let console: ConsoleDriver
  let file: string
  let whole: string

  beforeAll(async () => {
    lab = await startLab({ count: 3 })
    whole = readFileSync(lab.hostsFile, 'utf8')
    file = join(lab.directory, 'two.yaml')
  })
  afterAll(async () => {
    await lab?.stop()
  })
  beforeEach(async () => {
    writeFileSync(file, whole.replace(/^ {2}m3:.*(?:\n {4}.*)*\n/m, ''))
    console = await openConsole({ in: lab, args: [file], size: [80, 24] })
    await console.expectReady()
  })
  afterEach(async () => {
    await console?.close()
  })

  it('give what is dragged over to the clipboard, and take nothing from a host that asks', async () => {
    await console.receivers('m1')
    await console.type("clear; printf '\\033]52;c;aG9zdGlsZQ==\\007'; seq -f 'number %g' 100\r")
    await console.expectOn('m1', /^number 100$/m)
    await console.expectPrompts('m1')
    const { column, row, height } = console.pane('m1')
    await console.mouse('wheel-up', column + 3, row + 3)
    await console.expectScreen(/↑3/)
    const shown = console.on('m1')
    await console.drag('m1', [7, 0], [8, height - 1])
    expect(console.copied()).toEqual([
      [shown[0]?.slice(7), ...shown.slice(1, -1), shown.at(-1)?.slice(0, 9)].join('\n'),
    ])
    await console.type('echo $((40+2))\r')
    await console.expectOn('m1', /^42$/m)
  })

  it('are typed into alone after a double click on the frame, and together again after another', async () => {
    await console.click('● m2', 2)
    await console.expectHeader(/TYPING INTO m2 alone/)
    await console.expectScreen(/alone · Ctrl-\] s back/)
    await console.type('echo only-$(hostname)\r')
    await console.expectOn('m2', /^only-m2$/m)
    await console.click('Ctrl-] s')
    await console.expectReceivers('m1', 'm2')
    await console.type('echo all-$(hostname)\r')
    await console.expectOnAll(['m1', 'm2'], (host) => new RegExp(`^all-${host}$`, 'm'))
    expect(console.on('m1').join('\n')).not.toContain('only')
  })

  it('get a new one that was added to the file, and lose none that was removed from it', async () => {
    // The tab Log keeps what a notice says for a moment.
    await console.leader('6')
    writeFileSync(file, whole.replace(/^ {2}m1:.*(?:\n {4}.*)*\n/m, ''))
    await console.expectScreen(/m3 is new: Ctrl-\] \+ connects; m1/)
    await console.key('1')
    await console.leader('+')
    await console.key('Enter')
    await console.expectSession('m3', 'ready')
    await console.expectMode('shells')
    await console.expectReady()
    await console.leader('a')
    await console.type('echo up-$(hostname)\r')
    await console.expectOnAll(['m1', 'm2', 'm3'], (host) => new RegExp(`^up-${host}$`, 'm'))
  })
})
