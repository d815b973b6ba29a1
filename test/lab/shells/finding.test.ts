/** A user who has not read the documentation finds commands, hosts and earlier lines, on real hosts. */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

describe.skipIf(!canRun)('on real hosts, a newcomer', () => {
  let lab: Lab
  let directory: string

  beforeAll(async () => {
    lab = await startLab({ count: 3 })
    directory = mkdtempSync(join(tmpdir(), 'muster-finding-'))
    mkdirSync(join(directory, 'files'))
    writeFileSync(join(directory, 'files', 'app one.conf'), 'one\n')
  })

  afterAll(async () => {
    rmSync(directory, { recursive: true, force: true })
    await lab?.stop()
  })

  const open = async (size: readonly [number, number]) => {
    const environment = { XDG_STATE_HOME: join(directory, 'state') }
    const console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], size, environment })
    await console.expectReady()
    return console
  }

  it('finds commands in the grid, the help and the palette, and rows in the tables', async () => {
    await using console = await open([80, 24])
    await console.leader()
    await console.expectScreen(/Receivers +Screens[\s\S]*select all hosts[\s\S]*quit/)
    await console.resize(240, 67)
    await console.expectScreen(/Receivers +Panes +Screens +Commands/)
    await console.key('n')
    await console.expectReceivers()
    await console.expectNowhere(/Receivers +Panes/)
    await console.resize(80, 24)

    await console.leader(':')
    await console.type('broadcast')
    await console.expectScreen(/▸ select all hosts +Ctrl-\] a/)
    await console.key('Enter')
    await console.expectReceivers('m1', 'm2', 'm3')

    await console.leader('?')
    await console.type('/fullscreen')
    await console.expectScreen(/Panes\s[\s\S]*z +Fill the screen with the focused host/)
    await console.key('Escape', 'Escape')
    await console.expectMode('shells')

    await console.leader('3')
    await console.key('/')
    await console.type('m2')
    await console.expectScreen(/\/m2▏ +1 of \d/)
    await console.key('Enter')
    await console.expectNowhere(/▸?m1 +\d+/)
    await console.key('/')
    await console.type(' !m2')
    await console.expectScreen(/no host matches “m2 !m2” · Esc clears the filter/)
    await console.key('Escape')
    await console.expectScreen(/m1 [\s\S]*m3 /)
    await console.key('?')
    await console.expectScreen(/On the tab Network, without the leader/)
    await console.key('Escape')
    await console.leader('1')
    await console.type('echo still-$((40+2))\r')
    await console.expectOnAll(['m1', 'm2', 'm3'], () => /^still-42$/m)
    expect(await console.quit()).toEqual({ code: 0 })
  })

  it('completes hosts and files, and gets earlier lines back, also in the next console', async () => {
    {
      await using console = await open([120, 40])
      await console.leader('!')
      await console.type('on m3')
      await console.key('Tab')
      await console.type(': echo ran-$((40+2))')
      await console.key('Enter')
      await console.expectScreen(/✓ m3 [\s\S]*ran-42/)
      await console.key('Tab')
      await console.expectMode('shells')

      await console.leader('c')
      await console.type(`${join(directory, 'files')}/a`)
      await console.key('Tab')
      await console.expectScreen(/app\\ one\.conf/)
      await console.key('Escape')
      await console.expectMode('shells')
      expect(await console.quit()).toEqual({ code: 0 })
    }
    const kept = join(directory, 'state', 'muster', 'prompts.jsonl')
    expect(statSync(kept).mode & 0o777).toBe(0o600)
    expect(readFileSync(kept, 'utf8')).toBe('{"prompt":"run","text":"on m3: echo ran-$((40+2))"}\n')
    await using console = await open([120, 40])
    await console.leader('!')
    await console.key('Up')
    await console.expectScreen(/Command: on m3: echo ran-/)
    await console.key('Enter')
    await console.expectScreen(/✓ m3 [\s\S]*ran-42/)
    await console.key('Tab')
    expect(await console.quit()).toEqual({ code: 0 })
  })
})
