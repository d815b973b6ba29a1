/** The tabs Jobs and Packing on embedded hosts: what is stored, what a job writes there, and nothing without a yes. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { JobStore } from '../../../src/scheduler/jobs/store.ts'
import { type EmbeddedHosts, startEmbeddedHosts } from '../../../src/ssh/embedded/start-embedded-hosts.ts'
import { spawnLocalPty } from '../../../src/terminal/local-pty.ts'
import { applyEvent } from '../../support/apply-event.ts'
import { bundleKeyOf } from '../../support/bundle-key.ts'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { type EmbeddedInventory, writeEmbeddedInventory } from '../../support/embedded-inventory.ts'
import { requirement } from '../../support/requirements.ts'
import { testSpec } from '../../support/test-job.ts'
import { waitUntil } from '../../support/wait-until.ts'

const canRun = requirement('ssh')

describe.skipIf(!canRun)('the Jobs and Packing tabs', () => {
  let hosts: EmbeddedHosts
  let inventory: EmbeddedInventory
  let store: JobStore
  let console: ConsoleDriver
  let id = 0
  let output = ''

  beforeAll(async () => {
    hosts = await startEmbeddedHosts({ count: 2, spawnPty: spawnLocalPty })
    inventory = writeEmbeddedInventory(hosts, [])
    const home = inventory.environment.HOME ?? ''
    store = new JobStore(join(home, '.local', 'state', 'muster', 'jobs', 'lab.db'))
    const spec = testSpec({ command: 'python train.py' })
    const submission = { spec, user: 'ann', priority: 0, isHeld: false, after: [], variants: [{}] }
    id = store.submit(submission, Date.now())[0] ?? 0
    applyEvent(store, id, { kind: 'placed', places: [{ host: 'm1', devices: [] }] }, Date.now())
    applyEvent(store, id, { kind: 'seen', rank: 0, bundle: { kind: 'begun' } }, Date.now())
    const key = bundleKeyOf(store, id)
    const directory = join(hosts.directory, 'm1', '.local', 'state', 'muster', 'jobs', key)
    mkdirSync(directory, { recursive: true })
    output = join(directory, 'out')
    writeFileSync(output, 'epoch 1 of 3\n')
    writeFileSync(join(directory, 'err'), '')
    const { file, environment } = inventory
    console = await openConsole({ args: ['--hosts', file], size: [80, 24], environment })
    await console.expectReady()
  })
  afterAll(async () => {
    await console?.close()
    store?.[Symbol.dispose]()
    await hosts?.close()
    inventory?.[Symbol.dispose]()
  })

  it('show the stored jobs, and their output on the hosts', async () => {
    await console.leader('5')
    await console.expectScreen(/▸1 +running .*train/)
    await console.expectScreen(/epoch 1 of 3/)
    expect(hosts.hosts.map(({ acceptedCount }) => acceptedCount)).toEqual([1, 1])
  })

  it('say that a log is only the end of what is on the host', async () => {
    writeFileSync(output, Array.from({ length: 4000 }, (_, at) => `\x1b[32mstep ${at}\x1b[0m\n`).join(''))
    await console.key('Enter')
    await console.expectScreen(/step 3999/)
    await console.key('g')
    await console.expectScreen(/ … earlier lines: muster job logs 1/)
    await console.key('Escape')
    await console.expectScreen(/▸1 +running/)
  })

  it('change a job only after confirmation', async () => {
    await console.key('c')
    await console.expectMode('dialog:change-jobs')
    await console.key('Escape')
    expect(store.get(id)?.state.kind).toBe('running')
    await console.key('c')
    await console.expectMode('dialog:change-jobs')
    await console.key('y')
    await waitUntil(() => store.get(id)?.state.kind === 'ending', 'the job to be ended')
    await console.expectScreen(/▸1 +ending/)
  })

  it('show what jobs hold on each host, and return the keys to the shells', async () => {
    await console.key('4')
    // The command that starts one has the path of hosts.yaml, so it does not fit.
    await console.expectScreen(/1 running, 0 waiting +no scheduler running +║[\s\S]*m1[\s\S]*m2/)
    await console.leader('1')
    await console.expectMode('shells')
    await console.type('echo typed-$((40+2))\r')
    await console.expectOnAll(['m1', 'm2'], () => /^typed-42$/m)
  })
})
