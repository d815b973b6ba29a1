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
  expect([exitCode, messages.split('\n')[0]]).toEqual([3, `muster: hosts.yaml does not declare ${keys}`])
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

it.each([
  [['status'], 'lab.yaml does not declare any of trust, packages, nfs, environment, ray, slurm, k8s'],
  [['up', 'trust', '--on', 'm1'], '--on: lab.yaml does not declare trust for m1'],
  [['k8s', 'pods'], 'lab.yaml declares no Kubernetes cluster'],
  [['pack', '--engine', 'slurm'], 'cannot ask Slurm: lab.yaml does not declare it'],
  [['job', 'submit', '--engine', 'slurm', 'true'], 'lab.yaml declares no Slurm cluster'],
  [['job', 'submit', '--from-env', 'declared', 'true'], 'lab.yaml declares no environment'],
  [['study', 'import', '--on', 'm9', 's', 'sqlite:////x'], '--on m9: lab.yaml has no such host'],
])('names the file that was read: %j', async (args, words) => {
  const trust = args.includes('trust') ? "trust: { mesh: 'm[2-3]' }" : ''
  const hosts = 'm1: { transport: local }, m2: { transport: local }, m3: { transport: local }'
  writeFileSync(join(directory, 'lab.yaml'), `hosts: { ${hosts} }\n${trust}\n`)
  const { messages } = await runMuster(['--hosts', 'lab.yaml', ...args], { directory })
  expect(messages.split('\n')[0]).toBe(`muster: ${words}`)
})
