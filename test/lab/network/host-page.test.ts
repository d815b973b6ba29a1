/** The page of a host in the Network tab, and the Log, on real hosts. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

describe.skipIf(!canRun)('the Network tab', () => {
  let lab: Lab
  let console: ConsoleDriver

  beforeAll(async () => {
    lab = await startLab({ count: 3, sshConfig: ['Host *', '  ServerAliveInterval 1', '  ServerAliveCountMax 3'] })
  })
  afterAll(async () => await lab?.stop())

  beforeEach(async () => {
    console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile], size: [80, 24] })
    await console.expectReady()
  })
  afterEach(async () => await console?.close())

  /** Samples arrive every second, so that the program is rarely idle. */
  const AWAKE = { whileBusy: true }
  const screen = () => console.screen().join('\n')
  /** The scripts that list processes. */
  const scripts = (): string[] =>
    lab.hosts.flatMap((host) =>
      host
        .processes()
        .filter(({ state, command }) => state !== 'Z' && command.includes('/proc/[0-9]*/io'))
        .map(() => host.name),
    )

  it('shows what uses the cores of a host, sorted, filtered, at each size, and lists processes only while its page is open', async () => {
    await console.type('(exec -a "$(hostname)-busy" sh -c "while :; do :; done") &\r')
    // A program may call itself anything.
    await console.type(`(exec -a "$(printf 'bad\\033[2Jname')" sleep 600) &\r`)
    await console.expectPrompts(...lab.names)
    await console.leader('3')
    await console.expectScreen(/3 of 3 hosts/, AWAKE)
    await console.key('Enter')
    for (const [columns, rows] of [
      [80, 24],
      [120, 40],
      [240, 67],
    ] as const) {
      await console.resize(columns, rows)
      await console.expectScreen(/ m1 · \d+ processes /, AWAKE)
      // The busiest processes of its own namespace come first.
      await console.expectScreen(/COMMAND *║\n║ +\d+ root +[1-9]\d*% .* m1-busy /, AWAKE)
      expect(screen()).toMatch(/-60 s .*now/)
      for (const line of console.screen()) expect(line).not.toContain('m2-busy')
    }
    await console.key('/')
    await console.type('command:bad')
    await console.key('Enter')
    await console.expectScreen(/command:bad .*1 of \d+/, AWAKE)
    await console.expectScreen(/ root +0% .*bad.\[2Jname 600/, AWAKE)
    await console.key('Escape')
    await console.key('>')
    await console.expectScreen(/PID▴/, AWAKE)
    await waitUntil(() => [...new Set(scripts())].join() === 'm1', 'the script on m1 alone')
    await console.key('Right')
    await console.expectScreen(/ m2 · \d+ processes /, AWAKE)
    await waitUntil(() => [...new Set(scripts())].join() === 'm2', 'the script on m2 alone')
    await console.key('Escape')
    await console.expectScreen(/HOST▴/, AWAKE)
    await waitUntil(() => scripts().length === 0, 'the scripts to end')
    await console.leader('1')
    await console.type('kill %1 %2\r')
  }, 120_000)

  it('shows how long a host was away as dots and gaps, and in one line of the Log', async () => {
    await console.resize(240, 67)
    await console.leader('3')
    const row = () => console.screen().find((line) => / m3 /.test(line)) ?? ''
    await console.until(() => /\d% ·+[▁-█]/.test(row()), 'samples of m3', AWAKE)
    await lab.host('m3').killSshd()
    await console.until(() => / m3 +(unreachable|lost|no )/.test(row()), 'trouble with m3', AWAKE)
    await console.key('6')
    await console.expectScreen(/m3 (lost|no|cannot).* · attempt [6-9] at \d\d:\d\d:\d\d/, AWAKE)
    const away = console.screen().filter((line) => / m3 .*attempt/.test(line))
    // One line for each reason: the connection was lost, and nothing listens.
    expect(new Set(away.map((line) => line.replace(/ · attempt.*| \d\d:\d\d:\d\d /g, ''))).size).toBe(away.length)
    await lab.host('m3').startSshd()
    await console.leader('R')
    await console.key('/')
    await console.type('m3 connected')
    await console.expectScreen(/m3 connected[\s\S]*m3 connected/, { ...AWAKE, timeoutMs: 90_000 })
    await console.key('Enter', '3')
    await console.until(() => /[▁-█]·+[▁-█]/.test(row()), 'the time without samples as dots', {
      ...AWAKE,
      timeoutMs: 90_000,
    })
  }, 240_000)
})
