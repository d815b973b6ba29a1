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
