import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'

const HOSTS = ['m1', 'm2', 'm3', 'm4', 'm5', 'm6']

describe('the tools of the console', () => {
  let console: ConsoleDriver
  let directory: string

  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), 'muster-tools-'))
    mkdirSync(join(directory, 'config', 'muster'), { recursive: true })
    writeFileSync(
      join(directory, 'config', 'muster', 'preferences.yaml'),
      'macros:\n  - { name: rank, text: "echo rank-%n" }\n  - { name: shout, command: [sh, -c, "printf \'echo I-am-%s\' $MUSTER_HOST"] }\n',
    )
    console = await openConsole({
      args: ['demo'],
      environment: { XDG_STATE_HOME: join(directory, 'state'), XDG_CONFIG_HOME: join(directory, 'config') },
    })
    await console.expectReady()
  })

  afterEach(async () => {
    await console.close()
    rmSync(directory, { recursive: true, force: true })
  })

  it('record the output of each host, but not what the user types', async () => {
    await console.leader('v')
    await console.type("sh -c 'stty -echo; echo ready; read word; stty echo; echo got-$((40+2))'\r")
    await console.expectOnAll(HOSTS, () => /^ready$/m)
    await console.type('hunter2\r')
    await console.expectOnAll(HOSTS, () => /^got-42$/m)
    await console.expectPrompts()
    await console.leader('v')
    const [start = ''] = readdirSync(join(directory, 'state', 'muster', 'recordings'))
    const recordings = join(directory, 'state', 'muster', 'recordings', start)
    expect(readdirSync(recordings).sort()).toEqual(HOSTS.map((host) => `${host}.cast`))
    const [header = '', ...events] = readFileSync(join(recordings, 'm3.cast'), 'utf8').trimEnd().split('\n')
    expect(JSON.parse(header)).toMatchObject({
      version: 2,
      width: console.pane('m3').width,
      height: console.pane('m3').height,
    })
    const printed = events.map((event) => (JSON.parse(event) as [number, string, string])[2]).join('')
    expect(printed).toContain('got-42')
    expect(printed).not.toContain('hunter2')
    expect(statSync(join(recordings, 'm3.cast')).mode & 0o777).toBe(0o600)
  })

  it('scroll back in one host, search, and return', async () => {
    await console.receivers('m1')
    await console.type('seq -f "number %g" 200\r')
    await console.expectOn('m1', /^number 200$/m)
    await console.expectPrompts('m1')
    await console.leader('[')
    await console.expectMode('scroll')
    await console.key('/')
    await console.type('number 42')
    await console.key('Enter')
    await console.expectOn('m1', /^number 42$/m)
    await console.expectScreen(/“number 42” 1 of 1/)
    await console.key('Escape')
    await console.expectOn('m1', /^number 200$/m)
  })

  it('insert a macro for each host', async () => {
    await console.leader('m')
    await console.type('rank')
    await console.key('Enter')
    await console.expectMode('shells')
    await console.key('Enter')
    await console.expectOnAll(HOSTS, (host) => new RegExp(`^rank-${host.slice(1)}$`, 'm'))
  })

  it("insert the output of the user's own program for each host", async () => {
    await console.leader('m')
    await console.type('shout')
    await console.key('Enter')
    await console.expectOnAll(HOSTS, (host) => new RegExp(`echo I-am-${host}$`, 'm'))
    await console.key('Enter')
    await console.expectOnAll(HOSTS, (host) => new RegExp(`^I-am-${host}$`, 'm'))
  })

  it('let the mouse focus a pane, toggle it by its title and scroll it by the wheel', async () => {
    const { column, row } = console.pane('m5')
    await console.mouse('press', column + 3, row + 3)
    await console.until(({ focus }) => focus === 'm5', 'the focus on m5')
    await console.mouse('press', column + 3, row - 1)
    await console.expectReceivers('m1', 'm2', 'm3', 'm4', 'm6')
    await console.receivers('m5')
    await console.type('seq 100\r')
    await console.expectOn('m5', /^100$/m)
    await console.expectPrompts('m5')
    await console.mouse('wheel-up', column + 3, row + 3)
    await console.expectScreen(/↑3/)
  })

  it('find an action by its name', async () => {
    await console.leader(':')
    await console.type('select no')
    await console.key('Enter')
    await console.expectReceivers()
  })

  it('close a host after confirmation, and keep the others', async () => {
    await console.leader('x')
    await console.expectMode('dialog:close-host')
    await console.key('y')
    await console.until(({ hosts }) => hosts.length === 5, 'five hosts')
    await console.type('hostname\r')
    await console.expectOnAll(HOSTS.slice(1), (host) => new RegExp(`^${host}$`, 'm'))
  })

  it('mark the hosts that differ', async () => {
    await console.type('cat release\r')
    await console.expectOnAll(HOSTS, () => /^app/m)
    await console.expectPrompts()
    await console.leader('d')
    await console.expectScreen(/m3 .* ≠ /)
    await console.leader('f')
    await console.expectReceivers('m3')
  })
})
