import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'tc', 'nsenter')

/** So that a dead link is found within seconds; the default of 5 s × 3 is the same mechanism. */
const KEEP_ALIVE = ['Host *', '  ServerAliveInterval 1', '  ServerAliveCountMax 2']

describe.skipIf(!canRun)('six shells on real hosts', () => {
  let lab: Lab
  let console: ConsoleDriver
  const others = (name: string): string[] => lab.names.filter((other) => other !== name)

  beforeAll(async () => {
    lab = await startLab({ count: 6, sshConfig: KEEP_ALIVE })
  })

  afterAll(async () => {
    await lab?.stop()
  })

  beforeEach(async () => {
    console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile] })
    await console.expectReady()
  })

  afterEach(async () => {
    await console?.close()
  })

  /** Every one of these hosts answers a command of its own. */
  const expectAnswers = async (hosts: readonly string[], word: string) => {
    await console.type(`echo ${word}-$(hostname)\r`)
    await console.expectOnAll(hosts, (host) => new RegExp(`^${word}-${host}$`, 'm'))
  }

  it('show the name of each host', async () => {
    await console.type('hostname\r')
    await console.expectOnAll(lab.names, (host) => new RegExp(`^${host}$`, 'm'))
  })

  it('end when the console ends, and no shell is left on any host', async () => {
    expect(await console.quit()).toEqual({ code: 0 })
    const shells = () => lab.hosts.flatMap((host) => host.processes()).filter(({ name }) => name === 'bash')
    await waitUntil(() => shells().length === 0, 'the shells to end')
  })

  /** As long as the others have run nothing, the new shell is like theirs. */
  const inStep = async () => {
    await console.expectAllOpen({ timeoutMs: 120_000 })
    await console.expectHeader(/TYPING INTO ALL 6/)
  }

  /** What the others have run has not run in the new shell: it gets keys when the user says so. */
  const letIn = async (host: string) => {
    await console.expectAllOpen({ timeoutMs: 120_000 })
    await console.expectHeader(new RegExp(`TYPING INTO 5 of 6.* no keys yet: ${host}`))
    await console.leader('a')
    await console.expectHeader(/TYPING INTO ALL 6/)
  }

  it('continue when the sshd of one is killed, which counts down and comes back with a new shell', async () => {
    await console.type('mark=before\r')
    await lab.host('m3').killSshd()
    await console.expectOn('m3', /(?:lost|no connection): [\s\S]*next\s+attempt\s+\(\d+\)\s+in\s+\d+\s+s/)
    await console.expectHeader(/5\/6 up .*5 of 6/)
    await expectAnswers(others('m3'), 'during')

    await lab.host('m3').startSshd()
    await letIn('m3')
    await expectAnswers(lab.names, 'after')
    await console.type('echo "mark is <$mark>"\r')
    await console.expectOnAll(others('m3'), () => /^mark is <before>$/m)
    await console.expectOn('m3', /^mark is <>$/m)
  })

  it('detect a cut link by keep-alive, and come back when it is restored', async () => {
    await lab.host('m2').linkDown()
    try {
      await console.expectOn('m2', /lost: no\s+answer/)
      await expectAnswers(others('m2'), 'during')
    } finally {
      await lab.host('m2').linkUp()
    }
    await letIn('m2')
    await expectAnswers(lab.names, 'after')
  })

  it('come back after a crash and a boot of the host', async () => {
    await lab.host('m5').crash()
    await console.expectOn('m5', /(?:lost|no connection): /)
    await expectAnswers(others('m5'), 'during')
    await lab.host('m5').boot()
    await letIn('m5')
    await expectAnswers(lab.names, 'after')
  })

  it('reconnect at once when asked, without waiting for the countdown', async () => {
    await lab.host('m1').killSshd()
    await console.expectOn('m1', /next\s+attempt/)
    await lab.host('m1').startSshd()
    await console.leader('R')
    await inStep()
    await expectAnswers(lab.names, 'after')
  })

  it('run no rest of a line whose beginning all of them lost', async () => {
    await console.type('echo this does not ')
    for (const host of lab.hosts) await host.killSshd()
    await console.expectHeader(/0\/6 up/)
    for (const host of lab.hosts) await host.startSshd()
    await console.leader('R')
    await console.expectAllOpen()
    await console.expectHeader(/INTO NO HOST .*no keys yet: m\[1-6\]/)
    await console.type('touch ran\r')
    await console.expectHeader(/TYPING INTO ALL 6/)
    await console.type('test -e ran || echo not-on-$(hostname)\r')
    await console.expectOnAll(lab.names, (host) => new RegExp(`^not-on-${host}$`, 'm'))
  })

  it('open a new shell in the same pane after exit', async () => {
    await console.receivers('m4')
    await console.type('exit 3\r')
    await console.expectOn('m4', /shell ended \(exit 3\)/)
    await console.leader('a')
    await console.key('Ctrl-]', 'R')
    await inStep()
    await expectAnswers(lab.names, 'again')
  })

  it('answer while one of them floods', async () => {
    await console.receivers('m6')
    console.send('yes flood\r')
    await console.expectOn('m6', /^flood\nflood\nflood$/m, { whileBusy: true })
    // From here on the program need never come to rest: keys are sent without waiting, and the screen alone is looked at.
    console.send('\x1d/all!m6\r')
    for (const word of ['one', 'two', 'three']) {
      console.send(`echo ${word}-$(hostname)\r`)
      const answers = (host: string) => new RegExp(`^${word}-${host}$`, 'm')
      await console.expectOnAll(others('m6'), answers, { whileBusy: true })
    }
    console.send('\x1d/m6\r\x03')
    await console.expectPrompts('m6')
    await console.type('echo still-$(hostname)\r')
    await console.expectOn('m6', /^still-m6$/m)
  })

  it('answer while one of them has stopped reading', async () => {
    await lab.host('m2').freeze()
    try {
      for (const word of ['one', 'two', 'three']) await expectAnswers(others('m2'), word)
    } finally {
      await lab.host('m2').thaw()
    }
  })
})
