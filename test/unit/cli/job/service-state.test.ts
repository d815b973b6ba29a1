import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { pidFile, serviceState } from '../../../../src/cli/job/service/service.ts'
import { parseHostsYaml } from '../../../../src/inventory/hosts-yaml.ts'

let home: string
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'muster-service-'))
})
afterEach(() => rmSync(home, { recursive: true }))

it.each([
  ['active', String(process.pid)],
  ['inactive', ''],
  ['inactive', '0'],
  ['inactive', '-1'],
  ['inactive', 'no number'],
])('a scheduler that cron starts is %s if its process file says "%s"', async (state, text) => {
  const environment = { HOME: home, XDG_STATE_HOME: home }
  const directory = join(home, 'muster', 'jobs')
  mkdirSync(directory, { recursive: true })
  writeFileSync(join(directory, 'work-no-such-cluster.sh'), '')
  const own = { cluster: 'no-such-cluster', isRoot: false, words: [], directory: '', environment: {} }
  writeFileSync(pidFile({ ...own, stateDirectory: join(home, 'muster') }), text)
  const inventory = parseHostsYaml('cluster: no-such-cluster\nhosts: { a: }\n', 'hosts.yaml', [])
  const context = { environment } as unknown as Parameters<typeof serviceState>[1]
  expect(await serviceState(inventory, context)).toEqual({ name: 'cron', state })
})
