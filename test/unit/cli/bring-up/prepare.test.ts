/** What bring-up says about a hosts.yaml that declares nothing for it. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { runMuster } from '../../../support/run-muster.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'muster-prepare-'))
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { m1: { transport: local } }\n')
})
afterEach(() => rmSync(directory, { recursive: true }))

it.each([
  [['status'], 'any of trust, packages, nfs, environment, ray, slurm, k8s'],
  [['env', 'status'], 'environment'],
])('names the keys of the file: %j', async (args, keys) => {
  const { exitCode, messages } = await runMuster(args, { directory })
  expect([exitCode, messages.split('\n')[0]]).toEqual([
    3,
    `muster: ${join(directory, 'hosts.yaml')} does not declare ${keys}`,
  ])
})

it('takes no login for a host of --on, which would have no effect', async () => {
  writeFileSync(join(directory, 'hosts.yaml'), 'hosts: { n1: { transport: local } }\ntrust: { mesh: n1 }\n')
  const { exitCode, messages } = await runMuster(['up', 'trust', '--on', 'nobody@n1'], { directory })
  expect([exitCode, messages.split('\n')[0]]).toEqual([
    2,
    'muster: host set nobody@n1: at character 1: there is no host nobody@n1',
  ])
})

it.each([['up'], ['down'], ['status']])('%s --on says that an area does not have the hosts', async (verb) => {
  const hosts = 'n1: { transport: local }, n2: { transport: local }, n3: { transport: local }'
  writeFileSync(join(directory, 'hosts.yaml'), `hosts: { ${hosts} }\ntrust: { mesh: 'n[2-3]' }\n`)
  expect(await runMuster([verb, 'trust', '--on', 'n1'], { directory })).toEqual({
    exitCode: 2,
    output: '',
    messages: 'muster: --on: hosts.yaml does not declare trust for n1\nDeclared hosts are trust: n[2-3].\n',
  })
})
