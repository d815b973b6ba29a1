/** `muster run --serial` on a terminal, over SSH: what it asks after a failure, and what follows the answer. */
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { PROGRAM } from '../../support/console-options.ts'
import { type EmbeddedInventory, writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { requirement } from '../../support/requirements.ts'
import { startOnTerminal } from '../../support/terminal-program.ts'

describe.skipIf(!requirement('ssh'))('a rolling run on a terminal', () => {
  let embedded: EmbeddedHosts
  let inventory: EmbeddedInventory

  beforeAll(async () => {
    embedded = await startEmbeddedHosts({ count: 4, spawnPty: spawnLocalPty })
    inventory = writeEmbeddedInventory(embedded, [])
  })
  afterAll(async () => {
    inventory?.[Symbol.dispose]()
    await embedded?.close()
  })

  const start = () => {
    const words = ['--hosts', inventory.file, 'run', 'all', '--serial', '2', '--', 'echo "ran on %h"; [ %n != 1 ]']
    const program = startOnTerminal([...PROGRAM, ...words], inventory.environment)
    onTestFinished(() => void program.close())
    return program
  }
  const QUESTION = /m1: exit 1[\s\S]*ran on m1[\s\S]*Failed on m1\. Go on with m\[3-4\]\? \(yes\/no\) /

  it('shows the failure, asks, and goes on after yes', async () => {
    const program = start()
    await program.shows(QUESTION)
    expect(program.text()).not.toContain('ran on m3')
    program.type('yes\r')
    await program.ended()
    expect(program.code()).toBe(1)
    expect(program.text()).toContain('ran on m3')
    expect(program.text()).toContain('4 hosts: 3 ok, 1 failed')
  })

  it('starts nowhere else after any other answer, and names the hosts', async () => {
    const program = start()
    await program.shows(QUESTION)
    program.type('\r')
    await program.ended()
    expect(program.code()).toBe(1)
    expect(program.text()).not.toContain('ran on m3')
    expect(program.text()).toContain('muster: not started on m[3-4]; --retry-failed includes them')
  })
})
