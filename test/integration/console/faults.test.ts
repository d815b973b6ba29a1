/** Planted errors in Muster's own code: the Log shows them, and no shell is lost; embedded hosts. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { endSession, findSessions } from '../../../src/cli/sessions/session-directory.ts'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { ROOT } from '../../support/console-options.ts'
import { type EmbeddedInventory, writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { waitUntil } from '../../support/wait-until.ts'

/** The program from its sources, with planted faults. */
const PROGRAM = [
  ...[process.execPath, '--import', 'tsx', '--import'],
  ...[pathToFileURL(join(ROOT, 'test', 'support', 'planted-faults.ts')).href, join(ROOT, 'src', 'main.ts')],
]

describe('a console with an error in its own code', () => {
  let hosts: EmbeddedHosts
  let inventory: EmbeddedInventory
  let directory: string
  let environment: Record<string, string>
  const open: ConsoleDriver[] = []

  beforeAll(async () => {
    hosts = await startEmbeddedHosts({ count: 2, spawnPty: spawnLocalPty })
    inventory = writeEmbeddedInventory(hosts, [])
  })

  afterAll(async () => {
    inventory?.[Symbol.dispose]()
    await hosts?.[Symbol.asyncDispose]()
  })

  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'muster-faults-'))
    environment = { ...inventory.environment, MUSTER_RUNTIME_DIR: directory }
  })

  afterEach(async () => {
    for (const each of await findSessions(environment)) await endSession(each, environment)
    for (const each of open.splice(0)) await each.close()
    rmSync(directory, { recursive: true, force: true })
  })

  const start = async (args: readonly string[], until = 'shells'): Promise<ConsoleDriver> => {
    const console = await openConsole({ program: PROGRAM, args, environment, until })
    open.push(console)
    return console
  }

  it('shows it in the Log, and continues', async () => {
    const console = await start(['--hosts', inventory.file])
    await console.expectReady()
    await console.type('echo before\r')
    await console.expectOnAll(['m1', 'm2'], () => /^before$/m)
    await console.leader('2')
    await console.expectScreen(/ BRING-UP /)
    await console.type('X')
    await console.expectScreen(/This page cannot be drawn: planted while drawing/)
    await console.expectScreen(/error in Muster: everything continues; the Log \(6\) has the details/)
    for (const key of ['X', 'Y', 'Z']) await console.type(key)
    await console.leader('6')
    await console.expectScreen(/error in Muster: Error: planted while drawing at /)
    await console.expectScreen(/error in Muster: Error: planted in a key at /)
    await console.expectScreen(/error in Muster: Error: planted in an event at /)
    await console.leader('1')
    await console.expectOnAll(['m1', 'm2'], () => /^before$/m)
    await console.type('echo after\r')
    await console.expectOnAll(['m1', 'm2'], () => /^after$/m)
    await console.quit()
  })

  it('detaches after too many errors, and can be attached again', async () => {
    const first = await start(['--hosts', inventory.file])
    await first.expectReady()
    await first.type('echo before\r')
    await first.expectOnAll(['m1', 'm2'], () => /^before$/m)
    await first.leader('2')
    first.send('W')
    expect(await first.ended()).toEqual({ code: 1 })
    expect(first.modes).toMatchObject({ isAlternateScreen: false, isCursorHidden: false, mouse: 'none' })
    expect(first.screen().join(' ')).toMatch(/Detached: too many errors in Muster, see the Log\. `muster attach lab`/)
    await waitUntil(
      async () => (await findSessions(environment))[0]?.terminal === undefined,
      'the console to be detached',
    )
    const second = await start(['attach'], 'bring-up')
    await second.leader('1')
    await second.expectOnAll(['m1', 'm2'], () => /^before$/m)
    await second.type('echo after\r')
    await second.expectOnAll(['m1', 'm2'], () => /^after$/m)
    await second.quit()
  })

  it('ends when errors do not end and it cannot be detached', async () => {
    const demo = await start(['demo', '--count', '2'])
    await demo.expectReady()
    await demo.leader('2')
    demo.send('W')
    expect(await demo.ended()).toEqual({ code: 1 })
    expect(demo.modes).toMatchObject({ isAlternateScreen: false, isCursorHidden: false, mouse: 'none' })
    expect(demo.screen().join(' ')).toMatch(/planted often/)
  })
})
