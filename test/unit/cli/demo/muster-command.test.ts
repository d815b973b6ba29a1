import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { demoHost, formatHostsFile, musterCommand, STATE } from '../../../../src/cli/demo/demo-jobs.ts'
import { changedHosts, driverHost } from '../../../../src/cli/job/declared-hosts.ts'
import { loadInventory } from '../../../../src/inventory/load-inventory.ts'

const inventory = {
  cluster: 'demo',
  hosts: ['m1', 'm2'].map(demoHost),
  groups: new Map([['odd', ['m1']]]),
}

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-command-'))
})
afterEach(() => rmSync(directory, { recursive: true }))

describe('muster on hosts of the demo', () => {
  it('lists the hosts as the demo declares them, without a route to them', async () => {
    const file = join(directory, 'hosts.yaml')
    writeFileSync(file, formatHostsFile(inventory))
    const loaded = await loadInventory({ file, cwd: directory, env: {}, sections: async () => [] })
    expect(loaded.hosts.map(({ name, resources }) => ({ name, resources }))).toEqual(
      inventory.hosts.map(({ name, resources }) => ({ name, resources })),
    )
    expect(loaded.hosts.map(({ address }) => address)).toEqual(['demo.invalid', 'demo.invalid'])
    expect(loaded.groups).toEqual(inventory.groups)
    // Otherwise each job that is submitted there would be told to start another scheduler.
    expect(changedHosts(inventory.hosts.map(driverHost), loaded)).toBeUndefined()
  })

  it.each([
    ['run', 'all'],
    ['job', 'logs', '1'],
    ['job', 'work'],
    ['--hosts', 'x', 'job', 'list'],
    [],
  ])('refuses what would connect: %s %s %s %s', (...words) => {
    const home = join(directory, 'm1')
    mkdirSync(home)
    mkdirSync(join(directory, STATE))
    const { status, stderr } = spawnSync('/bin/sh', ['-c', musterCommand(), 'muster', ...words], {
      env: { HOME: home },
      encoding: 'utf8',
    })
    expect(status).toBe(2)
    expect(stderr).toContain('the demo has only: muster pack, muster job submit')
  })
})
