/** hosts.yaml and preferences.yaml that change while the console is open, and several hosts.yaml at once; on embedded hosts. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { openConsole } from '../../support/console-driver.ts'
import { type EmbeddedInventory, writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { requirement } from '../../support/requirements.ts'
import { testSpec } from '../../support/test-job.ts'

describe.skipIf(!requirement('ssh'))('files that change while the console is open', () => {
  let hosts: EmbeddedHosts
  let inventory: EmbeddedInventory
  let preferences: string
  let whole: string

  beforeAll(async () => {
    hosts = await startEmbeddedHosts({ count: 3, spawnPty: spawnLocalPty })
    inventory = writeEmbeddedInventory(hosts, [])
    whole = readFileSync(inventory.file, 'utf8')
    preferences = join(dirname(inventory.file), '.config', 'muster', 'preferences.yaml')
    mkdirSync(dirname(preferences), { recursive: true })
  })
  afterAll(async () => {
    await hosts?.close()
    inventory?.[Symbol.dispose]()
  })

  /** hosts.yaml without some of its hosts. */
  const without = (...names: readonly string[]) =>
    whole
      .split('\n')
      .filter((line) => !names.some((name) => line.startsWith(`  ${name}:`)))
      .join('\n')

  it('are used if they are valid and reported if they are not, and nothing open is closed', async () => {
    const { file, environment } = inventory
    writeFileSync(file, without('m3'))
    await using console = await openConsole({ args: ['--hosts', file], size: [80, 24], environment })
    await console.expectReady()
    await console.receivers('m1')
    await console.type('echo k$((40+2))ept\r')
    await console.expectOn('m1', /^k42ept$/m)

    // The tab Log keeps what a notice says for a moment.
    await console.leader('6')
    writeFileSync(file, `${without('m2')}groups: { last: m3 }\n`)
    await console.expectScreen(/m3 is new: Ctrl-\] \+ connects; m2/)
    await console.key('1')
    await console.leader('+')
    await console.key('Enter')
    await console.expectSession('m3', 'ready')
    await console.expectMode('shells')
    await console.expectSession('m2', 'ready')
    await console.expectOn('m1', /^k42ept$/m)
    await console.receivers('@last')
    await console.expectReceivers('m3')

    await console.leader('2')
    await console.expectScreen(/hosts\.yaml declares nothing to bring up/)
    writeFileSync(file, `${without('m2')}groups: { last: m3 }\ntrust: { mesh: "@all" }\n`)
    await console.expectScreen(/m1 +\? unknown/)
    await console.key('1')

    await console.leader('6')
    writeFileSync(file, 'hosts: [broken\n')
    await console.expectScreen(/cannot reload hosts\.yaml/)
    await console.key('1')
    await console.receivers('@last')
    await console.expectReceivers('m3')

    await console.leader('6')
    writeFileSync(preferences, 'leader: Ctrl-a\nmouse: false\n')
    await console.expectScreen(/preferences\.yaml: leader, mouse changed/)
    expect(console.modes.mouse).toBe('none')
    writeFileSync(preferences, 'leader: x\n')
    await console.expectScreen(/cannot reload preferences\.yaml, line \d+: /)
    await console.key('1', 'Ctrl-a', 'a')
    await console.expectReceivers('m1', 'm2', 'm3')
  })

  it('say where a host is that is closed and added again, as the Log advises', async () => {
    const { file, environment } = inventory
    writeFileSync(preferences, '')
    writeFileSync(file, without('m3'))
    await using console = await openConsole({ args: ['--hosts', file, 'm1'], size: [80, 24], environment })
    await console.expectReady()
    await console.leader('6')
    const ports = hosts.hosts.map(({ port }) => String(port))
    writeFileSync(file, without('m2', 'm3').replace(`port: ${ports[0]}`, `port: ${ports[2]}`))
    await console.expectScreen(/m1 changed: connect again/)
    await console.key('1')
    await console.leader('x')
    await console.key('y')
    await console.until((state) => state.hosts.length === 0, 'no host')
    await console.leader('+')
    await console.key('Enter')
    await console.expectReady()
    await console.type('hostname\r')
    await console.expectOn('m1', /^m3$/m)
  })

  it('open together as groups, with hosts of the same name told apart', async () => {
    const { file, environment } = inventory
    const [a, b] = ['a.yaml', 'b.yaml'].map((name) => join(dirname(file), name)) as [string, string]
    writeFileSync(a, `${without('m3')}trust: { mesh: m1 }\n`)
    writeFileSync(
      b,
      `${without('m1', 'm2').replace('  m3:', '  m1:').replace('cluster: lab', 'cluster: b')}trust: { mesh: m1 }\n`,
    )
    writeFileSync(preferences, '')
    const home = environment.HOME ?? ''
    using store = new JobStore(join(home, '.local', 'state', 'muster', 'jobs', 'b.db'))
    const spec = testSpec({ name: 'train-of-b', command: 'true' })
    store.submit({ spec, user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }, Date.now())
    await using console = await openConsole({ args: [a, b], size: [120, 40], environment })
    await console.expectReady()
    expect(console.state?.hosts.map(({ host }) => host)).toEqual(['a/m1', 'm2', 'b/m1'])
    await console.receivers('@b')
    await console.expectHeader(/TYPING INTO b\/m1/)
    await console.type('hostname\r')
    await console.expectOn('b/m1', /^m3$/m)
    await console.leader('v')
    await console.expectScreen(/recording b\/m1/)

    await console.leader('2')
    await console.expectHeader(/BRING-UP of a/)
    await console.expectScreen(/m1 +\+ missing .*\n.*m2 +- not declared/)
    await console.key('u')
    await console.expectScreen(/steps on m1/)
    await console.type(']')
    await console.expectHeader(/BRING-UP of b/)
    await console.expectScreen(/m1 +\+ missing/)
    await console.key('u')
    await console.expectScreen(/plan ready/)
    await console.key('y')
    await console.expectScreen(/m1 +✓ good/)
    const hasKey = (host: string) => existsSync(join(hosts.directory, host, '.ssh', 'id_muster'))
    expect(['m1', 'm2', 'm3'].map(hasKey)).toEqual([false, false, true])
    await console.type('[')
    await console.expectScreen(/steps on m1/)

    await console.key('Escape', '5')
    await console.expectHeader(/JOBS of a/)
    await console.expectScreen(/n submits a job/)
    await console.type(']')
    await console.expectScreen(/JOBS of b[\s\S]*train-of-b/)
    await console.key('c')
    await console.key('y')
    await console.expectScreen(/cancelled/)
    await console.key('4')
    await console.expectHeader(/PACKING of b/)
    await console.type('[')
    await console.expectScreen(/PACKING of a[\s\S]*m2/)
  })
})
