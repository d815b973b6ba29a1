/** The set of hosts changes while everything runs. */
import { readFileSync, writeFileSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { type ConsoleDriver, openConsole } from '../../support/console-driver.ts'
import { requirement } from '../../support/requirements.ts'
import { waitUntil } from '../../support/wait-until.ts'
import { type Lab, startLab } from '../cluster/lab.ts'

const canRun = requirement('root', 'namespaces', 'sshd', 'ip', 'nsenter')

describe.skipIf(!canRun)('a set of real hosts that changes', () => {
  let lab: Lab
  let console: ConsoleDriver

  beforeAll(async () => {
    lab = await startLab({ count: 4 })
  })

  afterAll(async () => {
    await lab?.stop()
  })

  beforeEach(async () => {
    console = await openConsole({ in: lab, args: ['--hosts', lab.hostsFile, 'm[1-3]'] })
    await console.expectReady()
  })

  afterEach(async () => {
    await console?.close()
  })

  it('adds a host, which receives keys like all others', async () => {
    await console.leader('+')
    await console.type('m4')
    await console.key('Enter')
    await console.until(({ hosts }) => hosts.length === 4, 'four hosts')
    await console.expectAllOpen()
    await console.expectReceivers('m1', 'm2', 'm3', 'm4')
    await console.type('echo here-$(hostname)\r')
    await console.expectOnAll(lab.names, (host) => new RegExp(`^here-${host}$`, 'm'))
  })

  it('adds a host without typing into it when only some hosts receive keys', async () => {
    await console.receivers('m1')
    await console.leader('+')
    await console.type('m4')
    await console.key('Enter')
    await console.until(({ hosts }) => hosts.length === 4, 'four hosts')
    await console.expectAllOpen()
    await console.expectReceivers('m1')
  })

  it('reports an unknown host, keeps what was typed, and continues', async () => {
    await console.leader('+')
    await console.type('m77')
    await console.key('Enter')
    await console.expectScreen(/Host: m77[\s\S]*there is no host m77/)
    await console.expectMode('dialog:add-host')
    await console.key('Escape')
    await console.expectMode('shells')
    await console.type('echo on-$(hostname)\r')
    await console.expectOnAll(['m1', 'm3'], (host) => new RegExp(`^on-${host}$`, 'm'))
  })

  it('removes a host, and its shell ends there', async () => {
    const shells = () =>
      lab
        .host('m1')
        .processes()
        .filter(({ name }) => name === 'bash').length
    await waitUntil(() => shells() === 1, 'the shells of earlier consoles to end')
    await console.leader('x')
    await console.key('y')
    await console.until(({ hosts }) => hosts.length === 2, 'two hosts')
    await waitUntil(() => shells() === 0, 'the shell on m1 to end')
    await console.expectReceivers('m2', 'm3')
  })

  it('is saved as a group of hosts.yaml, whose comments stay', async () => {
    const before = readFileSync(lab.hostsFile, 'utf8')
    writeFileSync(lab.hostsFile, `# the lab\n${before}`)
    try {
      await console.receivers('m[1,3]')
      await console.leader('w')
      await console.type('odd')
      await console.key('Enter')
      await waitUntil(() => /odd:/.test(readFileSync(lab.hostsFile, 'utf8')), 'the group in hosts.yaml')
      await console.expectMode('shells')
      expect(readFileSync(lab.hostsFile, 'utf8')).toMatch(/^# the lab\n/)
      await console.receivers('all')
      await console.receivers('@odd')
      await console.expectReceivers('m1', 'm3')
    } finally {
      writeFileSync(lab.hostsFile, before)
    }
  })
})
