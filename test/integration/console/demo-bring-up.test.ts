/** A newcomer's bring-up, in the demo: what is missing and what differs, the plan, the steps, the verification, and undo. */
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'

const HOSTS = ['m1', 'm2', 'm3']
/** Every pair of hosts logs in, and all of them are this machine. */
const CHANGED = { timeoutMs: 120_000 }

it.skipIf(!requirement('ssh'))('the demo brings up trust between its hosts, proves it, and takes it down', async () => {
  const state = mkdtempSync(join(tmpdir(), 'muster-demo-state-'))
  try {
    await using console = await openConsole({
      args: ['demo', '--count', String(HOSTS.length)],
      size: [80, 24],
      environment: { XDG_STATE_HOME: state },
    })
    await console.expectReady()
    await console.leader('2')
    await console.expectScreen(/m1 +\+ missing .*\n.*m2 +\+ missing .*\n.*m3 +~ differs/)
    await console.key('u')
    await console.expectScreen(/Bring up trust on m\[1-3\][\s\S]*12 steps on m\[1-3\][\s\S]*y applies it/)
    await console.key('y')
    await console.expectScreen(/12 of 12 steps done/, CHANGED)
    await console.key('Escape')
    await console.expectScreen(/m1 +✓ good .*\n.*m2 +✓ good .*\n.*m3 +✓ good/, CHANGED)

    await console.leader('1')
    await console.type('clear; ssh m2 hostname; ssh 127.0.0.1 true || echo elsewhere\r')
    await console.expectOnAll(HOSTS, () => /^m2$/m)
    await console.leader('2')
    await console.key('d')
    await console.expectScreen(/Take down trust on m\[1-3\][\s\S]*y applies it/)
    await console.key('y')
    await console.expectScreen(/12 of 12 steps done/, CHANGED)
    await console.key('Escape')
    await console.expectScreen(/m1 +\+ missing .*\n.*m2 +\+ missing .*\n.*m3 +\+ missing/, CHANGED)
    await console.leader('1')
    await console.type('clear; ssh m2 hostname\r')
    await console.expectOnAll(HOSTS, () => /resolve hostname m2/)
    expect(await console.quit()).toEqual({ code: 0 })
    expect(existsSync(join(state, 'muster')) ? readdirSync(join(state, 'muster')) : []).not.toContain('journal')
  } finally {
    rmSync(state, { recursive: true })
  }
})
