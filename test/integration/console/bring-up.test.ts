/** The Bring-up tab on embedded hosts: it asks them beside their shells, shows a plan, and applies nothing without a yes. */
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { type EmbeddedInventory, writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { requirement } from '../../support/requirements.ts'

const COUNT = 3
const canRun = requirement('ssh')

describe.skipIf(!canRun)('the Bring-up tab', () => {
  let hosts: EmbeddedHosts
  let inventory: EmbeddedInventory
  let console: ConsoleDriver

  beforeEach(async () => {
    hosts = await startEmbeddedHosts({ count: COUNT, spawnPty: spawnLocalPty })
    inventory = writeEmbeddedInventory(hosts, ['trust: { mesh: "m[1-2]" }'])
    const { file, environment } = inventory
    console = await openConsole({ args: ['--hosts', file], size: [80, 24], environment })
    await console.expectReady()
  })
  afterEach(async () => {
    await console?.close()
    await hosts?.close()
    inventory?.[Symbol.dispose]()
  })

  const openTab = async (): Promise<void> => {
    await console.leader('2')
    await console.expectScreen(/m1 +\+ missing .*\n.*m2 +\+ missing .*\n.*m3 +- not declared/)
  }
  const connections = (): number[] => hosts.hosts.map(({ acceptedCount }) => acceptedCount)

  it('shows the status of the hosts, over the connections of the shells', async () => {
    await openTab()
    await console.expectMode('bring-up')
    await console.expectHeader(/BRING-UP · hosts get no keys/)
    expect(connections()).toEqual([1, 1, 1])
  })

  it('shows the plan, and applies nothing without a yes', async () => {
    await openTab()
    await console.key('u')
    await console.expectScreen(/steps on m\[1-2\][\s\S]*create a key; the private key never leaves the host/)
    await console.key('Escape')
    await console.expectScreen(/m1 +\+ missing/)
    expect(
      readdirSync(hosts.directory, { recursive: true }).filter((name) => String(name).includes('id_muster')),
    ).toEqual([])
  })

  it('shows that a host does not answer, and continues with the others', async () => {
    await openTab()
    await hosts.host('m2').stop()
    await console.key('r')
    await console.expectScreen(/m1 +\+ missing .*\n.*m2 +\? no answer .* \d+ s ago/)
    await console.key('j', 'Enter')
    await console.expectScreen(/m2 · trust[\s\S]*no connection/)
  })

  it('does not ask a host that is not open in the console, and says so', async () => {
    using other = writeEmbeddedInventory(hosts, ['trust: { mesh: "m[1,3]" }'])
    const alone = await openConsole({
      args: ['--hosts', other.file, 'm1'],
      size: [80, 24],
      environment: other.environment,
    })
    try {
      await alone.expectReady()
      await alone.leader('2')
      await alone.expectScreen(/m1 +\+ missing .*\n.*m3 +· not checked/)
      expect(connections()[2]).toBe(1)
    } finally {
      await alone.close()
    }
  })

  it('does not ask the machine that a host was before its address changed', async () => {
    await openTab()
    const text = readFileSync(inventory.file, 'utf8')
    const moved = text.replace(/^( {2}m2:.*?)127\.0\.0\.1/m, '$1127.0.0.9')
    expect(moved).not.toBe(text)
    writeFileSync(inventory.file, moved)
    await console.key('r')
    await console.expectScreen(/m1 +\+ missing .*\n.*m2 +\? no answer/)
    await console.key('j', 'Enter')
    await console.expectScreen(/connected to 127\.0\.0\.1[\s\S]*127\.0\.0\.9/)
  })

  it('returns the keys to the shells', async () => {
    await openTab()
    await console.leader('1')
    await console.expectMode('shells')
    await console.type('echo typed-$((40+2))\r')
    await console.expectOnAll(['m1', 'm2', 'm3'], () => /^typed-42$/m)
  })

  it('checks and changes this machine, where an area needs only that', async () => {
    using other = writeEmbeddedInventory(hosts, ['k8s: { context: lab, namespace: team }'])
    const directory = dirname(other.file)
    writeFileSync(join(directory, 'kubectl'), KUBECTL, { mode: 0o755 })
    const alone = await openConsole({
      args: ['--hosts', other.file, 'm1'],
      size: [120, 40],
      environment: other.environment,
    })
    try {
      await alone.expectReady()
      await alone.leader('2')
      await alone.expectScreen(/this-machine .*\+ missing/)
      await alone.key('u')
      await alone.expectScreen(/1 step on this-machine[\s\S]*\+ namespace team/)
      await alone.key('y')
      await alone.expectScreen(/this-machine .*✓ good/)
      await alone.expectScreen(/1 of 1 step done/)
      expect(existsSync(join(directory, 'team'))).toBe(true)
    } finally {
      await alone.close()
    }
  })
})

/** A cluster whose namespace is a file beside the program. */
const KUBECTL = `#!/bin/sh
made=$(dirname "$0")/team
case " $* " in
  *' config view '*) echo 'lab ';;
  *' get --raw /version '*) echo '{"gitVersion":"v1.30.0"}';;
  *' create namespace team '*) touch "$made";;
  *' get namespace team '*) [ -e "$made" ] && echo namespace/team || { echo 'Error from server (NotFound): not found'; exit 1; };;
  *' create --validate=false '*) echo 'create /namespaces/ true;';;
  *) echo '{}';;
esac
`
